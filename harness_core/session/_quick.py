"""The data of the commonest events as JSON text, written out: the same text as the general way gives, several times sooner.

Only for speed: a test compares every function here with the general way. What is not in the table takes that.
"""

from __future__ import annotations

import json.encoder
from collections.abc import Callable
from typing import Any

from harness_core._json import canonical
from harness_core.models.chunks import TextDelta
from harness_core.models.messages import canonical_message
from harness_core.session.events import (
    AssistantChunk,
    RequestDispatch,
    StepEnd,
    StepStart,
    ToolCallStarted,
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
    chunk = data.chunk
    text = f'{{"type":"text","text":{quoted(chunk.text)}}}' if type(chunk) is TextDelta else canonical(chunk.to_json())
    return f'{{"turn":{data.turn},"step":{data.step},"chunk":{text}}}'


def _call(data: ToolCallStarted) -> str:
    named = f'"call_id":{quoted(data.call_id)},"name":{quoted(data.name)},"arguments":{quoted(data.arguments)}'
    return f'{{"turn":{data.turn},"step":{data.step},{named}}}'


def _dispatch(data: RequestDispatch) -> str:
    digest = quoted(data.digest)
    return f'{{"turn":{data.turn},"step":{data.step},"attempt":{data.attempt},"digest":{digest}}}'


QUICK: dict[type, Callable[[Any], str]] = {
    TurnStart: _turn,
    StepStart: _step,
    StepEnd: _step,
    UserMessageLogged: _user,
    AssistantChunk: _chunk,
    ToolCallStarted: _call,
    RequestDispatch: _dispatch,
}
