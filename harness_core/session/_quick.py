"""The data of the commonest events as JSON text, written out: the same text as the general way gives, several times sooner.

Only for speed: a test compares every function here with the general way. What is not in the table takes that.
"""

from __future__ import annotations

import json.encoder
from collections.abc import Callable
from typing import Any

from harness_core._json import canonical
from harness_core.models.chunks import Chunk, Finish, TextDelta, ToolArgumentsDelta
from harness_core.models.messages import canonical_message
from harness_core.session.events import (
    AssistantChunk,
    AssistantMessageLogged,
    RequestDispatch,
    StepEnd,
    StepStart,
    ToolCallStarted,
    ToolResultLogged,
    TurnStart,
    UserMessageLogged,
)

__all__ = ["QUICK", "quoted"]

quoted: Callable[[str], str] = json.encoder.encode_basestring
"""A string as JSON, with all characters but the control ones and the quote as they are."""


def _turn(data: TurnStart) -> str:
    return f'{{"turn":{data.turn}}}'


def _step(data: StepStart | StepEnd) -> str:
    return f'{{"turn":{data.turn},"step":{data.step}}}'


def _user(data: UserMessageLogged) -> str:
    return f'{{"message":{canonical_message(data.message)}}}'


def _chunk(data: AssistantChunk) -> str:
    return f'{{"turn":{data.turn},"step":{data.step},"chunk":{_chunk_text(data.chunk)}}}'


def _chunk_text(chunk: Chunk) -> str:
    match chunk:
        case TextDelta(text=text):
            return f'{{"type":"text","text":{quoted(text)}}}'
        case ToolArgumentsDelta(index=index, arguments=arguments) if type(index) is int:
            return f'{{"type":"tool-arguments","index":{index},"arguments":{quoted(arguments)}}}'
        case Finish(reason=reason, failure=None):
            return f'{{"type":"finish","reason":"{reason}"}}'
        case _:
            return canonical(chunk.to_json())


def _call(data: ToolCallStarted) -> str:
    named = f'"call_id":{quoted(data.call_id)},"name":{quoted(data.name)},"arguments":{quoted(data.arguments)}'
    return f'{{"turn":{data.turn},"step":{data.step},{named}}}'


def _dispatch(data: RequestDispatch) -> str:
    digest = quoted(data.digest)
    return f'{{"turn":{data.turn},"step":{data.step},"attempt":{data.attempt},"digest":{digest}}}'


def _answer(data: AssistantMessageLogged) -> str:
    usage = "" if data.usage is None else f',"usage":{canonical(data.usage.to_json())}'
    interrupted = ',"interrupted":true' if data.interrupted else ""
    chunks = f',"chunks":{canonical(data.chunks)}' if data.chunks else ""
    message = canonical_message(data.message)
    return f'{{"turn":{data.turn},"step":{data.step},"message":{message}{usage}{interrupted}{chunks}}}'


def _result(data: ToolResultLogged) -> str:
    error = "" if data.error is None else f',"error":{quoted(data.error)}'
    meta = f',"meta":{canonical(data.meta)}' if data.meta else ""
    return f'{{"turn":{data.turn},"step":{data.step},"message":{canonical_message(data.message)}{error}{meta}}}'


QUICK: dict[type, Callable[[Any], str]] = {
    TurnStart: _turn,
    StepStart: _step,
    StepEnd: _step,
    UserMessageLogged: _user,
    AssistantChunk: _chunk,
    AssistantMessageLogged: _answer,
    ToolCallStarted: _call,
    ToolResultLogged: _result,
    RequestDispatch: _dispatch,
}
