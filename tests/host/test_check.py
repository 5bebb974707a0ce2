"""Checks before the first model call: each finding with its code, its place and who is behind it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from harness_core import Harness, Literal, PluginContext, PromptSettings, ToolSchema, hookimpl
from harness_core.host.check import check
from harness_core.host.findings import CODES, Finding, Severity
from harness_core.prompt import UNLISTED_TOOLS

pytestmark = pytest.mark.anyio

SetUp = Callable[[PluginContext], Any]


def plugin(name: str, set_up: SetUp) -> Any:
    class Plugin:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            set_up(ctx)

    made = Plugin()
    made.name = name  # type: ignore[attr-defined]
    return made


async def findings_of(*plugins: Any, settings: PromptSettings | None = None) -> list[Finding]:
    settings = settings or PromptSettings(identity=False)
    async with Harness(settings, plugins=plugins, autoload=False, on_error="skip") as harness:
        agent = harness._plugins.scopes.named("agent")
        return await check(harness, [harness.root, *([agent] if agent is not None else [])])


def numbered() -> Callable[[Any], str]:
    counter = itertools.count()
    return lambda _: f"text {next(counter)}"


def restrict(ctx: PluginContext) -> None:
    ctx.tools.register(ToolSchema("read"), lambda call: "")
    ctx.harness.scope("agent").tools.restrict(deny=["read"])
    ctx.prompt.section("how", "Use `read` for files.", order=7)


CASES: list[tuple[str, SetUp, str | None]] = [
    ("unknown-variable", lambda ctx: ctx.prompt.section("s", "{{ctiy}}", order=7), "s"),
    ("unknown-variable", lambda ctx: ctx.prompt.context("c", ["a", "{{nope}}"], order=7), "c"),
    ("malformed-reference", lambda ctx: ctx.prompt.section("s", "a {{ b }}", order=7), "s"),
    ("malformed-reference", lambda ctx: ctx.prompt.section("s", lambda _: "{{}}", order=7), "s"),
    ("zero-width", lambda ctx: ctx.prompt.section("s", "{\u200b{x}}", order=7), "s"),
    ("zero-width", lambda ctx: ctx.prompt.context("c", Literal("a\u200db"), order=7), "c"),
    ("unstable-section", lambda ctx: ctx.prompt.section("s", numbered(), order=7), "s"),
    ("invalid-schema", lambda ctx: ctx.prompt.tools(lambda _: [ToolSchema("t", "", {"type": "strin"})]), "t"),
    ("duplicate-tools", lambda ctx: ctx.prompt.tools(lambda _: [ToolSchema("t"), ToolSchema("t")]), "t"),
    ("unknown-constraint", lambda ctx: ctx.prompt.section("s", "x", order=7, before="absent"), "s"),
    ("plugin-failed", lambda ctx: ctx.prompt.section("", "x", order=7), None),
    ("assembly-failed", lambda ctx: ctx.prompt.section("s", lambda _: 1 / 0, order=7), None),  # type: ignore[return-value,arg-type]
    ("does-not-undo-itself", lambda ctx: ctx.harness.root.prompt.section("leak", "x", order=7), None),
    ("hidden-tool-named", restrict, "how"),
]


@pytest.mark.spec("UC-03", "UC-12", "UC-18", "D10")
@pytest.mark.parametrize(("code", "set_up", "entry"), CASES)
async def test_each_finding_names_its_plugin_and_entry(code: str, set_up: SetUp, entry: str | None) -> None:
    found = [finding for finding in await findings_of(plugin("culprit", set_up)) if finding.code == code]
    assert found, code
    if code != "assembly-failed":
        assert found[0].plugin == "culprit"
        assert found[0].entry == entry
    assert found[0].message
    assert found[0].remedy


@pytest.mark.spec("X-25", "UC-09")
async def test_ties_between_plugins_are_found_and_ties_within_one_are_not() -> None:
    def one(ctx: PluginContext) -> None:
        ctx.prompt.section(f"{ctx.name} a", "x", order=50)
        ctx.prompt.section(f"{ctx.name} b", "x", order=50)

    assert await findings_of(plugin("alone", one)) == []
    [finding] = await findings_of(plugin("first", one), plugin("second", one))
    assert (finding.code, finding.entry, finding.plugin) == ("tied-orders", "second b", "second")
    assert finding.file == __file__


async def test_the_order_list_two_complete_sections_and_shadows() -> None:
    def complete(ctx: PluginContext) -> None:
        ctx.prompt.section(ctx.name, "x", order=len(ctx.name), complete=True)

    settings = PromptSettings(identity=False, tool_order=["absent", UNLISTED_TOOLS])
    [unknown] = await findings_of(settings=settings)
    assert (unknown.code, unknown.entry) == ("unknown-tools", "tool_order")
    found = await findings_of(plugin("a", complete), plugin("bb", complete))
    assert [finding.code for finding in found] == ["multiple-complete"]

    def shadows(ctx: PluginContext) -> None:
        ctx.prompt.section("s", "far", order=7)
        ctx.harness.scope("agent").prompt.section("s", "near", order=7)

    codes = [finding.code for finding in await findings_of(plugin("p", shadows))]
    assert "shadowed" in codes


async def test_a_sound_composition_has_no_findings() -> None:
    def sound(ctx: PluginContext) -> None:
        ctx.prompt.variable("city", lambda _: "Paris")
        ctx.prompt.section("s", "In {{city}}; use `read`.", order=7, tools=["read"])
        ctx.tools.register(ToolSchema("read", "", {"type": "object"}), lambda call: "")
        ctx.prompt.context("now", numbered(), order=7)  # contexts may change

    assert await findings_of(plugin("sound", sound)) == []


async def test_the_worst_comes_first() -> None:
    def several(ctx: PluginContext) -> None:
        ctx.prompt.section("s", "{{nope}}", order=7, before="absent")
        ctx.prompt.section("t", numbered(), order=8)

    severities = [finding.severity for finding in await findings_of(plugin("p", several))]
    assert severities == sorted(severities, key=list(Severity).index)
    assert {Severity.ERROR, Severity.WARNING, Severity.NOTE} == set(severities)


OF_THE_CONTRACT = {
    *("turn-failed", "not-scoped", "fails-together", "untyped-setting", "not-deterministic", "shared-state"),
    *("breaks-cache", "undescribed-setting", "unprefixed-name", "undocumented-order", "import-effect"),
    *("incomplete-metadata", "slow-import"),
}
"""Codes of `harness plugin check`; tests/testing finds them."""

OF_FILES = {
    "composition",
    "not-installed",
    "start-failed",
    "ambiguous-plugin",
    "unknown-plugin",
    "unknown-contribution",
}
"""Codes that are about a composition's file; tests/compositions finds them."""


def test_every_code_is_found_by_a_test_or_named_here() -> None:
    tested = {code for code, _, _ in CASES} | {"tied-orders", "unknown-tools", "multiple-complete", "shadowed"}
    assert set(CODES) - tested - OF_THE_CONTRACT - OF_FILES == {"unstable-tool"}
