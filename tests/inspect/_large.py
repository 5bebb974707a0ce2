"""An assembly of 200 listeners, 500 sections and 1,000 tools, traced."""

from __future__ import annotations

from typing import Any

import attrs

from harness_core import Harness, Section, ToolSchema, hookimpl
from harness_core.inspect import hook_order, render_page, tool_writers, trace_document, traced_step

LISTENERS, SECTIONS, TOOLS = 200, 500, 1_000


class Ground:
    name = "ground"

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        for number in range(SECTIONS):
            text = f"Section {number} says what it says, and goes on for a while. " * 4
            ctx.prompt.section(f"ground:section-{number}", text + "{{city}}", order=number)
        ctx.prompt.variable("city", lambda _: "Paris")
        parameters = {"type": "object", "properties": {"x": {"type": "integer", "description": "How many. " * 30}}}
        for number in range(TOOLS):
            ctx.tools.register(
                ToolSchema(f"tool-{number:04}", f"Does thing number {number}.", parameters), lambda call: ""
            )


class Listening:
    def __init__(self, number: int) -> None:
        self.name = f"listener-{number}"
        self.number = number

    @hookimpl
    async def system_prompt_assemble(self, assembly: Any, call_next: Any) -> Any:
        result = await call_next()
        name = f"ground:section-{self.number}"
        result.replace_section(result.section(name).with_text(f"Rewritten by {self.number}."))
        if self.number % 10 == 0:
            result.sections.append(Section(f"extra-{self.number}", f"Added by {self.number}."))
            tool = result.tools[self.number]
            result.tools[self.number] = attrs.evolve(tool, description=f"{tool.description} Really.")
        return result


async def large_page() -> str:
    plugins = [Ground(), *(Listening(number) for number in range(LISTENERS))]
    async with Harness(plugins=plugins, autoload=False) as harness:
        traced = await traced_step(harness, harness.root, ["hello"])
        document = trace_document(
            traced.assembly,
            traced.step,
            orders=[hook_order(harness, "system_prompt_assemble")],
            tools=tool_writers(harness, harness.root),
        )
    return render_page("A large assembly", facts={"scope": "global"}, trace=document)
