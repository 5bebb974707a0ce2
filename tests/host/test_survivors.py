"""Whatever comes and goes, in whatever order: what is left is as if only the survivors had ever been there."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given, settings, strategies as st

from harness_core import (
    Harness,
    PluginContext,
    PromptAssembly,
    PromptSettings,
    Section,
    ToolSchema,
    hookimpl,
    render_context_snapshot,
    render_prompt,
)
from harness_core.errors import DuplicateNameError
from harness_core.host import discover


class Contributor:
    """A plugin that contributes to every lane, under names that others may have taken."""

    def __init__(self, number: int) -> None:
        self.name = f"p{number}"
        self.number = number

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        n = self.number
        ctx.prompt.variable(f"v{n}", lambda _: str(n))
        ctx.prompt.section(f"s{n % 4}", f"section {n} {{{{v{n}}}}}", order=n % 3)
        ctx.prompt.context(f"c{n % 5}", f"context {n}", order=n % 2)
        ctx.tools.register(ToolSchema(f"t{n % 6}", f"tool {n}"), lambda call: "")

    @hookimpl
    def system_prompt_assemble(self, assembly: PromptAssembly) -> None:
        assembly.sections.append(Section(f"heard {self.number}", f"by {self.number}"))


class Plain:
    """The same registrations without a plugin around them."""

    def __init__(self, number: int) -> None:
        self.number = number

    def register(self, scope: Any) -> list[Any]:
        n = self.number
        return [scope.prompt.section(f"plain {n % 3}", f"plain {n}", order=n % 3)]


actions = st.lists(
    st.one_of(
        st.tuples(st.just("install"), st.integers(0, 9), st.integers(0, 2)),
        st.tuples(st.just("register"), st.integers(0, 9), st.integers(0, 2)),
        st.tuples(st.just("undo"), st.integers(0, 30), st.just(0)),
    ),
    max_size=25,
)


async def look(harness: Harness, scopes: list[Any]) -> list[Any]:
    seen = []
    for scope in scopes:
        assembly = await harness.assemble(scope)
        seen.append((render_prompt(assembly), render_context_snapshot(assembly), assembly.tools, assembly.variables))
        for hook in ("system_prompt_assemble", "agent_pre_step"):
            seen.append([(each.plugin, each.scope.name) for each in harness.listeners(hook, scope)])
    return seen


async def perform(steps: list[tuple[str, int, int]], undo: bool) -> tuple[list[Any], list[tuple[str, int, int]]]:
    """Do the steps; returns what is seen, and the steps whose effects survived, in their order."""
    async with Harness(PromptSettings(identity=False), autoload=False) as harness:
        scopes = [harness.root, harness.root.child("one")]
        scopes.append(scopes[1].child("two"))
        live: list[tuple[tuple[str, int, int], list[Any]]] = []
        for step in steps:
            what, number, where = step
            try:
                if what == "install":
                    live.append((step, [await harness.install(Contributor(number), scope=scopes[where])]))
                elif what == "register":
                    live.append((step, Plain(number).register(scopes[where])))
                elif undo and live:
                    _, handles = live.pop(number % len(live))
                    for handle in handles:
                        await handle.aclose()
            except DuplicateNameError:
                continue
            await harness.assemble(scopes[2])
        return await look(harness, scopes), [step for step, _ in live]


@settings(max_examples=60)
@given(actions)
def test_only_the_survivors_count(steps: list[tuple[str, int, int]]) -> None:
    async def both() -> None:
        seen, survivors = await perform(steps, undo=True)
        fresh, again = await perform(survivors, undo=False)
        assert again == survivors
        assert seen == fresh

    anyio.run(both)


INSTALLED = discover()


@pytest.mark.anyio
@pytest.mark.parametrize("source", INSTALLED, ids=lambda source: source.name)
async def test_a_shipped_plugin_that_came_and_went_changes_no_byte(source: Any) -> None:
    async with Harness(PromptSettings("P"), autoload=False) as harness:
        scope = harness.root.child("agent")
        before = await look(harness, [harness.root, scope])
        for target in (harness.root, scope):
            activation = await harness.install(source, scope=target, config=SETTINGS.get(source.name))
            await harness.assemble(target)
            await activation.aclose()
            assert await look(harness, [harness.root, scope]) == before
            assert len(harness.activations) == 0


SETTINGS: dict[str, Any] = {"agent-instructions": {"max_bytes": 10_000}}
"""What a plugin cannot do without."""


def test_there_are_shipped_plugins_to_try() -> None:
    assert "workspace" in [source.name for source in INSTALLED]
