"""One writer for each log, by the operating system's file lock, which a dying process gives back by itself.

The lock is on the log file. Who holds it stands in a file beside it, which is only there to be read by whoever is refused.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness_core.session.errors import SessionLockedError, StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover - a platform without POSIX locks
    fcntl = None  # type: ignore[assignment]

__all__ = ["acquire", "forget", "sign"]


def _beside(log: Path) -> Path:
    return log.with_suffix(".lock")


def acquire(descriptor: int, log: Path, session_id: str) -> None:
    """Lock the open log.

    Raises:
        SessionLockedError: somebody else holds it; the error names pid, host and since when.
    """
    if fcntl is None:  # pragma: no cover - a platform without POSIX locks
        raise StoreError(
            "The file store needs POSIX file locks, which this platform does not have.", session=session_id
        )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _refusal(log, session_id) from None


def sign(log: Path, clock: Callable[[], int]) -> None:
    """Leave this process's name, for whoever is refused. Only information: the lock holds without it."""
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since_ms": clock()}
    with suppress(OSError):
        _beside(log).write_text(json.dumps(holder), encoding="utf-8")


def forget(log: Path) -> None:
    """Remove the name of this process, which still holds the lock."""
    with suppress(OSError):
        _beside(log).unlink(missing_ok=True)


def _refusal(log: Path, session_id: str) -> SessionLockedError:
    holder: dict[str, Any] = {}
    try:
        found = json.loads(_beside(log).read_text(encoding="utf-8"))
        holder = found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        pass  # The holder has not left its name yet.
    who = f"process {holder.get('pid', 'unknown')} on {holder.get('host', 'an unknown host')}"
    since = holder.get("since_ms")
    return SessionLockedError(
        f"The session {session_id!r} is open for writing in {who}" + (f", since {_spoken(since)}." if since else "."),
        remedy="Close it there, or read the log without going on with it.",
        session=session_id,
        file=str(log),
        pid=holder.get("pid"),
        host=holder.get("host"),
        since_ms=since,
    )


def _spoken(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
