"""The neutral chunks of a streamed answer and the assembler that makes a message of them (LLM-01).

Adapters translate a vendor's stream into these; nothing here knows a vendor or the loop.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import attrs

from harness_core._json import JsonObject
from harness_core.errors import JsonValueError
from harness_core.models.messages import (
    AssistantBlock,
    AssistantMessage,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    Usage,
    text_field,
)

__all__ = [
    "Chunk",
    "ChunkAssembler",
    "FailureFacts",
    "Finish",
    "FinishReason",
    "ReasoningDelta",
    "TextDelta",
    "ToolArgumentsDelta",
    "ToolCallStart",
    "UsageReport",
    "chunk_from_json",
]

FinishReason: TypeAlias = Literal["stop", "tool-calls", "max-tokens", "error", "aborted"]
"""Why a stream ended."""


@attrs.frozen(kw_only=True)
class FailureFacts:
    """Why a request failed, as facts (LLM-04).

    ``retry_after`` is in seconds; ``output_started``: had visible output begun; ``retryable``: can the same request
    succeed later.
    """

    code: str
    message: str
    status: int | None = None
    retry_after: float | None = None
    request_id: str | None = None
    output_started: bool = False
    retryable: bool = False

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in attrs.asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, data: JsonObject) -> FailureFacts:
        return cls(**data)


@attrs.frozen
class TextDelta:
    """A fragment of visible text."""

    text: str = attrs.field(validator=text_field)

    def to_json(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text}


@attrs.frozen
class ReasoningDelta:
    """A fragment of reasoning, with the service's signature where it sends one."""

    text: str = attrs.field(validator=text_field)
    signature: str | None = attrs.field(default=None, validator=attrs.validators.optional(text_field))

    def to_json(self) -> dict[str, Any]:
        data = {"type": "reasoning", "text": self.text}
        if self.signature is not None:
            data["signature"] = self.signature
        return data


@attrs.frozen
class ToolCallStart:
    """The call number ``index`` of this answer begins."""

    index: int
    id: str = attrs.field(validator=text_field)
    name: str = attrs.field(validator=text_field)

    def to_json(self) -> dict[str, Any]:
        return {"type": "tool-call", "index": self.index, "id": self.id, "name": self.name}


@attrs.frozen
class ToolArgumentsDelta:
    """A fragment of the arguments of call number ``index``."""

    index: int
    arguments: str = attrs.field(validator=text_field)

    def to_json(self) -> dict[str, Any]:
        return {"type": "tool-arguments", "index": self.index, "arguments": self.arguments}


@attrs.frozen
class UsageReport:
    """The service's token counts; the last report of a stream counts."""

    usage: Usage

    def to_json(self) -> dict[str, Any]:
        return {"type": "usage", "usage": self.usage.to_json()}


def _known_reason(_: object, attribute: object, value: object) -> None:
    if value not in get_args(FinishReason):
        raise JsonValueError(
            f"A stream finishes with one of {get_args(FinishReason)}, not with {value!r}.", entry="$.reason"
        )


@attrs.frozen
class Finish:
    """The end of a stream; ``failure`` says why where the reason is ``error`` (or ``aborted``)."""

    reason: FinishReason = attrs.field(validator=_known_reason)
    failure: FailureFacts | None = None

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"type": "finish", "reason": self.reason}
        if self.failure is not None:
            data["failure"] = self.failure.to_json()
        return data


Chunk: TypeAlias = TextDelta | ReasoningDelta | ToolCallStart | ToolArgumentsDelta | UsageReport | Finish
"""A piece of a streamed answer."""


def chunk_from_json(data: JsonObject) -> Chunk:
    """The chunk that ``to_json`` wrote.

    Raises:
        JsonValueError: the type is unknown.
    """
    match data["type"]:
        case "text":
            return TextDelta(data["text"])
        case "reasoning":
            return ReasoningDelta(data["text"], data.get("signature"))
        case "tool-call":
            return ToolCallStart(data["index"], data["id"], data["name"])
        case "tool-arguments":
            return ToolArgumentsDelta(data["index"], data["arguments"])
        case "usage":
            return UsageReport(Usage.from_json(data["usage"]))
        case "finish":
            failure = data.get("failure")
            return Finish(data["reason"], FailureFacts.from_json(failure) if failure is not None else None)
        case other:
            raise JsonValueError(f"A chunk has the unknown type {other!r}.", entry="$.type")


@attrs.define
class _Part:
    kind: str
    pieces: list[str] = attrs.field(factory=list)
    id: str = ""
    name: str = ""
    signature: str | None = None


@attrs.define
class ChunkAssembler:
    """Makes one assistant message of chunks: blocks in order of first appearance, fragments joined by index."""

    usage: Usage | None = attrs.field(default=None, init=False)
    finish: Finish | None = attrs.field(default=None, init=False)
    _parts: list[_Part] = attrs.field(factory=list, init=False)
    _text: _Part | None = attrs.field(default=None, init=False)
    _reasoning: _Part | None = attrs.field(default=None, init=False)
    _calls: dict[int, _Part] = attrs.field(factory=dict, init=False)

    def add(self, chunk: Chunk) -> None:
        """Take the next chunk.

        Raises:
            JsonValueError: argument fragments came for a call that had not begun, or a call began twice.
        """
        match chunk:
            case TextDelta():
                self._part("text").pieces.append(chunk.text)
            case ReasoningDelta():
                part = self._part("reasoning")
                part.pieces.append(chunk.text)
                part.signature = chunk.signature or part.signature
            case ToolCallStart():
                if chunk.index in self._calls:
                    raise JsonValueError(f"The stream begins tool call {chunk.index} twice.", entry="$.index")
                self._calls[chunk.index] = part = _Part("tool-call", id=chunk.id, name=chunk.name)
                self._parts.append(part)
            case ToolArgumentsDelta():
                if chunk.index not in self._calls:
                    raise JsonValueError(f"The stream sends arguments for tool call {chunk.index} before it begins.")
                self._calls[chunk.index].pieces.append(chunk.arguments)
            case UsageReport():
                self.usage = chunk.usage
            case Finish():
                self.finish = chunk

    def _part(self, kind: Literal["text", "reasoning"]) -> _Part:
        part = self._text if kind == "text" else self._reasoning
        if part is None:
            part = _Part(kind)
            self._parts.append(part)
            if kind == "text":
                self._text = part
            else:
                self._reasoning = part
        return part

    @property
    def has_visible(self) -> bool:
        """Has text or reasoning arrived that a user may have seen (CANCEL-02)?"""
        return any(piece for part in (self._text, self._reasoning) if part is not None for piece in part.pieces)

    def message(self, *, tool_calls: bool = True) -> AssistantMessage:
        """The message so far; ``tool_calls=False`` leaves calls out (CANCEL-02, TURN-04)."""
        blocks: list[AssistantBlock] = []
        for part in self._parts:
            text = "".join(part.pieces)
            if part.kind == "text" and text:
                blocks.append(TextBlock(text))
            elif part.kind == "reasoning" and (text or part.signature):
                blocks.append(ReasoningBlock(text, part.signature))
            elif part.kind == "tool-call" and tool_calls:
                blocks.append(ToolCallBlock(part.id, part.name, text))
        return AssistantMessage(content=tuple(blocks))
