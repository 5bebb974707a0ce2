"""From lines to events, with the place of whatever is wrong. Reads; never writes, locks or repairs.

A log that was read is well-formed: numbers contiguous, turns and steps nested, every surface operation valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

import attrs

from harness_core.session._prefix import Prefix
from harness_core.session.codec import LogCodec, decode_info
from harness_core.session.errors import LogDamagedError, LogFormatError
from harness_core.session.events import Event, SessionInfo
from harness_core.session.nesting import Nesting
from harness_core.session.store import SessionStore
from harness_core.session.surface import Surface

__all__ = ["LogContents", "read_lines", "read_log"]


@attrs.frozen
class LogContents:
    """A log as it was read. ``torn`` is what stood after its last whole line."""

    info: SessionInfo
    events: Sequence[Event]
    surface: Surface = attrs.field(repr=False)
    torn: bytes = b""


def read_log(store: SessionStore, session_id: str) -> LogContents:
    """The log as it is now, whoever has it open.

    Raises:
        SessionNotFoundError, LogFormatError, LogDamagedError, StoreError
    """
    stored = store.read(session_id)
    return read_lines(stored.lines, where=stored.where, torn=stored.torn)


def read_lines(lines: Iterable[bytes], *, where: str, codec: LogCodec | None = None, torn: bytes = b"") -> LogContents:
    """The events of a log's lines, each with its newline.

    Raises:
        LogFormatError: the log is in another format version.
        LogDamagedError: a line cannot be what was written; the error has its number and byte offset.
    """
    codec = LogCodec() if codec is None else codec
    rest = iter(lines)
    first = next(rest, b"")
    try:
        info = decode_info(first)
    except LogFormatError as error:
        error.file = where
        raise
    except Exception as error:
        _damaged(where, 1, 0, error)
    events: list[Event] = []
    nesting, surface = Nesting(), Surface()
    offset = len(first)
    for number, line in enumerate(rest, 2):
        try:
            event = codec.decode(line)
            if event.seq != len(events):
                raise ValueError(f"it is numbered {event.seq}, and {len(events)} comes next")
            nesting.check(event.data)
            surface.check(event.seq, event.data, event.surface)
        except Exception as error:
            _damaged(where, number, offset, error, info.id)
        nesting.apply(event.data)
        surface.apply(event)
        events.append(event)
        offset += len(line)
    return LogContents(info, Prefix(events), surface, torn)


def _damaged(where: str, line: int, offset: int, error: Exception, session: str | None = None) -> NoReturn:
    raise LogDamagedError(
        f"Line {line} of {where} (byte {offset}) cannot be read: {type(error).__name__}: {error}",
        remedy="Nothing was changed. Restore the file, or keep only the lines before this one.",
        session=session,
        file=where,
        line=line,
        offset=offset,
    ) from error
