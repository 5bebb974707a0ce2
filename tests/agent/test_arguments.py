"""The quick check of arguments never says yes where the validator says no."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from harness_core.agent.arguments import _quick_check, misfit, parsed
from harness_core.models import ToolSchema

kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
values = st.sampled_from(["", "x", 0, 1, True, False, None, 1.0, 1.5, [], [1], {}, {"a": 1}])
names = st.sampled_from(["a", "b", "c"])
properties = st.fixed_dictionaries({}, optional={"type": kinds, "description": st.just("Words.")})
flat = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "properties": st.dictionaries(names, properties, max_size=3),
        "required": st.lists(names, max_size=2, unique=True),
        "additionalProperties": st.booleans(),
    },
)


@given(flat, st.dictionaries(names, values, max_size=3))
def test_a_quick_yes_is_a_yes(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    tool = ToolSchema("t", "", schema)
    quick = _quick_check(tool)
    valid = jsonschema.Draft202012Validator(schema).is_valid(arguments)
    assert quick is not None
    if quick(arguments):
        assert valid
    assert (misfit(tool, arguments) is None) == valid


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        ({"properties": {"a": {"enum": ["x"]}}}, {"a": "y"}),
        ({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}, {"a": [1]}),
        ({"properties": {"a": {"type": ["string", "null"]}}}, {"a": 1}),
        ({"properties": {"a": False}}, {"a": 1}),
        ({"minProperties": 1}, {}),
        ({"additionalProperties": {"type": "string"}}, {"a": 1}),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}),
        ({"type": "array"}, {}),
    ],
)
def test_what_is_more_than_flat_goes_to_the_validator(schema: dict[str, Any], wrong: dict[str, Any]) -> None:
    assert misfit(ToolSchema("t", "", schema), wrong) is not None


def test_a_number_keeps_its_value_and_text_its_characters() -> None:
    assert parsed('{"a": 1, "b": 1.0, "c": "\\u00e9\u00e9"}') == {"a": 1, "b": 1.0, "c": "éé"}
