"""Bodies joined from encoded parts are what a JSON encoder writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness_core.models import ToolSchema, UserMessage, encoded_array, encoded_object

calls: list[str] = []


def wire(message: UserMessage) -> str:
    calls.append(message.id)
    return json.dumps({"role": "user", "content": message.text}, ensure_ascii=False, separators=(",", ":"))


def wire_tool(tool: ToolSchema) -> str:
    return tool.canonical


def silent(message: UserMessage) -> str:
    return "" if message.text == "drop" else wire(message)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: _encodes(value))


def _encodes(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.spec("LLM-05")
@given(
    st.dictionaries(st.text('abc\u00e9\u2028"', min_size=1), values, max_size=4),
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5),
    st.lists(st.dictionaries(st.text("xyz"), values, max_size=3), max_size=3),
)
def test_joined_bytes_are_what_json_would_write(
    fields: dict[str, Any], texts: list[str], parameters: list[dict[str, Any]]
) -> None:
    messages = [UserMessage(id="m", content=text) for text in texts]
    tools = [ToolSchema("t", "d", each) for each in parameters]
    body = encoded_object(
        {**fields, "messages": encoded_array(messages, wire), "tools": encoded_array(tools, wire_tool)}
    )
    plain = {
        **fields,
        "messages": [{"role": "user", "content": text} for text in texts],
        "tools": [{"name": "t", "description": "d", "parameters": each} for each in parameters],
    }
    assert body == json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.spec("LLM-05")
def test_each_record_is_encoded_once_and_a_longer_request_shares_its_bytes() -> None:
    calls.clear()
    messages = [UserMessage(id=str(number), content="x") for number in range(3)]
    first = encoded_array(messages[:2], wire, before=['{"role":"system"}'])
    second = encoded_array(messages, wire, before=['{"role":"system"}'])
    assert calls == ["0", "1", "2"]
    assert second.startswith(first[:-1])


def test_an_item_without_text_is_left_out() -> None:
    messages = [UserMessage(id="1", content="drop"), UserMessage(id="2", content="keep")]
    assert json.loads(encoded_array(messages, silent)) == [{"role": "user", "content": "keep"}]
