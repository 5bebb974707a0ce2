"""What can go wrong with a session's log, each with the place where it went wrong. Knows only the base of all errors."""

from __future__ import annotations

from typing import Any

from harness_core.errors import HarnessError

__all__ = [
    "LogDamagedError",
    "LogFormatError",
    "LogOrderError",
    "SessionClosedError",
    "SessionError",
    "SessionExistsError",
    "SessionLockedError",
    "SessionNotFoundError",
    "StoreError",
    "SurfaceError",
]


class SessionError(HarnessError):
    """Base of all errors about sessions; ``session`` is the session's id."""

    code = "session"

    def __init__(self, message: str, *, session: str | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.session = session


class SessionExistsError(SessionError):
    """A session of this id is stored already."""

    code = "session-exists"


class SessionNotFoundError(SessionError):
    """No session of this id is stored."""

    code = "session-not-found"


class SessionClosedError(SessionError):
    """The session was closed or discarded, so nothing can be appended to it."""

    code = "session-closed"


class SessionLockedError(SessionError):
    """Another process, or another part of this one, has the log open for writing.

    ``pid``, ``host`` and ``since_ms`` name the holder as far as it left its name.
    """

    code = "session-locked"

    def __init__(
        self,
        message: str,
        *,
        pid: int | None = None,
        host: str | None = None,
        since_ms: int | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message, **facts)
        self.pid = pid
        self.host = host
        self.since_ms = since_ms


class LogOrderError(SessionError):
    """An event does not fit the state of the log: turns and steps nest, and their numbers are contiguous."""

    code = "log-order"


class SurfaceError(SessionError):
    """A surface operation does not fit the surface (SURF-01, SURF-02)."""

    code = "surface"


class LogDamagedError(SessionError):
    """A stored log cannot be what was written (LOG-07); ``line`` counts from 1, ``offset`` is in bytes."""

    code = "log-damaged"

    def __init__(self, message: str, *, offset: int, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.offset = offset


class LogFormatError(SessionError):
    """The log is in another format version (LOG-04); ``found`` is that version."""

    code = "log-format"

    def __init__(self, message: str, *, found: object, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.found = found


class StoreError(SessionError):
    """The store could not do its work (disk full, folder read-only, ...); what was acknowledged before is untouched."""

    code = "store"

    def __init__(self, message: str, *, errno: int | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.errno = errno
