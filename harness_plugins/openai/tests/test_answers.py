"""Events of many servers as neutral chunks: tool calls, reasoning, token counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness_openai.answer import Answer
from harness_openai.usage import usage_of

from harness_core.models import (
    Chunk,
    ChunkAssembler,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallBlock,
    ToolCallStart,
    Usage,
)


def read(*events: dict[str, Any]) -> list[Chunk]:
    answer = Answer(lambda number: f"new{number}")
    chunks = [chunk for event in events for chunk in answer.read(json.dumps(event))]
    assert answer.problem() is None
    return chunks + list(answer.end(None))


def calls(*fragments: list[dict[str, Any]], finish: str = "tool_calls") -> tuple[ToolCallBlock, ...]:
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": each}}]} for each in fragments]
    assembler = ChunkAssembler()
    for chunk in read(*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}):
        assembler.add(chunk)
    assert assembler.finish == Finish("tool-calls")
    return assembler.message().tool_calls


def part(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    fragment: dict[str, Any] = {} if index is None else {"index": index}
    if call_id is not None:
        fragment["id"] = call_id
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**fragment, "function": function} if function else fragment


@pytest.mark.spec("LLM-01")
class TestToolCalls:
    def test_fragments_of_several_calls_are_joined_by_index(self) -> None:
        assert calls(
            [part(0, "a", "read", ""), part(1, "b", "list", "")],
            [part(1, arguments='{"d')],
            [part(0, arguments='{"p": 1')],
            [part(1, arguments='": 2}'), part(0, arguments="}")],
        ) == (ToolCallBlock("a", "read", '{"p": 1}'), ToolCallBlock("b", "list", '{"d": 2}'))

    def test_the_chunks_themselves(self) -> None:
        event = {"choices": [{"delta": {"tool_calls": [part(0, "a", "read", "{}")]}, "finish_reason": "tool_calls"}]}
        assert read(event) == [ToolCallStart(0, "a", "read"), ToolArgumentsDelta(0, "{}"), Finish("tool-calls")]

    def test_indexes_that_start_anywhere_are_counted_from_nought(self) -> None:
        event = {
            "choices": [
                {"delta": {"tool_calls": [part(7, "a", "read"), part(3, "b", "list")]}, "finish_reason": "stop"}
            ]
        }
        assert read(event)[:2] == [ToolCallStart(0, "a", "read"), ToolCallStart(1, "b", "list")]

    def test_a_name_that_comes_late(self) -> None:
        assert calls([part(0, "a")], [part(0, arguments='{"p"')], [part(0, name="read", arguments=": 1}")]) == (
            ToolCallBlock("a", "read", '{"p": 1}'),
        )

    def test_an_id_that_comes_late(self) -> None:
        assert calls([part(0, arguments="")], [part(0, "a", "read", "{}")]) == (ToolCallBlock("a", "read", "{}"),)

    def test_an_id_and_a_name_that_are_repeated_in_each_fragment(self) -> None:
        assert calls([part(0, "a", "read", '{"p"')], [part(0, "a", "read", ": 1}")]) == (
            ToolCallBlock("a", "read", '{"p": 1}'),
        )

    def test_all_calls_under_one_index_or_none(self) -> None:
        for index in (0, None):
            assert calls(
                [part(index, "a", "read", "{}")], [part(index, "b", "list", '{"x"')], [part(index, arguments=": 1}")]
            ) == (ToolCallBlock("a", "read", "{}"), ToolCallBlock("b", "list", '{"x": 1}'))

    def test_ids_that_are_missing_or_given_twice_are_made(self) -> None:
        found = calls(
            [part(0, "", "read", "{}"), part(1, "x", "list", "{}"), part(2, "x", "now", "{}"), part(3, None, "y")]
        )
        assert [call.id for call in found] == ["new0", "x", "new2", "new3"]

    def test_arguments_that_are_no_text_but_an_object(self) -> None:
        assert calls([part(0, "a", "read", {"p": "ä"})]) == (ToolCallBlock("a", "read", '{"p":"ä"}'),)

    def test_a_server_that_says_stop_after_a_call(self) -> None:
        assert calls([part(0, "a", "read", "{}")], finish="stop") == (ToolCallBlock("a", "read", "{}"),)

    def test_half_a_character_in_arguments(self) -> None:
        assert calls([part(0, "a", "read", '"\ud83d')], [part(0, arguments='\ude00"')])[0].arguments == '"😀"'


@pytest.mark.spec("LLM-01")
class TestReasoning:
    @pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
    def test_it_is_kept_apart(self, name: str) -> None:
        assert read(
            {"choices": [{"delta": {name: "hm", "content": None}}]},
            {"choices": [{"delta": {name: None, "content": "42"}, "finish_reason": "stop"}]},
        ) == [ReasoningDelta("hm"), TextDelta("42"), Finish("stop")]

    def test_a_server_that_sends_it_under_both_names_is_read_once(self) -> None:
        event = {"choices": [{"delta": {"reasoning_content": "hm", "reasoning": "hm"}, "finish_reason": "stop"}]}
        assert read(event) == [ReasoningDelta("hm"), Finish("stop")]


def test_a_refusal_is_shown() -> None:
    assert read({"choices": [{"delta": {"refusal": "no"}, "finish_reason": "stop"}]}) == [
        TextDelta("no"),
        Finish("stop"),
    ]


def test_other_choices_are_not_read() -> None:
    event = {
        "choices": [
            {"index": 1, "delta": {"content": "b"}},
            {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"},
        ]
    }
    assert read(event) == [TextDelta("a"), Finish("stop")]


@pytest.mark.spec("LLM-03")
@pytest.mark.parametrize(
    ("event", "usage"),
    [
        (
            {
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "prompt_cache_hit_tokens": 64,
                    "prompt_cache_miss_tokens": 36,
                    "prompt_tokens_details": {"cached_tokens": 1},
                    "completion_tokens_details": {"reasoning_tokens": 5},
                },
                "timings": {"cache_n": 2},
            },
            Usage(input_tokens=100, output_tokens=20, cached_tokens=64, reasoning_tokens=5),
        ),
        (
            {"usage": {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 80}}, "timings": {"cache_n": 2}},
            Usage(input_tokens=100, output_tokens=20, cached_tokens=80),
        ),
        (
            {"timings": {"cache_n": 30, "prompt_n": 12, "predicted_n": 4, "predicted_ms": 3.5}},
            Usage(input_tokens=42, output_tokens=4, cached_tokens=30),
        ),
        (
            {"usage": {"prompt_tokens": 7, "prompt_cache_hit_tokens": 0}},
            Usage(input_tokens=7, cached_tokens=0),
        ),
        ({"usage": {"prompt_tokens": "7", "completion_tokens": True, "prompt_tokens_details": 3}}, None),
        ({"usage": {"prompt_tokens": -1}}, None),
        ({"usage": None}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_token_counts(event: dict[str, Any], usage: Usage | None) -> None:
    assert usage_of(event) == usage


@pytest.mark.spec("LLM-01")
def test_the_last_counts_count() -> None:
    answer = Answer(str)
    for number in (1, 2):
        list(answer.read(json.dumps({"choices": [], "usage": {"prompt_tokens": number}})))
    list(answer.read(json.dumps({"choices": [], "usage": None})))
    assert answer.usage == Usage(input_tokens=2)
