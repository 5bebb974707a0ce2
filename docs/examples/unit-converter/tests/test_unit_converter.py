"""The tool converts, refuses in words that a model can use, and its guidance comes and goes with it."""

from __future__ import annotations

from typing import Any

import pytest
from harness_unit_converter import UnitConverter
from harness_unit_converter.units import UNITS, converted

from harness_core import render_prompt
from harness_core.models import ToolResultMessage
from harness_core.testing import AgentFactory, HarnessFactory, ScriptedAnswer, ScriptedModel, plugin_contract

pytestmark = pytest.mark.anyio

test_contract = plugin_contract(UnitConverter)


def call(value: float, source: str, target: str) -> tuple[str, dict[str, Any]]:
    return "convert_unit", {"value": value, "from": source, "to": target}


async def test_calls_of_one_answer_are_carried_out_in_its_order(
    agent: AgentFactory, scripted_model: ScriptedModel
) -> None:
    calls = [call(26.2, "mi", "km"), call(451, "F", "C"), call(1, "lb", "m"), call(1, "stone", "kg")]
    scripted_model.add(ScriptedAnswer(calls=calls), "Done.")
    async with agent(UnitConverter) as it:
        assert (await it.run("How far, how hot, how much?")).ok
    results = [each for each in scripted_model.requests[1].messages if isinstance(each, ToolResultMessage)]
    assert [each.text for each in results[:3]] == [
        "26.2 mi = 42.1648128 km",
        "451 F = 232.7777778 C",
        "This cannot be converted: lb measures mass, and m measures length.",
    ]
    assert "'stone' is not one of" in results[3].text
    assert [each.is_error for each in results] == [False, False, True, True]


async def test_guidance_goes_where_the_tool_is_hidden(harness: HarnessFactory) -> None:
    async with harness(UnitConverter) as running:
        assert "convert_unit" in render_prompt(await running.assemble())
        reader = running.root.child("reader")
        reader.tools.restrict(deny=["convert_unit"])
        assembly = await running.assemble(reader)
        assert (render_prompt(assembly), assembly.tools) == ("", [])


@pytest.mark.parametrize("source", UNITS)
def test_every_unit_converts_to_those_of_its_kind_and_back(source: str) -> None:
    for target, (kind, *_) in UNITS.items():
        if kind == UNITS[source][0]:
            assert float(converted(float(converted(12.5, source, target)), target, source)) == pytest.approx(12.5)
