"""What goes is told in time: whose code needs it, what to use instead, and which version no longer has it (UC-11)."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from harness_core import Harness, PluginContext, PromptSettings, hookimpl, render_prompt
from harness_core.deprecation import HarnessDeprecationWarning, deprecated
from harness_core.hooks import HookSpecs
from harness_core.host import PluginSource
from harness_core.host.check import check
from harness_core.prompt import Override

pytestmark = [pytest.mark.anyio, pytest.mark.spec("UC-11")]


class Weather:
    """Its section was called ``weather`` until it was renamed."""

    name = "weather"

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.prompt.section("weather:how", "Ask for the forecast first.", order=10, formerly={"weather": "2.0"})


def source(name: str, plugin: Any) -> PluginSource:
    return PluginSource(name=name, distribution=f"dist-{name}", version="1.4", entry_point="m:P", load=lambda: plugin)


def harness_of(*plugins: Any, **options: Any) -> Harness:
    return Harness(PromptSettings(identity=False), plugins=plugins, autoload=False, **options)


async def text(harness: Harness, scope: Any = None) -> str:
    return render_prompt(await harness.assemble(scope)) or ""


def told(caught: list[warnings.WarningMessage]) -> list[HarnessDeprecationWarning]:
    return [each.message for each in caught if isinstance(each.message, HarnessDeprecationWarning)]


# --- names of sections and contexts -----------------------------------------------------------------------------------


async def test_a_constraint_on_an_earlier_name_holds_and_is_told_once() -> None:
    class Travel:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.prompt.section("travel", "Prefer trains.", order=20, before="weather")

    async with harness_of(source("weather", Weather), source("travel", Travel)) as harness:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert await text(harness) == "Prefer trains.\n\nAsk for the forecast first."
            harness.root.prompt.section("other", "Be brief.", order=30)
            assert await text(harness) == "Prefer trains.\n\nAsk for the forecast first.\n\nBe brief."
        [warning] = told(caught)
        assert str(warning) == (
            "section 'travel' of plugin 'travel' (dist-travel 1.4) uses the section name 'weather', which goes with "
            "dist-weather 2.0. Use 'weather:how'."
        )
        assert (caught[0].filename, warning.instead) == (__file__, "'weather:how'")
        assert "unknown-constraint" not in {finding.code for finding in await check(harness, [harness.root])}


async def test_a_scope_shadows_by_an_earlier_name() -> None:
    async with harness_of(source("weather", Weather)) as harness:
        inner = harness.scope("inner")
        inner.prompt.section("weather", "Look out of the window.", order=10)
        inner.prompt.section("first", "Good morning.", order=50, before="weather:how")
        with pytest.warns(HarnessDeprecationWarning, match="scope 'inner' uses the section name 'weather'"):
            assert await text(harness, inner) == "Good morning.\n\nLook out of the window."
        assert await text(harness) == "Ask for the forecast first."


async def test_a_composition_places_by_an_earlier_name() -> None:
    overrides = {(): {("section", "weather"): Override(exclude=True)}}
    async with harness_of(source("weather", Weather), overrides=overrides) as harness:
        with pytest.warns(HarnessDeprecationWarning, match="the composition uses the section name 'weather'"):
            assert await text(harness) == ""


async def test_an_earlier_name_that_somebody_has_is_that_ones() -> None:
    class Other:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.prompt.section("weather", "It is always sunny.", order=30)
            ctx.prompt.section("last", "Goodbye.", order=5, after="weather")

    async with harness_of(source("weather", Weather), Other) as harness:
        harness.scope("inner").prompt.section("weather", "It rains.", order=30)
        assert await text(harness) == "Ask for the forecast first.\n\nIt is always sunny.\n\nGoodbye."
        assert await text(harness, harness.scope("inner")) == "Ask for the forecast first.\n\nIt rains.\n\nGoodbye."


async def test_contexts_have_earlier_names_too() -> None:
    async with harness_of() as harness:
        harness.root.prompt.context("weather:now", "Sunny.", order=10, formerly={"now": "3.0"})
        harness.root.prompt.context("city", "Paris.", order=20, before="now")
        with pytest.warns(HarnessDeprecationWarning, match="the context name 'now', which goes with global 3.0"):
            assembly = await harness.assemble()
        assert [entry.name for entry in assembly.contexts] == ["city", "weather:now"]


# --- hooks ------------------------------------------------------------------------------------------------------------


class Follows:
    @hookimpl
    def agent_status(self, agent: Any, status: str) -> None: ...


def mark(monkeypatch: pytest.MonkeyPatch, **marks: Any) -> None:
    for name, value in marks.items():
        monkeypatch.setitem(HookSpecs.agent_status.harness_spec, name, value)  # type: ignore[attr-defined]


async def test_who_implements_a_deprecated_hook_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    mark(monkeypatch, warn_on_impl=deprecated("the hook agent_status", instead="agent_state", since="0.3"))
    async with harness_of() as harness:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            await harness.install(source("follows", Follows))
            await harness.install(source("follows", Follows), scope=harness.scope("inner"))
    [warning] = told(caught)
    assert str(warning) == (
        "plugin 'follows' (dist-follows 1.4) uses the hook agent_status, which goes with pluggy-harness 0.5. "
        "Use agent_state."
    )
    assert len(caught) == 1
    assert (caught[0].filename, caught[0].lineno) == (__file__, Follows.agent_status.__code__.co_firstlineno)


async def test_who_takes_a_deprecated_argument_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Modest:
        @hookimpl
        def agent_status(self, status: str) -> None: ...

    argument = deprecated("the argument agent of agent_status", instead="agent_id", since="0.3")
    mark(monkeypatch, warn_on_impl_args={"agent": argument})
    async with harness_of() as harness:
        await harness.install(Modest)
        with pytest.warns(HarnessDeprecationWarning, match="plugin 'follows' .* uses the argument agent of"):
            await harness.install(source("follows", Follows))
