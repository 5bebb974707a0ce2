"""The plugin: one tool, and guidance that is there only where the model can see the tool."""

from __future__ import annotations

from harness_core import PluginContext, ToolCall, ToolOutcome, ToolSchema, hookimpl
from harness_unit_converter.units import UNITS, converted

__all__ = ["UnitConverter"]

SECTION_ORDER = 140
"""Guidance for a tool stands between 100 and 200."""

_UNIT = {"type": "string", "enum": list(UNITS)}

CONVERT = ToolSchema(
    "convert_unit",
    "Convert a value from one unit to another: length, mass or temperature.",
    {
        "type": "object",
        "properties": {"value": {"type": "number"}, "from": _UNIT, "to": _UNIT},
        "required": ["value", "from", "to"],
        "additionalProperties": False,
    },
)


class UnitConverter:
    """Converts units exactly, where a model would guess."""

    name = "unit-converter"

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        # Calls share nothing, so several of one answer may run side by side.
        ctx.tools.register(CONVERT, convert, parallel_safe=True)
        ctx.prompt.section(
            "unit-converter:how",
            "Convert units with convert_unit, never in your head.",
            order=SECTION_ORDER,
            tools=[CONVERT.name],
        )


def convert(call: ToolCall) -> ToolOutcome:
    """Carry out a call. Its arguments fit the schema: what does not is refused before a handler sees it."""
    value: float = call.arguments["value"]
    source: str = call.arguments["from"]
    target: str = call.arguments["to"]
    try:
        result = converted(value, source, target)
    except ValueError as error:
        return ToolOutcome(content=f"This cannot be converted: {error}.", error="DIFFERENT_KINDS")
    return ToolOutcome(content=f"{value:g} {source} = {float(result):.10g} {target}", meta={"exact": str(result)})
