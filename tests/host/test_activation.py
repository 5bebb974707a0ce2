"""Installing a plugin: its set-up in all shapes, its hooks, and the way back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest
from attrs import define, field, validators

from harness_core import Harness, PluginContext, PromptAssembly, PromptSettings, Section, ToolSchema, hookimpl
from harness_core.errors import (
    DuplicateNameError,
    InactiveOwnerError,
    PluginConfigError,
    PluginLoadError,
    PluginSetupError,
    PluginSpecError,
)
from harness_core.scopes import TeardownError

pytestmark = pytest.mark.anyio


def plain_harness(**options: Any) -> Harness:
    return Harness(PromptSettings(identity=False), autoload=False, **options)


async def names(harness: Harness, scope: Any = None) -> list[str]:
    return [section.name for section in (await harness.assemble(scope)).sections if section.text]


class Sync:
    log: list[str]

    def __init__(self) -> None:
        self.log = []

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.prompt.section("shape", "x", order=1)
        ctx.effects.callback(self.log.append, "callback")


class Generator(Sync):
    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> Iterator[None]:  # type: ignore[override]
        ctx.prompt.section("shape", "x", order=1)
        ctx.effects.callback(self.log.append, "callback")
        yield
        self.log.append("after yield")


class Coroutine(Sync):
    @hookimpl
    async def harness_setup(self, ctx: PluginContext) -> None:  # type: ignore[override]
        await anyio.lowlevel.checkpoint()
        ctx.prompt.section("shape", "x", order=1)
        ctx.effects.callback(self.log.append, "callback")


class AsyncGenerator(Sync):
    @hookimpl
    async def harness_setup(self, ctx: PluginContext) -> AsyncIterator[None]:  # type: ignore[override]
        ctx.prompt.section("shape", "x", order=1)
        ctx.effects.callback(self.log.append, "callback")
        await anyio.lowlevel.checkpoint()
        yield
        await anyio.lowlevel.checkpoint()
        self.log.append("after yield")


@pytest.mark.spec("D6", "REG-16", "EFF-02")
@pytest.mark.parametrize("kind", [Sync, Generator, Coroutine, AsyncGenerator])
async def test_set_up_may_be_written_in_four_shapes(kind: type[Sync]) -> None:
    plugin = kind()
    async with plain_harness() as harness:
        activation = await harness.install(plugin)
        assert await names(harness) == ["shape"]
        await activation.aclose()
        assert await names(harness) == []
        own = ["after yield"] if "Generator" in kind.__name__ else []
        assert plugin.log == [*own, "callback"]
        await activation.aclose()
        assert plugin.log == [*own, "callback"]


@pytest.mark.spec("D6")
async def test_leaving_the_harness_takes_every_plugin_out_last_first() -> None:
    order: list[str] = []

    class Tell:
        def __init__(self, name: str) -> None:
            self.name = name

        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> Iterator[None]:
            yield
            order.append(self.name)

    async with plain_harness(plugins=[Tell("a"), Tell("b")]) as harness:
        await harness.install(Tell("c"))
    assert order == ["c", "b", "a"]


@pytest.mark.spec("REG-17", "UC-07", "EFF-13")
async def test_a_set_up_that_fails_half_way_leaves_nothing_behind() -> None:
    class Half:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.prompt.section("half", "x", order=1)
            ctx.prompt.context("half", "x", order=1)
            ctx.prompt.variable("half", lambda _: "x")
            ctx.tools.register(ToolSchema("half"), lambda call: "")
            ctx.prompt.suppress_runtime_context()
            raise OSError("no disk")

        @hookimpl
        def system_prompt_assemble(self, assembly: PromptAssembly) -> None:
            assembly.sections.append(Section("listener", "x"))

    async with plain_harness() as harness:
        before = await harness.assemble()
        with pytest.raises(PluginSetupError) as caught:
            await harness.install(Half)
        assert isinstance(caught.value.__cause__, OSError)
        assert caught.value.plugin == "half"
        assert "no disk" in str(caught.value)
        assert await harness.assemble() == before
        assert harness.listeners("system_prompt_assemble") == []
        assert harness.activations == []


@pytest.mark.spec("REG-17", "UC-06")
async def test_a_refused_registration_comes_out_as_it_is_and_names_both_owners() -> None:
    class Takes:
        def __init__(self, name: str) -> None:
            self.name = name

        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.prompt.section(f"{self.name}:own", "x", order=1)
            ctx.prompt.context("branch", "main", order=1)

    async with plain_harness() as harness:
        await harness.install(Takes("git"))
        with pytest.raises(DuplicateNameError) as caught:
            await harness.install(Takes("git-again"))
        assert caught.value.names == ("plugin 'git'", "plugin 'git-again'")
        assert any("git-again" in note for note in caught.value.__notes__)
        assert await names(harness) == ["git:own"]


@pytest.mark.spec("X-17")
async def test_a_failing_clean_up_hides_neither_the_cause_nor_the_other_clean_ups() -> None:
    log: list[str] = []

    class Twice:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.effects.callback(log.append, "first")

            def fails() -> None:
                raise ValueError("clean-up")

            ctx.effects.callback(fails)
            raise KeyError("set-up")

    async with plain_harness() as harness:
        with pytest.raises(PluginSetupError) as caught:
            await harness.install(Twice)
        assert isinstance(caught.value.__cause__, KeyError)
        assert any("clean-up" in note for note in caught.value.__cause__.__notes__)
    assert log == ["first"]


@pytest.mark.spec("EFF-05", "D5")
async def test_failing_clean_ups_are_grouped_and_named() -> None:
    class Bad:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> Iterator[None]:
            ctx.prompt.section("bad", "x", order=1)
            yield
            raise ValueError("after yield")

    async with plain_harness() as harness:
        activation = await harness.install(Bad)
        with pytest.raises(TeardownError) as caught:
            await activation.aclose()
        assert caught.value.plugin == "bad"
        assert [str(error) for error in caught.value.exceptions] == ["after yield"]
        assert await names(harness) == []


async def test_a_set_up_that_yields_twice_is_reported_when_it_is_undone() -> None:
    class Two:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> Iterator[None]:
            yield
            yield

    async with plain_harness() as harness:
        activation = await harness.install(Two)
        with pytest.raises(TeardownError) as caught:
            await activation.aclose()
        assert "yielded a second time" in str(caught.value.exceptions[0])


@pytest.mark.spec("SCOPE-01", "SCOPE-17")
async def test_one_plugin_is_active_in_several_scopes_at_once() -> None:
    class Counts:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.prompt.section("where", ctx.scope.name, order=1)

        @hookimpl
        def system_prompt_assemble(self, assembly: PromptAssembly) -> None:
            assembly.sections.append(Section("heard", "x"))

    plugin = Counts()
    async with plain_harness() as harness:
        one, two = harness.root.child("one"), harness.root.child("two")
        first = await harness.install(plugin, scope=one)
        await harness.install(plugin, scope=two)
        assert [s.text for s in (await harness.assemble(one)).sections if s.text] == ["one", "x"]
        assert [s.text for s in (await harness.assemble(two)).sections if s.text] == ["two", "x"]
        assert await names(harness) == []
        await first.aclose()
        assert await names(harness, one) == []
        assert await names(harness, two) == ["where", "heard"]


@pytest.mark.spec("SCOPE-10", "EFF-06")
async def test_a_scope_takes_its_plugins_with_it() -> None:
    async with plain_harness() as harness:
        scope = harness.root.child("agent")
        plugin = Generator()
        activation = await harness.install(plugin, scope=scope)
        await scope.aclose()
        assert plugin.log == ["after yield", "callback"]
        assert not activation.active
        assert harness.activations == []


@pytest.mark.spec("SCOPE-18")
async def test_a_plugin_may_act_globally_and_still_go_with_its_registrant() -> None:
    class Listens:
        @hookimpl
        def system_prompt_assemble(self, assembly: PromptAssembly) -> None:
            assembly.sections.append(Section("heard", "x"))

    class Installs:
        @hookimpl
        async def harness_setup(self, ctx: PluginContext) -> None:
            await ctx.install(Listens, scope=ctx.harness.root)

    async with plain_harness() as harness:
        scope = harness.root.child("agent")
        await harness.install(Installs, scope=scope)
        assert await names(harness) == ["heard"]
        await scope.aclose()
        assert await names(harness) == []


@pytest.mark.spec("SCOPE-11", "EFF-07")
async def test_nothing_is_installed_into_a_closed_scope() -> None:
    async with plain_harness() as harness:
        scope = harness.root.child("agent")
        await scope.aclose()
        with pytest.raises(InactiveOwnerError):
            await harness.install(Sync(), scope=scope)


@pytest.mark.spec("UC-22")
async def test_a_thousand_reloads_leave_one_listener() -> None:
    async with plain_harness() as harness:
        activation = await harness.install(Generator())
        base = (len(harness.root.effects), harness.prompt.generation)
        for _ in range(1000):
            await activation.aclose()
            activation = await harness.install(Generator())
        assert len(harness.root.effects) == base[0]
        assert len(harness.activations) == 1
        assert await names(harness) == ["shape"]


async def test_cancelling_a_set_up_undoes_it() -> None:
    entered = anyio.Event()

    class Hangs:
        @hookimpl
        async def harness_setup(self, ctx: PluginContext) -> None:
            ctx.prompt.section("hangs", "x", order=1)
            entered.set()
            await anyio.sleep_forever()

    async with plain_harness() as harness:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.install, Hangs)
            await entered.wait()
            assert await names(harness) == ["hangs"]
            tasks.cancel_scope.cancel()
        assert await names(harness) == []
        assert harness.activations == []


@define
class Limits:
    low: int = 1
    high: float = 2.0


@define
class WithConfig:
    city: str = "Paris"
    days: int = field(default=3, validator=validators.ge(1))
    limits: Limits = field(factory=Limits)
    tags: list[str] = field(factory=list)
    budget: int | float | None = None


class Configured:
    Config = WithConfig

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.prompt.section("city", ctx.config.city, order=1)


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"city": 3}, "city"),
        ({"days": "3"}, "days"),
        ({"days": True}, "days"),
        ({"days": 0}, "days"),
        ({"town": "Rome"}, "town"),
        ({"limits": {"low": 1.5}}, "limits.low"),
        ({"limits": {"hihg": 1}}, "limits.hihg"),
        ({"tags": ["a", 2]}, "tags[1]"),
        ({"tags": "abc"}, "tags"),
        ({"limits": []}, "limits"),
    ],
)
async def test_a_bad_configuration_names_plugin_and_path(config: dict[str, Any], path: str) -> None:
    async with plain_harness() as harness:
        with pytest.raises(PluginConfigError) as caught:
            await harness.install(Configured, config=config)
        assert caught.value.entry == path
        assert caught.value.plugin == "configured"
        assert path in str(caught.value)
        assert await names(harness) == []


async def test_a_configuration_may_be_a_mapping_an_instance_or_absent() -> None:
    async with plain_harness() as harness:
        for config, city in (({"city": "Rome"}, "Rome"), (WithConfig("Oslo"), "Oslo"), (None, "Paris")):
            activation = await harness.install(Configured, config=config)
            assert [s.text for s in (await harness.assemble()).sections if s.text] == [city]
            await activation.aclose()
        assert (await harness.install(Configured, config={"limits": {"high": 3}})).config.limits.high == 3.0


async def test_configuration_for_a_plugin_that_takes_none_is_refused() -> None:
    async with plain_harness() as harness:
        with pytest.raises(PluginConfigError, match="takes no configuration"):
            await harness.install(Sync(), config={"x": 1})


async def test_a_class_that_needs_arguments_is_refused_by_name() -> None:
    class Needs:
        def __init__(self, what: str) -> None: ...

    async with plain_harness() as harness:
        with pytest.raises(PluginLoadError, match="without arguments"):
            await harness.install(Needs)


class Typo:
    @hookimpl
    def agent_prestep(self, step: object) -> None: ...


class UnknownArgument:
    @hookimpl
    def agent_pre_step(self, stepp: object) -> None: ...


class AsyncWrapper:
    @hookimpl(wrapper=True)
    async def agent_pre_step(self, step: object) -> AsyncIterator[None]:
        yield


class OldWrapper:
    @hookimpl(hookwrapper=True)
    def agent_pre_step(self, step: object) -> Iterator[None]:
        yield


class WrapperWithNext:
    @hookimpl(wrapper=True)
    def agent_pre_step(self, step: object, call_next: object) -> Iterator[None]:
        yield


class YieldsUnmarked:
    @hookimpl
    def agent_pre_step(self, step: object) -> Iterator[None]:
        yield


class AsyncObserver:
    @hookimpl
    async def system_prompt_change(self) -> None: ...


class WrapsObserver:
    @hookimpl(wrapper=True)
    def session_event(self) -> Iterator[None]:
        yield


class NoHook:
    def helper(self) -> None: ...


class Unmarked:
    def agent_pre_step(self, step: object) -> None: ...


@pytest.mark.spec("UC-23", "D3")
@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        (Typo, "Did you mean agent_pre_step"),
        (UnknownArgument, "stepp"),
        (AsyncWrapper, "async"),
        (OldWrapper, "wrapper=True"),
        (WrapperWithNext, "call_next"),
        (YieldsUnmarked, "yields but is no wrapper"),
        (AsyncObserver, "coroutine function"),
        (WrapsObserver, "cannot be wrapped"),
        (Unmarked, "not marked"),
    ],
)
async def test_what_fits_no_hook_is_refused_with_place_and_remedy(plugin: type, says: str) -> None:
    async with plain_harness() as harness:
        with pytest.raises(PluginSpecError) as caught:
            await harness.install(plugin)
        assert says in str(caught.value)
        assert caught.value.file == __file__
        assert caught.value.line is not None
        assert f"{__file__}:{caught.value.line}" in str(caught.value)
        assert harness.activations == []


async def test_equal_plugins_do_not_collide() -> None:
    @define
    class Equal:
        label: str = "same"

        @hookimpl
        def system_prompt_assemble(self, assembly: PromptAssembly) -> None:
            assembly.sections.append(Section("equal", "x"))

    async with plain_harness() as harness:
        await harness.install(Equal())
        await harness.install(Equal())
        assert await names(harness) == ["equal", "equal"]


@pytest.mark.parametrize("thing", [NoHook, NoHook(), None, 3, "", lambda: 1, object, [1]])
async def test_what_is_no_plugin_is_refused(thing: Any) -> None:
    async with plain_harness() as harness:
        with pytest.raises((PluginSpecError, PluginLoadError)):
            await harness.install(thing)
        assert harness.activations == []
