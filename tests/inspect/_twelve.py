"""Twelve plugins in all styles over three scopes: what each of them does to an assembly, and to a step, is known.

Two conflict (shouting and whisper), one drops a message (postman), one reorders tools (sorter), one changes a variable
(travel). EXPECTED and EXPECTED_STEP say who changes what, in the order in which listeners are called.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs

from harness_core import ContextEntry, Enter, Harness, PromptSettings, Scope, Section, ToolSchema, hookimpl

RULES = "House rules: be brief, and be kind."


class Ground:
    """Registers what the others work on; listens to nothing."""

    name = "ground"

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.section("house:rules", RULES, order=10)
        ctx.prompt.section("house:place", lambda _: "We are in {{city}}.", order=20)
        ctx.prompt.section("house:late", "Goodbye.", order=90)
        ctx.prompt.variable("city", lambda _: "Paris")
        ctx.prompt.context("weather", lambda _: "sunny", order=10)
        ctx.prompt.context("noise", lambda _: "a hum", order=20)
        for name in ("alpha", "beta", "gamma"):
            ctx.tools.register(ToolSchema(name, f"Does {name} things."), lambda call: "done")


class Quiet:
    name = "quiet"

    @hookimpl
    def system_prompt_assemble(self, assembly: Any) -> None:
        assembly.section("house:rules")


class StyleGuide:
    name = "style-guide"

    @hookimpl
    def system_prompt_assemble(self, assembly: Any) -> None:
        assembly.sections.append(Section("style", "Write short sentences."))


class Shouting:
    name = "shouting"

    @hookimpl
    async def system_prompt_assemble(self, assembly: Any, call_next: Any) -> Any:
        rules = assembly.section("house:rules")
        assembly.replace_section(rules.with_text(rules.text + " SHOUT WHEN IT MATTERS."))
        return await call_next()


class Whisper:
    name = "whisper"

    @hookimpl(wrapper=True)
    def system_prompt_assemble(self, assembly: Any) -> Any:
        result = yield
        result.replace_section(result.section("house:rules").with_text(RULES + " Whisper."))
        return result


class Sorter:
    name = "sorter"

    @hookimpl
    async def system_prompt_assemble(self, call_next: Any) -> Any:
        result = await call_next()
        result.tools.insert(0, result.tools.pop())
        return result


class Travel:
    name = "travel"

    @hookimpl
    def system_prompt_assemble(self, assembly: Any) -> None:
        assembly.variables["city"] = "Rome"


class Policy:
    name = "policy"

    @hookimpl(tryfirst=True)
    async def system_prompt_assemble(self, assembly: Any, context: Any, call_next: Any) -> Any:
        return await call_next()

    @hookimpl(tryfirst=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        return await call_next()


class Polish:
    name = "polish"

    @hookimpl(wrapper=True, tryfirst=True)
    def system_prompt_assemble(self) -> Any:
        result = yield
        beta = result.tool("beta")
        result.replace_tool(attrs.evolve(beta, description=beta.description.replace("things", "lovely things")))
        return result


class Trimmer:
    name = "trimmer"

    @hookimpl(trylast=True)
    def system_prompt_assemble(self, assembly: Any) -> None:
        assembly.contexts.remove(assembly.context("noise"))


class Reader:
    name = "reader"

    @hookimpl
    def system_prompt_assemble(self, call_next: Any) -> Any:
        return call_next()  # a plain function that hands on the awaitable


class Evolver:
    name = "evolver"

    @hookimpl
    def system_prompt_assemble(self, assembly: Any) -> Any:
        extra = ContextEntry("moon", "waxing")
        return attrs.evolve(assembly, contexts=[*assembly.contexts, extra])


class Postman:
    name = "postman"

    @hookimpl
    async def system_prompt_assemble(self, assembly: Any, call_next: Any) -> Any:
        return await call_next(assembly)

    @hookimpl
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        decision = await call_next()
        return Enter(message for message in decision.messages if message.text != "spam")


GLOBAL = (Quiet, StyleGuide, Shouting, Whisper, Sorter, Travel)
TEAM = (Policy, Polish, Trimmer)
REVIEWER = (Reader, Evolver, Postman)

EXPECTED: dict[str, set[tuple[str, str, str]]] = {
    "polish": {("tools", "rewritten", "beta")},
    "whisper": {("sections", "rewritten", "house:rules")},
    "policy": set(),
    "postman": set(),
    "evolver": {("contexts", "added", "moon")},
    "reader": set(),
    "travel": {("variables", "rewritten", "city")},
    "sorter": {("tools", "moved", "gamma")},
    "shouting": {("sections", "rewritten", "house:rules")},
    "style-guide": {("sections", "added", "style")},
    "quiet": set(),
    "trimmer": {("contexts", "removed", "noise")},
}
EXPECTED_STEP: dict[str, set[tuple[str, str]]] = {"policy": set(), "postman": {("messages", "removed")}}


@asynccontextmanager
async def twelve() -> AsyncIterator[tuple[Harness, Scope]]:
    """The harness, and the innermost scope."""
    settings = PromptSettings("You are a guide.")
    async with Harness(settings, plugins=[Ground(), *(each() for each in GLOBAL)], autoload=False) as harness:
        team = harness.scope("team")
        reviewer = team.child("reviewer")
        for each in TEAM:
            await harness.install(each(), scope=team)
        for each in REVIEWER:
            await harness.install(each(), scope=reviewer)
        yield harness, reviewer
