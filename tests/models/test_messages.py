"""Messages: what they refuse, and that every way of writing them gives the same text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness_core.errors import JsonValueError
from harness_core.models import (
    AssistantMessage,
    ReasoningBlock,
    Source,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    message_from_json,
)
from harness_core.models.messages import canonical_message

text = st.text(st.characters(exclude_categories=["Cs"]))
blocks = (
    st.builds(TextBlock, text)
    | st.builds(ReasoningBlock, text, st.none() | text)
    | st.builds(ToolCallBlock, text, text, text)
)
texts = st.lists(st.builds(TextBlock, text), max_size=3)
sources = st.builds(
    Source, text, st.none() | text, st.none() | text, st.just({}) | st.just({"sections": [{"name": "a"}]})
)
messages = (
    st.builds(UserMessage, id=text, content=texts, source=sources)
    | st.builds(AssistantMessage, content=st.lists(blocks, max_size=4))
    | st.builds(ToolResultMessage, call_id=text, name=text, content=texts, is_error=st.booleans())
)


@given(messages)
def test_the_canonical_text_is_what_json_writes_and_reads_back_as_the_same_message(message: Any) -> None:
    written = canonical_message(message)
    assert written == json.dumps(message.to_json(), ensure_ascii=False, separators=(",", ":"))
    assert message_from_json(json.loads(written)) == message


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: TextBlock(None), "$.text"),
        (lambda: ToolCallBlock("a", 1, ""), "$.name"),
        (lambda: UserMessage(id=3, content="x"), "$.id"),
        (lambda: AssistantMessage(content=[UserMessage(id="a", content="x")]), "$.content"),
        (lambda: UserMessage(id="a", content=[ToolCallBlock("a", "b", "c")]), "$.content"),
        (lambda: Source(data={"a": {1: 2}}), "$.a"),
    ],
)
def test_a_record_that_a_log_could_not_give_back_is_refused_where_it_is_made(make: Any, path: str) -> None:
    with pytest.raises(JsonValueError) as caught:
        make()
    assert caught.value.entry == path
