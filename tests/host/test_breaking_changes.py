"""Changes of a composition at bad moments and with awkward plugins: the outcome stays that of a fresh start, or nothing."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import attrs
import pytest

from harness_core import Harness, HarnessError, PluginContext, ToolSchema, hookimpl, render_prompt
from harness_core.errors import DuplicateNameError, ScopeError
from harness_core.host import PluginSource
from harness_core.host.changing import Applied
from harness_core.host.composition import AgentTable, Composition, ModelTable, PluginTable
from harness_core.session import HeaderWritten
from tests.host.test_applying import composed, differences, harness_of, outcome, seen, sources

pytestmark = pytest.mark.anyio


def source(name: str, plugin: Any) -> PluginSource:
    return PluginSource(name=name, load=lambda: plugin)


# --- models -------------------------------------------------------------------------------------------------------------


def answering(model: str | None, **rest: Any) -> Composition:
    made = composed()
    made.model = ModelTable(model=model, **rest)
    return made


def models_of(agent: Any) -> list[str | None]:
    return [event.data.header.config.model for event in agent.session.events if isinstance(event.data, HeaderWritten)]


async def test_agents_follow_the_default_only_where_nobody_chose_for_them() -> None:
    class Picks:
        @hookimpl
        def agent_request(self, config: Any, step: Any) -> Any:
            return attrs.evolve(config, model="picked") if step.agent.id == "listened to" else config

    async with harness_of(answering("small"), []) as harness:
        await harness.install(Picks)
        agents = {
            "follows": await harness.create_agent("follows"),
            "chosen": await harness.create_agent("chosen", model="huge"),
            "the same chosen": await harness.create_agent("the same chosen", model="small"),
            "listened to": await harness.create_agent("listened to"),
            "chosen later": await harness.create_agent("chosen later"),
        }
        for composition in (answering("small"), answering("large"), answering("large"), answering(None)):
            await harness.apply(composition)
            for agent in agents.values():
                assert (await agent.run("Hello.")).ok
            agents["chosen later"].configure(model="mine")
        assert {name: models_of(agent) for name, agent in agents.items()} == {
            "follows": ["small", "large", "scripted"],
            "chosen": ["huge"],
            "the same chosen": ["small"],
            "listened to": ["picked"],
            "chosen later": ["small", "mine"],
        }


async def test_an_agent_that_comes_up_during_a_change_has_the_new_default() -> None:
    async with harness_of(answering("small"), []) as harness:

        async def changes(_: Any) -> None:
            await harness.apply(answering("large"))

        agent = await harness.create_agent("a", setup=changes)
        assert (await agent.run("Hello.")).ok
        assert models_of(agent) == ["large"]


async def test_a_refused_change_leaves_the_models_of_agents_as_they_were() -> None:
    class Vetoes:
        hears = False

        @hookimpl
        def system_prompt_change(self) -> None:
            if Vetoes.hears:
                raise RuntimeError("not now")

    async with harness_of(answering("small", effort="high"), []) as harness:
        await harness.install(Vetoes)
        agent = await harness.create_agent("a")
        assert (await agent.run("Hello.")).ok
        Vetoes.hears = True
        with pytest.raises(RuntimeError, match="not now"):
            await harness.apply(answering("large"))
        assert (await agent.run("Hello.")).ok
        assert models_of(agent) == ["small"]
        Vetoes.hears = False
        await harness.apply(answering("large", effort="high"))
        assert (await agent.run("Hello.")).ok
        headers = [event.data.header.config for event in agent.session.events if isinstance(event.data, HeaderWritten)]
        assert [(config.model, config.effort) for config in headers] == [("small", "high"), ("large", "high")]


# --- awkward plugins ----------------------------------------------------------------------------------------------------


class Child:
    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.prompt.section("child:s", "The child is here.", order=10)
        ctx.tools.register(ToolSchema("child_tool", "a child's"), lambda call: "")


class Parent:
    @hookimpl
    async def harness_setup(self, ctx: PluginContext) -> None:
        await ctx.install(Child)
        ctx.prompt.section("parent:s", "The parent is here.", order=10)


class Grandparent:
    @hookimpl
    async def harness_setup(self, ctx: PluginContext) -> None:
        await ctx.install(Parent)


class Keeper:
    """Owns its child by an owner of its own."""

    @hookimpl
    async def harness_setup(self, ctx: PluginContext) -> None:
        await ctx.install(Child, owner=ctx.effects.nested("a child"))


class Fenced:
    """Has a scope of its own, with its child in it."""

    @hookimpl
    async def harness_setup(self, ctx: PluginContext) -> None:
        below = ctx.scope.child("below", owner=ctx.effects)
        await ctx.harness.install(Child, scope=below)
        await ctx.install(Child)


FAMILY = [source(each.__name__.lower(), each) for each in (Parent, Grandparent, Keeper, Fenced)]


@pytest.mark.parametrize("name", ["parent", "grandparent", "keeper", "fenced"])
@pytest.mark.parametrize("other", ["parent", "keeper", "fenced"])
async def test_what_plugins_install_themselves_comes_and_goes_with_them(name: str, other: str) -> None:
    installed = [*FAMILY, *sources([])]
    table = PluginTable()
    walk = [
        composed(**{name: table}, beta=table),
        composed(beta=table, **{name: table}),
        composed(alpha=table, **{other: table}, beta=table),
        composed(beta=table),
        composed(**{name: table}, alpha=table),
    ]
    async with harness_of(composed(gamma=table), installed) as harness:
        for composition in walk:
            async with harness_of(composition, installed) as fresh:
                expected = await outcome(fresh, composition)
            await harness.apply(composition)
            assert differences(await outcome(harness, composition), expected) == []


@attrs.define
class Switch:
    on: bool = False
    many: list[str] = attrs.field(factory=list)
    more: dict[str, Any] = attrs.field(factory=dict)


class Switched:
    Config = Switch

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.prompt.section("switched:s", repr(ctx.config), order=10)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"on": True}, {"on": 1}),
        ({"more": {"a": 1, "b": 2}}, {"more": {"b": 2, "a": 1}}),
        ({"more": {"a": 1}}, {"more": {"a": 1.0}}),
        ({"more": {"a": [0]}}, {"more": {"a": [False]}}),
        ({"on": {"$env": "HARNESS_TEST_ON"}}, {"on": "yes"}),
        ({"many": ["a"]}, {"many": ["a", "b"]}),
    ],
)
async def test_settings_that_only_look_equal_are_read_anew(
    before: dict[str, Any], after: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_TEST_ON", "yes")
    installed = [source("switched", Switched)]
    first = composed(switched=PluginTable(config=before))
    second = composed(switched=PluginTable(config=after, on_error="skip"))
    async with harness_of(second, installed) as fresh:
        expected = await outcome(fresh, second)
    async with harness_of(first, installed) as harness:
        await harness.apply(second)
        assert differences(await outcome(harness, second), expected) == []
        assert not (await harness.apply(second)).reconfigured


# --- at bad moments -----------------------------------------------------------------------------------------------------


class Slow:
    """A plugin whose set-up waits until it is told to go on."""

    def __init__(self) -> None:
        self.begun, self.go_on = anyio.Event(), anyio.Event()

    @hookimpl
    async def harness_setup(self, ctx: PluginContext) -> None:
        ctx.prompt.section("slow:s", "Slow is here.", order=1)
        ctx.tools.register(ToolSchema("slow_tool", "slow"), lambda call: "")
        self.begun.set()
        await self.go_on.wait()


async def changed_while(
    harness: Harness, slow: Slow, composition: Composition, meanwhile: Callable[[], Awaitable[object]]
) -> Exception | Applied:
    """What comes of a change, where something is done while it is prepared."""
    found: list[Exception | Applied] = []

    async def change() -> None:
        try:
            found.append(await harness.apply(composition))
        except HarnessError as error:
            found.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(change)
        await slow.begun.wait()
        await meanwhile()
        slow.go_on.set()
    return found[0]


async def test_names_that_others_take_meanwhile_are_not_taken_from_them() -> None:
    slow = Slow()
    async with harness_of(composed(), [source("slow", slow)]) as harness:

        async def registers() -> None:
            harness.root.prompt.section("slow:s", "The host's.", order=1)
            harness.root.tools.register(ToolSchema("slow_tool", "the host's"), lambda call: "")

        before = [activation.name for activation in harness.activations]
        outcome = await changed_while(harness, slow, composed(slow=PluginTable()), registers)
        assert isinstance(outcome, DuplicateNameError)
        assert "while the change was prepared" in outcome.message
        assert render_prompt(await harness.assemble()) == "The host's."
        assert [activation.name for activation in harness.activations] == before


async def test_scopes_that_others_ask_for_meanwhile_stay_theirs() -> None:
    slow = Slow()
    async with harness_of(composed(), [source("slow", slow)]) as harness:
        made: list[Any] = []

        async def asks() -> None:
            made.append(harness.scope("shed"))

        outcome = await changed_while(harness, slow, composed(slow=PluginTable()), asks)
        assert isinstance(outcome, Applied)
        assert harness.scope("shed") is made[0]
        slow.begun, slow.go_on = anyio.Event(), anyio.Event()

        async def asks_for_writer() -> None:
            made.append(harness.scope("writer"))

        second = composed(slow=PluginTable(scope="writer"))
        outcome = await changed_while(harness, slow, second, asks_for_writer)
        assert isinstance(outcome, ScopeError)
        assert harness.scope("writer") is made[1]
        await harness.apply(second)
        assert harness.known_scope("writer") is made[1]


async def test_agents_that_come_meanwhile_keep_their_scope() -> None:
    slow = Slow()
    first = composed()
    first.agents["writer"] = AgentTable()
    async with harness_of(first, [source("slow", slow)]) as harness:

        async def creates() -> None:
            await harness.create_agent("a", scope="writer")

        outcome = await changed_while(harness, slow, composed(slow=PluginTable()), creates)
        assert isinstance(outcome, ScopeError)
        assert (await harness.agents["a"].run("Hello.")).ok


async def test_a_harness_is_entered_once_and_is_not_changed_while_it_starts() -> None:
    refused: list[str] = []

    class Meddles:
        @hookimpl
        async def harness_setup(self, ctx: PluginContext) -> None:
            try:
                await ctx.harness.apply(composed())
            except HarnessError as error:
                refused.append(error.message)

    harness = harness_of(
        composed(meddles=PluginTable(), alpha=PluginTable()), [source("meddles", Meddles), *sources([])]
    )
    with pytest.raises(HarnessError, match="not running"):
        await harness.apply(composed())
    async with harness:
        assert refused == ["The harness is being changed already."]
        with pytest.raises(HarnessError, match="is running already"):
            await harness.__aenter__()
        assert [activation.name for activation in harness.activations] == ["offline-model", "meddles", "alpha"]
    with pytest.raises(HarnessError, match="has been left"):
        await harness.__aenter__()
    with pytest.raises(HarnessError, match="not running"):
        await harness.apply(composed())


@pytest.mark.parametrize("steps", range(8))
async def test_a_change_that_is_cancelled_is_made_or_not(steps: int) -> None:
    """Cancelled at each of its waits, one after the other."""
    events: list[str] = []
    stopped = anyio.CancelScope()
    left = steps

    async def wait() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            stopped.cancel()
        await anyio.sleep(0)

    def waiting(name: str) -> type:
        class Waits:
            @hookimpl
            async def harness_setup(self, ctx: PluginContext) -> Any:
                await wait()
                ctx.prompt.section(f"{name}:s", name, order=1)
                await ctx.install(Child) if name == "first" else None
                await wait()
                events.append(f"+{name}")
                yield
                await wait()
                events.append(f"-{name}")

        return Waits

    installed = [*(source(name, waiting(name)) for name in ("first", "second", "old")), *sources(events)]
    before = composed(old=PluginTable(), alpha=PluginTable())
    after = composed(first=PluginTable(), second=PluginTable(scope="shed"))
    left = -1
    async with harness_of(before, installed) as harness:
        old, labels = await seen(harness, before), harness.root.effects.labels()
        listening = len(harness.manager.activations)
        left = steps
        with stopped:
            await harness.apply(after)
        left = -1
        if "-old" in events:
            assert "first" in render_prompt(await harness.assemble())
            assert not (await harness.apply(after)).changed
            await harness.apply(before)
            assert "alpha" in render_prompt(await harness.assemble())
        else:
            assert differences(await seen(harness, before), old) == []
            assert harness.root.effects.labels() == labels
            assert len(harness.manager.activations) == listening
    assert sorted(e[1:] for e in events if e[0] == "+") == sorted(e[1:] for e in events if e[0] == "-")


async def test_a_thousand_changes_leave_nothing_behind() -> None:
    first = composed(alpha=PluginTable(), beta=PluginTable())
    second = composed(beta=PluginTable(config={"text": "red"}), gamma=PluginTable(), grandparent=PluginTable())
    second.agents["writer"] = AgentTable(persona="You write.")
    second.prompt.persona, second.model.model = "Another.", "large"
    async with harness_of(first, [*FAMILY, *sources([])]) as harness:
        agent = await harness.create_agent("a")

        async def both(times: int) -> int:
            for _ in range(times):
                for composition in (second, first):
                    await harness.apply(composition)
                    await harness.assemble(agent.scope)
            gc.collect()
            return len(gc.get_objects())

        early, labels = await both(20), harness.root.effects.labels()
        assert await both(480) - early < 500
        assert harness.root.effects.labels() == labels
