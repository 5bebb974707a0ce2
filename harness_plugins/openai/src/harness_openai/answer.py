"""The events of one streamed answer, turned into neutral chunks (LLM-01): all that moves this state machine.

An answer is *open* until the server names a finish reason, and *finished* from then on; what comes after that (token
counts, most often) is still read. The neutral finish is made last, by `Answer.end`, so that nothing follows it. What is
no event of a chat completion raises `MalformedEventError`; an error that the server reports inside the stream raises
`ServiceError`. Knows nothing of HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from harness_core.models import (
    Chunk,
    FailureFacts,
    Finish,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    Usage,
    UsageReport,
)
from harness_openai import codes
from harness_openai.encoding import compact
from harness_openai.surrogates import SurrogateJoiner, whole
from harness_openai.usage import usage_of

__all__ = ["Answer", "MalformedEventError", "ServiceError"]

_EXCERPT = 200
"""Characters of an unreadable event that its error shows."""

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "length": "max-tokens",
}
_FAILED = {
    "content_filter": codes.CONTENT_FILTERED,
    "insufficient_system_resource": codes.OVERLOADED,  # DeepSeek
}
_REASONING_FIELDS = ("reasoning_content", "reasoning")


class MalformedEventError(Exception):
    """An event that is no part of a chat completion."""


class ServiceError(Exception):
    """An error object in place of an event."""

    def __init__(self, error: object) -> None:
        super().__init__("the stream holds an error")
        self.error = error


@attrs.define
class _Call:
    """One tool call: ``id`` is what the server calls it, ``held`` the arguments that came before its name."""

    index: int
    id: str
    name: str = ""
    held: list[str] = attrs.field(factory=list)
    text: SurrogateJoiner = attrs.field(factory=SurrogateJoiner)


class Answer:
    """Reads the events of one answer. ``new_id`` names the calls that the server leaves nameless, by their number."""

    def __init__(self, new_id: Callable[[int], str]) -> None:
        self._new_id = new_id
        self._text = SurrogateJoiner()
        self._reasoning = SurrogateJoiner()
        self._calls: list[_Call] = []
        self._current: dict[int, _Call] = {}
        self._reason: str | None = None
        self.usage: Usage | None = None
        self.output_started = False
        """Has anything of the answer been handed out?"""
        self.began = False
        """Has any event been read?"""

    @property
    def finished(self) -> bool:
        """Has the server named a finish reason?"""
        return self._reason is not None

    def read(self, data: str) -> list[Chunk]:
        """The chunks of one event.

        Raises:
            MalformedEventError: this is no JSON, or JSON of another shape.
            ServiceError: the server reports an error.
        """
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise MalformedEventError(f"an event is no JSON: {data[:_EXCERPT]!r}") from None
        if not isinstance(event, dict):
            raise MalformedEventError(f"an event is no JSON object: {data[:_EXCERPT]!r}")
        self.began = True
        if event.get("error"):
            raise ServiceError(event["error"])
        if "usage" in event or "timings" in event:
            self.usage = usage_of(event) or self.usage
        chunks: list[Chunk] = []
        for choice in _list(event, "choices", data):
            if not isinstance(choice, dict):
                raise MalformedEventError(f"a choice is no object: {data[:_EXCERPT]!r}")
            if choice.get("index", 0) == 0:  # one answer was asked for
                self._choice(choice, data, chunks)
        return chunks

    def _choice(self, choice: dict[str, Any], data: str, chunks: list[Chunk]) -> None:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            for name in _REASONING_FIELDS:
                if thought := _text(delta, name, data):
                    if thought := self._reasoning.add(thought):
                        self.output_started = True
                        chunks.append(ReasoningDelta(thought))
                    break
            # A refusal stands in a field of its own and is all that there is to show then.
            if (text := _text(delta, "content", data) or _text(delta, "refusal", data)) and (
                text := self._text.add(text)
            ):
                self.output_started = True
                chunks.append(TextDelta(text))
            if delta.get("tool_calls"):
                for fragment in _list(delta, "tool_calls", data):
                    self._fragment(fragment, data, chunks)
        elif delta is not None:
            raise MalformedEventError(f"a delta is no object: {data[:_EXCERPT]!r}")
        self._reason = _text(choice, "finish_reason", data) or self._reason

    # --- tool calls ---------------------------------------------------------------------------------------------------

    def _fragment(self, fragment: object, data: str, chunks: list[Chunk]) -> None:
        if not isinstance(fragment, dict):
            raise MalformedEventError(f"a tool call is no object: {data[:_EXCERPT]!r}")
        function = fragment.get("function") or {}
        if not isinstance(function, dict):
            raise MalformedEventError(f"a tool call's function is no object: {data[:_EXCERPT]!r}")
        name = _text(function, "name", data) or ""
        call = self._call_of(fragment, _text(fragment, "id", data) or "", bool(name))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # not streamed as text by some servers
            arguments = compact(arguments)
        elif arguments is not None and not isinstance(arguments, str):
            raise MalformedEventError(f"a tool call's arguments are no text: {data[:_EXCERPT]!r}")
        if not call.name:
            if arguments:
                call.held.append(arguments)
            if not name:
                return
            call.name = name
            arguments = "".join(call.held)
            self.output_started = True
            chunks.append(ToolCallStart(call.index, whole(call.id), whole(name)))
        if arguments and (arguments := call.text.add(arguments)):
            chunks.append(ToolArgumentsDelta(call.index, arguments))

    def _call_of(self, fragment: dict[str, Any], call_id: str, named: bool) -> _Call:
        """The call that a fragment belongs to.

        Calls are told apart by their index. Servers that leave it out, or that give all calls the same one, begin a
        call by an id and a name of its own.
        """
        index = fragment.get("index")
        if type(index) is not int:
            index = 0
        call = self._current.get(index)
        if call is None or (call_id and named and call.name and call_id != call.id):
            place = len(self._calls)
            call = _Call(place, self._unique(call_id, place))
            self._calls.append(call)
            self._current[index] = call
        elif call_id and not call.name:
            call.id = self._unique(call_id, call.index)
        return call

    def _unique(self, call_id: str, place: int) -> str:
        """Results are paired with calls by id, so two calls of one answer must not share one."""
        if call_id and all(call.id != call_id or call.index == place for call in self._calls):
            return call_id
        return self._new_id(place)

    # --- the end ------------------------------------------------------------------------------------------------------

    def problem(self) -> tuple[str, str] | None:
        """What is wrong with an answer that nothing more will come of: a code and a text; None where it is a good one."""
        reason = self._reason
        if reason is None:
            if self.began:
                return codes.STREAM_CUT, "the stream ended in the middle of the answer"
            return codes.EMPTY_STREAM, "the stream ended without an answer"
        if any(not call.name for call in self._calls):
            return codes.MALFORMED_STREAM, "the answer holds a tool call without a name"
        if reason in _REASONS:
            return None
        shown = f"the answer ended with the finish reason {reason[:_EXCERPT]!r}"
        if reason in _FAILED:
            return _FAILED[reason], shown
        return codes.UNKNOWN_FINISH_REASON, f"{shown}, which this adapter does not know"

    def end(self, failure: FailureFacts | None) -> Iterator[Chunk]:
        """The last chunks: what is left of texts, token counts, the finish."""
        yield from self._left_over()
        if failure is not None:
            yield Finish("error", attrs.evolve(failure, output_started=self.output_started))
            return
        reason = _REASONS[self._reason or ""]
        yield Finish("tool-calls" if reason == "stop" and self._calls else reason)

    def _left_over(self) -> Iterator[Chunk]:
        if thought := self._reasoning.rest():
            yield ReasoningDelta(thought)
        if text := self._text.rest():
            yield TextDelta(text)
        for call in self._calls:
            if call.name and (arguments := call.text.rest()):
                yield ToolArgumentsDelta(call.index, arguments)
        if self.usage is not None:
            yield UsageReport(self.usage)


def _list(data: dict[str, Any], name: str, event: str) -> list[Any]:
    value = data.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise MalformedEventError(f"{name} is no list: {event[:_EXCERPT]!r}")
    return value


def _text(data: dict[str, Any], name: str, event: str) -> str | None:
    value = data.get(name)
    if value is None or isinstance(value, str):
        return value
    raise MalformedEventError(f"{name} is no text: {event[:_EXCERPT]!r}")
