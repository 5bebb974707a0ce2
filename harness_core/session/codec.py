"""Between events and lines of JSON: the only module that knows how a log is written.

A tagged union through cattrs: ``{"seq", "time", "type", "data", "surface"?}``, one line for each event, after a first
line for the session itself. A codec belongs to one log, because tool schemas are stored once and named by digest after
that. Encoding changes nothing; `learn` takes note of what was really written.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from cattrs import Converter

from harness_core._json import FrozenDict, canonical, freeze, freeze_object
from harness_core.errors import JsonValueError
from harness_core.models.chunks import (
    FailureFacts,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
    chunk_from_json,
)
from harness_core.models.messages import (
    AssistantMessage,
    Message,
    ToolResultMessage,
    Usage,
    UserMessage,
    message_from_json,
)
from harness_core.models.schema import ToolSchema
from harness_core.session._quick import QUICK, quoted
from harness_core.session.digest import tool_digest
from harness_core.session.errors import LogFormatError
from harness_core.session.events import (
    APPEND,
    EVENT_TYPES,
    Event,
    EventData,
    HeaderWritten,
    PluginRecord,
    SessionInfo,
    SurfaceAppend,
    SurfaceOperation,
    SurfaceReplace,
)
from harness_core.session.header import (
    header_from_json,
    header_to_json,
    schema_from_json,
    schema_to_json,
    schemas_beyond,
)

__all__ = ["FORMAT", "FORMAT_VERSION", "LogCodec", "decode_info", "encode_info", "event_to_json"]

FORMAT = "harness-log"
FORMAT_VERSION = 1
"""Raised with every change that an older reader would misread; another version is refused by name."""

_CHUNKS = (TextDelta, ReasoningDelta, ToolCallStart, ToolArgumentsDelta, UsageReport, Finish)
_MESSAGES = (UserMessage, AssistantMessage, ToolResultMessage)


def _plain(kind: type) -> Any:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise JsonValueError(f"expected {kind.__name__}, found {value!r:.80}")
        return value

    return structure


def _message(value: Any, kind: Any) -> Message:
    message = message_from_json(value)
    if type(message) is not kind:
        raise JsonValueError(f"expected a {kind.__name__}, found the role {value.get('role')!r}")
    return message


def _converter() -> Converter:
    """Strict both ways: no coercion, no unknown fields, and fields at their default are absent."""
    converter = Converter(forbid_extra_keys=True, omit_if_default=True, detailed_validation=False)
    for plain in (int, str, bool):
        converter.register_structure_hook(plain, _plain(plain))
    for kind in _MESSAGES:
        converter.register_structure_hook(kind, _message)
    for record in (*_MESSAGES, *_CHUNKS, Usage, FailureFacts):
        converter.register_unstructure_hook(record, lambda value: value.to_json())
    converter.register_structure_hook_func(
        lambda kind: kind in (_CHUNKS_TYPE,), lambda value, _: chunk_from_json(value)
    )
    converter.register_structure_hook(Usage, lambda value, _: Usage.from_json(value))
    converter.register_structure_hook(FailureFacts, lambda value, _: FailureFacts.from_json(value))
    converter.register_structure_hook(FrozenDict, lambda value, _: freeze_object(value))
    converter.register_unstructure_hook(FrozenDict, lambda value: value)
    return converter


_CHUNKS_TYPE = TextDelta | ReasoningDelta | ToolCallStart | ToolArgumentsDelta | UsageReport | Finish
_CONVERTER = _converter()


class LogCodec:
    """Encodes and decodes the lines of one log."""

    def __init__(self) -> None:
        self._schemas: dict[str, ToolSchema] = {}

    def encode(self, seq: int, time_ms: int, data: EventData, surface: SurfaceOperation | None) -> bytes:
        """The event's line, with its newline. Changes nothing.

        Raises:
            JsonValueError: the data is not lossless JSON; ``entry`` is the path of the value (LOG-02).
        """
        try:
            quick = QUICK.get(type(data))
            body = quick(data) if quick is not None else self._data(data)
            name = quoted(data.type)
            line = f'{{"seq":{seq},"time":{time_ms},"type":{name},"data":{body}{_surface(surface)}}}\n'
            return line.encode()
        except (ValueError, TypeError, RecursionError) as error:
            _explain(data, error)

    def _data(self, data: EventData) -> str:
        return canonical(self._header(data) if isinstance(data, HeaderWritten) else _to_json(data))

    def _header(self, data: HeaderWritten) -> dict[str, Any]:
        fresh = schemas_beyond(data.header, self._schemas)
        written: dict[str, Any] = {"reason": data.reason, "header": header_to_json(data.header, tool_digest)}
        if fresh:
            written["schemas"] = {digest: schema_to_json(tool) for digest, tool in fresh.items()}
        if data.provenance:
            written["provenance"] = data.provenance
        return written

    def learn(self, data: EventData) -> None:
        """Take note of an event that was written: its tool schemas need not be written again."""
        if isinstance(data, HeaderWritten):
            self._schemas.update(schemas_beyond(data.header, self._schemas))

    def decode(self, line: bytes) -> Event:
        """The event of a line, and note of its schemas.

        Raises:
            Exception: whatever is wrong with it; the caller knows the place and says so.
        """
        record = json.loads(line)
        unknown = set(record) - {"seq", "time", "type", "data", "surface"}
        if unknown:
            raise JsonValueError(f"unknown fields {sorted(unknown)}")
        data = self._decode_data(record["type"], record["data"])
        return Event(
            _CONVERTER.structure(record["seq"], int),
            _CONVERTER.structure(record["time"], int),
            data,
            _surface_from_json(record.get("surface")),
        )

    def _decode_data(self, type_: str, data: Any) -> EventData:
        kind = EVENT_TYPES.get(type_)
        if kind is None:
            return PluginRecord(type_, data)
        if kind is HeaderWritten:
            return self._decode_header(data)
        event: EventData = _CONVERTER.structure(data, kind)
        return event

    def _decode_header(self, data: dict[str, Any]) -> HeaderWritten:
        for digest, written in data.get("schemas", {}).items():
            tool = schema_from_json(written)
            if tool_digest(tool) != digest:
                raise JsonValueError(
                    f"the tool schema {tool.name!r} does not have the digest {digest} that it stands under"
                )
            self._schemas[digest] = tool
        header = header_from_json(data["header"], self._schemas.__getitem__)
        return HeaderWritten(header=header, reason=data["reason"], provenance=data.get("provenance", {}))


def _to_json(data: EventData) -> dict[str, Any]:
    if isinstance(data, PluginRecord):
        return data.data
    written: dict[str, Any] = _CONVERTER.unstructure(data)
    return written


def event_to_json(event: Event) -> dict[str, Any]:
    """The event as plain JSON that stands alone: a header holds its tool schemas in full."""
    if isinstance(event.data, HeaderWritten):
        data: dict[str, Any] = {
            "reason": event.data.reason,
            "header": header_to_json(event.data.header, schema_to_json),
        }
        if event.data.provenance:
            data["provenance"] = event.data.provenance
    else:
        data = _to_json(event.data)
    whole: dict[str, Any] = {"seq": event.seq, "time": event.time_ms, "type": event.type, "data": data}
    if event.surface is not None:
        whole["surface"] = _surface_to_json(event.surface)
    return whole


def _surface_to_json(operation: SurfaceOperation) -> Any:
    if isinstance(operation, SurfaceAppend):
        return "append"
    return {"replace": [operation.start, operation.end], "sources": list(operation.sources)}


def _surface(operation: SurfaceOperation | None) -> str:
    if operation is None:
        return ""
    if operation is APPEND:
        return ',"surface":"append"'
    return f',"surface":{canonical(_surface_to_json(operation))}'


def _surface_from_json(data: Any) -> SurfaceOperation | None:
    if data is None:
        return None
    if data == "append":
        return APPEND
    start, end = data["replace"]
    return SurfaceReplace(start=start, end=end, sources=data["sources"])


def _explain(data: EventData, error: Exception) -> NoReturn:
    """Encoding failed: find the value that lossless JSON cannot hold and name its path."""
    if isinstance(error, JsonValueError):
        raise error
    whole = event_to_json(Event(0, 0, data))
    freeze(whole["data"], what=f"An event of type {data.type}")
    raise JsonValueError(f"An event of type {data.type} is not lossless JSON: {error}", entry="$") from error


def encode_info(info: SessionInfo) -> bytes:
    """The log's first line (LOG-04)."""
    head = {"format": FORMAT, "version": FORMAT_VERSION}
    return (canonical({**head, **_CONVERTER.unstructure(info)}) + "\n").encode()


def decode_info(line: bytes) -> SessionInfo:
    """What the first line says.

    Raises:
        LogFormatError: it is in another format or format version.
        Exception: whatever else is wrong with it.
    """
    record = json.loads(line)
    if not isinstance(record, dict) or record.pop("format", None) != FORMAT:
        raise LogFormatError("The first line does not say that this is a harness log.", found=None)
    version = record.pop("version", None)
    if version != FORMAT_VERSION:
        raise LogFormatError(
            f"The log is in format version {version!r}; this release reads version {FORMAT_VERSION}.",
            remedy="Open it with the release that wrote it.",
            found=version,
        )
    return _CONVERTER.structure(record, SessionInfo)
