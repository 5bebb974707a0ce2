"""Whole answers, however their bytes arrive."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harness_core.models import (
    Chunk,
    ChunkAssembler,
    Finish,
    ReasoningBlock,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    Usage,
    UsageReport,
)

pytestmark = pytest.mark.anyio


def assembled(chunks: list[Chunk]) -> ChunkAssembler:
    assembler = ChunkAssembler()
    for chunk in chunks:
        assembler.add(chunk)
    return assembler


ANSWER = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None, "reasoning_content": "räson"}}]},
    {"choices": [{"index": 0, "delta": {"content": "grün \U0001f600 日本\u2028"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": 'data: "x"\n\n[DONE]'}, "finish_reason": None}]},
    {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "tool_calls": [
                        {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}}
                    ]
                },
            }
        ]
    },
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"path": "ä'}}]}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '.txt"}'}}]}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}},
]
WHOLE = (
    ReasoningBlock("räson"),
    TextBlock('grün \U0001f600 日本\u2028data: "x"\n\n[DONE]'),
    ToolCallBlock("c1", "read", '{"path": "ä.txt"}'),
)


@pytest.mark.spec("LLM-01")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_an_answer_is_the_same_wherever_its_bytes_are_cut(http: Any, data: st.DataObject) -> None:
    ending = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    escaped = data.draw(st.booleans())
    lines = [f"data:{' ' * data.draw(st.integers(0, 1))}{json.dumps(e, ensure_ascii=escaped)}" for e in ANSWER]
    lines.insert(data.draw(st.integers(0, len(lines))), ": keep-alive")
    body = "".join(f"{line}{ending}{ending}" for line in [*lines, "data: [DONE]"]).encode()
    if data.draw(st.booleans(), label="every byte alone"):
        cuts = list(range(len(body)))
    else:
        cuts = sorted(data.draw(st.sets(st.integers(1, len(body) - 1), max_size=30)))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    found = assembled(await http.answer_of(http.stream(*pieces)))
    assert found.message().content == WHOLE
    assert found.finish == Finish("tool-calls")
    assert found.usage == Usage(input_tokens=9, output_tokens=4)


def cut_in(body: bytes, inside: bytes, at: int) -> tuple[bytes, bytes]:
    place = body.index(inside) + at
    return body[:place], body[place:]


@pytest.mark.spec("LLM-01")
@pytest.mark.parametrize(
    ("inside", "at"),
    [("😀".encode(), 1), ("😀".encode(), 2), (b"data: ", 3), (b"data: ", 6), (b'"content"', 4), (b"\n\n", 1)],
)
async def test_chunk_boundaries_inside_characters_fields_and_strings(http: Any, inside: bytes, at: int) -> None:
    body = http.sse(http.delta(content="a😀b"), http.delta("stop"))
    found = await http.answer_of(http.stream(*cut_in(body, inside, at)))
    assert found == [TextDelta("a😀b"), Finish("stop")]


@pytest.mark.parametrize("kind", ["text/event-stream; charset=latin-1", "Text/Event-Stream;charset=utf-16"])
async def test_event_streams_are_utf_8_whatever_the_server_says(http: Any, kind: str) -> None:
    body = http.sse(http.delta(content="grün"), http.delta("stop"))
    assert (await http.answer_of(http.stream(body, kind=kind)))[0] == TextDelta("grün")


@pytest.mark.spec("LLM-01")
async def test_half_characters_in_two_events_become_one(http: Any) -> None:
    halves = r'{"choices":[{"delta":{"content":"x\ud83d"}}]}', r'{"choices":[{"delta":{"content":"\ude00y"}}]}'
    found = await http.answer_of(http.stream(http.sse(*halves, http.delta("stop"))))
    assert found == [TextDelta("x"), TextDelta("😀y"), Finish("stop")]


async def test_a_lone_half_of_a_character_is_replaced_so_that_a_log_can_hold_it(http: Any) -> None:
    lone = r'{"choices":[{"delta":{"content":"x\ude00y\ud83d"}}]}'
    found = await http.answer_of(http.stream(http.sse(lone, http.delta("stop"))))
    assert found == [TextDelta("x\ufffdy"), TextDelta("\ufffd"), Finish("stop")]


@pytest.mark.spec("LLM-01")
async def test_usage_comes_before_the_finish_even_when_the_server_sends_it_after(http: Any) -> None:
    found = await http.answer_of(http.stream(http.sse(*http.hello)))
    assert found == [TextDelta("hel"), TextDelta("lo"), UsageReport(Usage(input_tokens=3)), Finish("stop")]


@pytest.mark.parametrize(
    ("reason", "neutral"),
    [("stop", "stop"), ("length", "max-tokens"), ("tool_calls", "tool-calls"), ("function_call", "tool-calls")],
)
async def test_finish_reasons(http: Any, reason: str, neutral: str) -> None:
    assert (await http.answer_of(http.stream(http.sse(http.delta(reason)))))[-1] == Finish(neutral)  # type: ignore[arg-type]


async def test_a_body_that_ends_with_the_connection_and_without_done_is_whole_if_it_was_finished(http: Any) -> None:
    play = http.Play(pieces=[http.head(chunked=False) + http.sse(*http.hello, done=False)], then="close")
    assert (await http.answer_of(play))[-1] == Finish("stop")


async def test_a_cut_after_the_finish_reason_loses_token_counts_and_not_the_answer(http: Any) -> None:
    play = http.stream(http.sse(http.delta(content="all"), http.delta("stop"), done=False), ended=False)
    play.then = "close"
    assert await http.answer_of(play) == [TextDelta("all"), Finish("stop")]


async def test_a_server_that_keeps_silent_after_the_finish_reason_is_not_waited_for_long(
    http: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_openai.adapter._REST_SECONDS", 0.02)
    play = http.stream(http.sse(http.delta(content="all"), http.delta("stop"), done=False), ended=False)
    play.then = "hang"
    with anyio.fail_after(20):
        assert await http.answer_of(play) == [TextDelta("all"), Finish("stop")]


async def test_a_server_that_says_done_and_keeps_the_body_open_is_not_waited_for_long(http: Any) -> None:
    play = http.stream(http.sse(*http.hello), ended=False)
    play.then = "hang"
    with anyio.fail_after(20):
        assert (await http.answer_of(play))[-1] == Finish("stop")


async def test_connections_are_used_again(http: Any) -> None:
    async with http.playing(*[http.stream(http.sse(*http.hello)) for _ in range(3)]) as server:
        adapter = http.adapter_for(server.url)
        for _ in range(3):
            assert (await http.ask(adapter))[-1] == Finish("stop")
        await adapter.retire()
        assert (server.connections, len(server.received)) == (1, 3)


async def test_leaving_a_stream_early_closes_it_and_the_next_request_works(http: Any) -> None:
    endless = http.stream(http.sse(*[http.delta(content="x")] * 50, done=False), ended=False)
    endless.then = "hang"
    async with http.playing(endless, http.stream(http.sse(*http.hello))) as server:
        adapter = http.adapter_for(server.url)
        async with adapter.stream(http.request()) as chunks:
            assert await anext(chunks) == TextDelta("x")
        await server.gone.wait()
        assert (await http.ask(adapter))[-1] == Finish("stop")
        await adapter.retire()


@pytest.mark.spec("HDR-06")
async def test_a_retired_adapter_finishes_what_is_under_way_and_closes_then(http: Any) -> None:
    async with http.playing(http.stream(http.sse(*http.hello)), http.stream(http.sse(*http.hello))) as server:
        adapter = http.adapter_for(server.url)
        async with adapter.stream(http.request()) as chunks:
            first = await anext(chunks)
            await adapter.retire()
            rest = [each async for each in chunks]
        assert (first, rest[-1]) == (TextDelta("hel"), Finish("stop"))
        assert adapter._connections._client is None
        assert (await http.ask(adapter))[-1] == Finish("stop")
        assert adapter._connections._client is None
