"""Going from one composition to another while everything runs: the outcome of a fresh start, or nothing at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import anyio
import attrs
import pytest
from hypothesis import given, settings, strategies as st

from harness_core import (
    Harness,
    HarnessError,
    PluginContext,
    PromptAssembly,
    Section,
    ToolSchema,
    hookimpl,
    render_context_snapshot,
    render_prompt,
)
from harness_core.errors import DuplicateNameError, PluginConfigError, PluginLoadError, PluginSetupError, ScopeError
from harness_core.host import AgentSettings, PluginSource
from harness_core.host.composition import (
    AgentTable,
    Composition,
    ModelTable,
    PlacementTable,
    PluginTable,
    PromptTable,
    SessionTable,
)
from harness_core.models import CallConfig
from harness_core.session import HeaderWritten

NAMES = ("alpha", "beta", "gamma", "delta", "omega")


class Greeting(Protocol):
    """A service."""

    word: str


@attrs.define
class Config:
    text: str = "plain"
    order: float = 10
    fail: bool = False


def made(name: str, events: list[str]) -> type:
    class Plugin:
        Config = Config

        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> Any:
            ctx.prompt.section(f"{name}:s", f"{name} says {ctx.config.text}. {{{{{name}}}}}", order=ctx.config.order)
            ctx.prompt.context(f"{name}:c", f"{name} fact {ctx.config.text}", order=1)
            ctx.prompt.variable(name, lambda _: ctx.config.text.upper())
            ctx.tools.register(ToolSchema(f"{name}_tool", ctx.config.text), lambda call: "")
            if ctx.config.text == "shared":
                # A name that only one of them can have.
                ctx.prompt.section("shared", f"of {name}", order=3)
            if name == "alpha":
                ctx.services.provide(Greeting, self)  # type: ignore[type-abstract]
                self.word = ctx.config.text
            if name == "gamma":
                # What the set-up of one finds of another must not depend on the way here.
                found = ctx.services.get(Greeting)  # type: ignore[type-abstract]
                ctx.prompt.section("gamma:greeting", found.word if found else "nobody greets", order=11)
            if ctx.config.fail:
                raise ValueError(f"{name} was told to fail")
            events.append(f"+{name}:{ctx.config.text}")
            yield
            events.append(f"-{name}:{ctx.config.text}")

        @hookimpl(tryfirst=name == "beta")
        def system_prompt_assemble(self, assembly: PromptAssembly) -> None:
            number = len(assembly.sections)
            assembly.sections.append(Section(name=f"{name}:{number}", text=f"{name} was here", order=number))

    return Plugin


def sources(events: list[str]) -> list[PluginSource]:
    return [
        PluginSource(
            name=name,
            distribution=f"dist-{name}",
            version="1",
            entry_point=f"{name}:Plugin",
            load=lambda kind=made(name, events): kind,
        )
        for name in sorted(NAMES)
    ]


def harness_of(composition: Composition, installed: list[PluginSource], **options: Any) -> Harness:
    return Harness.from_composition(composition, Path(), entry_points=lambda: list(installed), **options)


async def seen(harness: Harness, composition: Composition) -> dict[str, Any]:
    """All that a composition decides, as plain data."""
    scopes = [harness.root, *(harness.known_scope(name) for name in composition.scope_names())]
    return {
        "activations": [(a.name, a.scope.name, a.config, a.outermost, a.constraints) for a in harness.activations],
        "failures": [failure.name for failure in harness.failures],
        "settings": harness.prompt.settings,
        "layers": {
            scope.name: {
                table: [
                    (getattr(key, "kind", key), getattr(entry, "order", None), str(entry.origin))
                    for key, entry in entries.items()
                ]
                for table, entries in layer.tables()
            }
            for scope, layer in harness.prompt.layers().items()
        },
        "scopes": {scope.name: await seen_in(harness, scope) for scope in scopes},
    }


async def seen_in(harness: Harness, scope: Any) -> dict[str, Any]:
    assembly = await harness.assemble(scope)
    return {
        "chain": [each.name for each in scope.chain()],
        "prompt": render_prompt(assembly).encode(),
        "snapshot": render_context_snapshot(assembly),
        "sections": [(section.name, section.text) for section in assembly.sections],
        "tools": [tool.canonical for tool in assembly.tools],
        "variables": list(assembly.variables.items()),
        "handled": list(harness.tools.view(scope).tools),
        "known": list(harness.tools.view(scope).known),
        "models": list(harness.models.effective(scope)),
        "default": harness.agents.default(scope),
        "listeners": [
            (one.plugin, one.scope.name, one.outermost) for one in harness.listeners("system_prompt_assemble", scope)
        ],
    }


# --- compositions at random -------------------------------------------------------------------------------------------

configs = st.fixed_dictionaries(
    {},
    optional={"text": st.sampled_from(["red", "blue"]), "order": st.sampled_from([5, 10, 20]), "fail": st.just(True)},
)
safe_configs = st.fixed_dictionaries(
    {}, optional={"text": st.sampled_from(["red", "blue", "shared"]), "order": st.sampled_from([5, 10])}
)
some_names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
plugin_tables = st.builds(
    PluginTable,
    enabled=st.sampled_from([True, True, True, False]),
    config=safe_configs | safe_configs | configs,
    before=some_names,
    scope=st.sampled_from([None, None, None, "writer", "shed"]),
    on_error=st.sampled_from([None, "skip"]),
)
agent_plugins = st.builds(PluginTable, config=safe_configs, on_error=st.just("skip"))
placements = st.dictionaries(
    st.sampled_from([f"{name}:s" for name in NAMES]),
    st.builds(
        PlacementTable,
        exclude=st.booleans(),
        order=st.sampled_from([None, 1, 15]),
        plugin=st.sampled_from([None, "beta"]),
    ),
    max_size=2,
)
agent_tables = st.builds(
    AgentTable,
    persona=st.sampled_from([None, "You are one of many.", "{{alpha}}"]),
    runtime_context=st.booleans(),
    deny_tools=st.lists(st.sampled_from(["alpha_tool", "beta:beta_tool"]), max_size=1),
    model=st.builds(ModelTable, model=st.sampled_from([None, "small", "large"])),
    plugins=st.dictionaries(st.sampled_from(NAMES), agent_plugins, max_size=2),
    sections=placements,
)


@st.composite
def compositions(draw: st.DrawFn) -> Composition:
    names = draw(st.permutations(NAMES))
    plugins = {name: draw(plugin_tables) for name in names[: draw(st.integers(0, 4))]}
    agents = draw(st.dictionaries(st.sampled_from(["writer", "reviewer"]), agent_tables, max_size=2))
    if len(agents) == 2 and draw(st.booleans()):
        agents["reviewer"].parent = "writer"
    return Composition(
        prompt=PromptTable(
            persona=draw(st.sampled_from(["", "Be brief."])),
            identity=draw(st.booleans()),
            tool_order=draw(st.sampled_from([None, None, ["<unlisted-tools>", "alpha_tool"]])),
        ),
        model=ModelTable(model=draw(st.sampled_from([None, "small"]))),
        plugins=plugins,
        agents=agents,
        sections=draw(placements),
        autoload=draw(st.booleans()),
        on_error=draw(st.sampled_from(["fail", "skip"])),
        outermost=draw(some_names),
    )


@pytest.mark.spec("EFF-01", "D2")
@settings(max_examples=max(120, settings.default.max_examples))
@given(st.lists(compositions(), min_size=2, max_size=5))
def test_the_outcome_is_that_of_a_fresh_start_with_the_last_one_that_came_up(sequence: list[Composition]) -> None:
    async def check() -> None:
        events: list[str] = []
        installed = sources(events)
        async with harness_of(Composition(autoload=False), installed) as harness:
            current = Composition(autoload=False)
            before = await seen(harness, current)
            for composition in sequence:
                try:
                    async with harness_of(composition, sources([])) as fresh:
                        expected: Any = await outcome(fresh, composition)
                except Exception as error:
                    expected = None
                    with pytest.raises(type(error)) as caught:
                        await harness.apply(composition)
                    if isinstance(error, HarnessError):
                        assert isinstance(caught.value, HarnessError)
                        assert caught.value.message == error.message
                else:
                    await harness.apply(composition)
                    current = composition
                    before = expected
                found = differences(await outcome(harness, current), before)
                assert not found, "\n".join(found)
        # Everything that was ever set up is taken out again.
        assert sorted(event[1:] for event in events if event[0] == "-") == sorted(
            event[1:] for event in events if event[0] == "+"
        )

    anyio.run(check)


async def outcome(harness: Harness, composition: Composition) -> Any:
    """What is seen, or how assembling fails."""
    try:
        return await seen(harness, composition)
    except HarnessError as error:
        return error.message


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two outcomes differ: a whole one is too much to read."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for key in one for found in differences(one[key], other[key], f"{path}/{key}")]
    return [] if one == other else [f"{path}: {one!r} is not {other!r}"]


# --- what a change leaves alone, and when it is seen --------------------------------------------------------------------


def composed(**plugins: PluginTable) -> Composition:
    return Composition(
        autoload=False, plugins=plugins, prompt=PromptTable(identity=False), session=SessionTable(store="memory")
    )


@pytest.mark.anyio
async def test_only_what_changed_is_set_up_anew() -> None:
    events: list[str] = []
    first = composed(alpha=PluginTable(), beta=PluginTable(), delta=PluginTable())
    second = composed(delta=PluginTable(), alpha=PluginTable(config={"text": "red"}), omega=PluginTable())
    async with harness_of(first, sources(events)) as harness:
        before = {activation.name: activation for activation in harness.activations}
        events.clear()
        applied = await harness.apply(second)
        assert events == ["+alpha:red", "+omega:plain", "-beta:plain", "-alpha:plain"]
        assert (applied.installed, applied.removed, applied.reconfigured) == (("omega",), ("beta",), ("alpha",))
        assert "delta" in applied.kept
        assert [a.name for a in harness.activations] == ["offline-model", "delta", "alpha", "omega"]
        assert next(a for a in harness.activations if a.name == "delta") is before["delta"]
        again = await harness.apply(second)
        assert not again.changed
        assert events[4:] == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (PluginTable(config={"fail": True}), PluginSetupError),
        (PluginTable(config={"order": "high"}), PluginConfigError),
        (PluginTable(config={"text": {"$env": "HARNESS_TEST_NOT_SET"}}), PluginConfigError),
        (PluginTable(plugin="absent"), PluginLoadError),
    ],
)
async def test_a_change_that_fails_leaves_everything_as_it_was(broken: PluginTable, error: type[Exception]) -> None:
    events: list[str] = []
    first = composed(alpha=PluginTable(), gamma=PluginTable(config={"text": "old"}))
    async with harness_of(first, sources(events)) as harness:
        before, active = await seen(harness, first), harness.activations
        labels = harness.root.effects.labels()
        bad = composed(alpha=PluginTable(config={"text": "red"}), omega=PluginTable(), gamma=broken)
        bad.agents["writer"] = AgentTable()
        bad.prompt.persona = "Another."
        events.clear()
        with pytest.raises(error):
            await harness.apply(bad)
        assert differences(await seen(harness, first), before) == []
        assert harness.activations == active
        assert harness.root.effects.labels() == labels
        # What was there never noticed; what had come up was taken out again.
        assert sorted(events) in ([], ["+alpha:red", "+omega:plain", "-alpha:red", "-omega:plain"])
        with pytest.raises(ScopeError):
            harness.known_scope("writer")


@pytest.mark.anyio
async def test_an_observer_that_refuses_the_change_keeps_everything_as_it_was() -> None:
    class Vetoes:
        hears = False

        @hookimpl
        def system_prompt_change(self) -> None:
            if Vetoes.hears:
                raise RuntimeError("not now")

    first, events = composed(alpha=PluginTable()), []
    async with harness_of(first, sources(events)) as harness:
        await harness.install(Vetoes)
        before = await seen(harness, first)
        listeners = [one.plugin for one in harness.listeners("system_prompt_assemble")]
        Vetoes.hears = True
        second = composed(beta=PluginTable(), alpha=PluginTable(config={"text": "red"}))
        second.prompt.persona, second.model.model = "Another.", "large"
        with pytest.raises(RuntimeError, match="not now"):
            await harness.apply(second)
        assert differences(await seen(harness, first), before) == []
        assert [one.plugin for one in harness.listeners("system_prompt_assemble")] == listeners
        Vetoes.hears = False
        await harness.apply(second)
        assert (await seen(harness, second))["scopes"]["global"]["default"].model == "large"


@pytest.mark.anyio
async def test_what_the_old_plugins_raise_on_the_way_out_is_reported_and_the_change_stands() -> None:
    class Clings:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> Any:
            ctx.prompt.section("clings:s", "still here", order=1)
            yield
            raise OSError("will not let go")

    installed = [PluginSource(name="clings", load=lambda: Clings), *sources([])]
    async with harness_of(composed(clings=PluginTable()), installed) as harness:
        applied = await harness.apply(composed(alpha=PluginTable()))
        assert applied.removed == ("clings",)
        assert "will not let go" in str(applied.leftovers[0].exceptions[0])  # type: ignore[attr-defined]
        assert "still here" not in render_prompt(await harness.assemble())


@pytest.mark.anyio
async def test_a_plugin_that_is_set_up_during_a_change_cannot_change_the_harness_too() -> None:
    class Meddles:
        @hookimpl
        async def harness_setup(self, ctx: PluginContext) -> None:
            await ctx.harness.apply(Composition(autoload=False))

    installed = [PluginSource(name="meddles", load=lambda: Meddles), *sources([])]
    async with harness_of(composed(alpha=PluginTable()), installed) as harness:
        with pytest.raises(HarnessError, match="being changed already"):
            await harness.apply(composed(meddles=PluginTable()))
        assert [a.name for a in harness.activations] == ["offline-model", "alpha"]


@pytest.mark.anyio
async def test_agents_keep_their_scope_and_the_next_step_sees_the_new_state() -> None:
    first = composed(alpha=PluginTable())
    first.agents["writer"] = AgentTable(persona="Write.", model=ModelTable(model="small"))
    second = composed(alpha=PluginTable(config={"text": "red"}))
    second.agents["writer"] = AgentTable(persona="Write well.", model=ModelTable(model="large"))
    async with harness_of(first, sources([])) as harness:
        agent = await harness.create_agent("a", scope="writer")
        assert (await agent.run("Hello.")).ok
        await harness.apply(second)
        assert (await agent.run("Again.")).ok
        headers = [event.data.header for event in agent.session.events if isinstance(event.data, HeaderWritten)]
        texts = [header.system for header in headers]
        assert ["Write." in text for text in texts] == [True, False]
        assert "Write well." in texts[1]
        assert "alpha says red" in texts[1]
        assert [header.config.model for header in headers] == ["small", "large"]
        with pytest.raises(ScopeError, match="agents run"):
            await harness.apply(composed(alpha=PluginTable()))
        assert harness.known_scope("writer") in agent.scope.chain()


@pytest.mark.anyio
async def test_steps_that_run_during_a_change_see_the_old_state_until_it_is_made() -> None:
    started, go_on = anyio.Event(), anyio.Event()

    class Slow:
        @hookimpl
        async def harness_setup(self, ctx: PluginContext) -> None:
            ctx.prompt.section("slow:s", "slow is here", order=1)
            ctx.tools.register(ToolSchema("alpha_tool", "another one"), lambda call: "")
            started.set()
            await go_on.wait()

    installed = [PluginSource(name="slow", load=lambda: Slow), *sources([])]
    async with harness_of(composed(alpha=PluginTable()), installed) as harness:
        before = await seen_in(harness, harness.root)
        handler = harness.tools.handler(harness.root, "alpha_tool")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.apply, composed(slow=PluginTable()))
            await started.wait()
            assert differences(await seen_in(harness, harness.root), before) == []
            assert harness.tools.handler(harness.root, "alpha_tool") is handler
            # What others register meanwhile is theirs, and stays.
            harness.root.prompt.section("mine", "kept", order=99)
            go_on.set()
        text = render_prompt(await harness.assemble())
        assert "slow is here" in text
        assert "alpha" not in text
        assert "kept" in text


@pytest.mark.anyio
async def test_what_a_program_gave_to_the_constructor_stays() -> None:
    events: list[str] = []
    given = AgentSettings(config=CallConfig(provider="own"))
    async with Harness(
        plugins=[made("delta", events)], autoload=False, agents=given, entry_points=lambda: sources(events)
    ) as harness:
        await harness.apply(composed(alpha=PluginTable()))
        assert [a.name for a in harness.activations] == ["plugin", "offline-model", "alpha"]
        assert harness.agents.settings is given
        await harness.apply(composed())
        assert events == ["+delta:plain", "+alpha:plain", "-alpha:plain"]


@pytest.mark.anyio
async def test_a_name_that_a_new_plugin_takes_from_a_later_one_is_refused_as_at_a_start() -> None:
    shared = {"text": "shared"}
    first = composed(beta=PluginTable(config=shared))
    second = composed(alpha=PluginTable(config=shared), beta=PluginTable(config=shared))
    async with harness_of(first, sources([])) as harness:
        before = await seen(harness, first)
        with pytest.raises(DuplicateNameError, match="'shared'"):
            await harness.apply(second)
        assert differences(await seen(harness, first), before) == []
        second.on_error = "skip"
        applied = await harness.apply(second)
        assert [failure.name for failure in applied.failures] == ["beta"]
        assert "of alpha" in render_prompt(await harness.assemble())


@pytest.mark.anyio
async def test_an_old_plugin_is_out_of_sight_before_it_cleans_up() -> None:
    seen_at_the_end: list[str] = []

    class Leaves:
        @hookimpl
        async def harness_setup(self, ctx: PluginContext) -> Any:
            ctx.prompt.section("leaves:s", "still here", order=1)
            ctx.tools.register(ToolSchema("leaves"), lambda call: "")
            yield
            assembly = await ctx.harness.assemble()
            seen_at_the_end.extend(
                [*(section.name for section in assembly.sections), *(tool.name for tool in assembly.tools)]
            )

    installed = [PluginSource(name="leaves", load=lambda: Leaves), *sources([])]
    async with harness_of(composed(leaves=PluginTable()), installed) as harness:
        await harness.apply(composed(alpha=PluginTable()))
    assert "leaves:s" not in seen_at_the_end
    assert "leaves" not in seen_at_the_end
    assert {"alpha:s", "alpha_tool"} <= set(seen_at_the_end)


@pytest.mark.anyio
async def test_variables_are_evaluated_in_their_new_order_also_while_providers_register_others() -> None:
    def of(name: str, registers: bool) -> type:
        class Plugin:
            @hookimpl
            def harness_setup(self, ctx: PluginContext) -> None:
                made: list[Any] = []

                def value(_: Any) -> str:
                    if registers and not made:
                        made.append(ctx.prompt.variable(f"{name}_more", lambda _: "more"))
                    return name

                ctx.prompt.variable(name, value)

        return Plugin

    kinds = {name: of(name, name == "late") for name in ("early", "late")}
    installed = [PluginSource(name=name, load=lambda kind=kind: kind) for name, kind in kinds.items()]
    async with harness_of(composed(early=PluginTable(), late=PluginTable()), installed) as harness:
        await harness.apply(composed(late=PluginTable(), early=PluginTable()))
        assert list((await harness.assemble()).variables) == ["late", "early", "late_more"]


@pytest.mark.anyio
async def test_what_a_task_registers_after_a_change_that_failed_is_seen() -> None:
    failed = anyio.Event()
    registered = anyio.Event()

    class Starts:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            async def later(root: Any) -> None:
                await failed.wait()
                root.prompt.section("later", "registered later", order=1)
                registered.set()

            ctx.harness.tasks.start_soon(later, ctx.harness.root)
            raise ValueError("no")

    installed = [PluginSource(name="starts", load=lambda: Starts), *sources([])]
    async with harness_of(composed(), installed) as harness:
        with pytest.raises(PluginSetupError):
            await harness.apply(composed(starts=PluginTable()))
        failed.set()
        await registered.wait()
        assert "registered later" in render_prompt(await harness.assemble())
