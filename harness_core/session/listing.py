"""What sessions a store has, from the beginning and the end of each log only. Never opens, locks or repairs one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from harness_core.session.codec import decode_info
from harness_core.session.events import UserMessageLogged
from harness_core.session.store import SessionStore, StoredLog

__all__ = ["SessionSummary", "list_sessions"]

_TITLE = 80
"""Characters of a title: what fits on one line of a terminal beside id and date."""


@attrs.frozen(kw_only=True)
class SessionSummary:
    """One line of a list of sessions. ``title`` begins the first thing that a person said, as far as it is near the start."""

    id: str
    cwd: str
    created_at_ms: int
    last_at_ms: int
    title: str = ""
    parent: str | None = None
    depth: int = 0


def list_sessions(store: SessionStore) -> list[SessionSummary]:
    """All sessions that can be read, the one used last first."""
    found = [summary for head in store.heads() if (summary := _summary(head)) is not None]
    return sorted(found, key=lambda summary: (-summary.last_at_ms, summary.id))


def _summary(head: StoredLog) -> SessionSummary | None:
    try:
        info = decode_info(head.lines[0])
    except Exception:
        return None
    return SessionSummary(
        id=info.id,
        cwd=info.cwd,
        created_at_ms=info.created_at_ms,
        last_at_ms=_last_time(head.lines, info.created_at_ms),
        title=_title(head.lines[1:]),
        parent=info.parent,
        depth=info.depth,
    )


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _last_time(lines: Sequence[bytes], default: int) -> int:
    for line in reversed(lines[1:]):
        time_ms = _record(line).get("time")
        if isinstance(time_ms, int):
            return time_ms
    return default


def _title(lines: Iterable[bytes]) -> str:
    mark = UserMessageLogged.type.encode()
    for line in lines:
        if mark not in line:
            continue
        record = _record(line)
        message = record.get("data", {}).get("message", {}) if record.get("type") == UserMessageLogged.type else {}
        if message.get("source", {}).get("kind") == "user":
            words = " ".join(block.get("text", "") for block in message.get("content", ())).split()
            title = " ".join(words)
            return title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"
    return ""
