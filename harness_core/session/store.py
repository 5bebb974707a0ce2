"""What a store of session logs is, and the one in memory. A store keeps lines; it knows nothing of what they mean.

A store may live anywhere; `harness_core.testing.store_conformance` is the contract as tests that any store can run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import attrs

from harness_core.session.errors import (
    SessionClosedError,
    SessionExistsError,
    SessionLockedError,
    SessionNotFoundError,
)

__all__ = ["LogWriter", "MemoryStore", "SessionStore", "StoredLog"]


@attrs.frozen(kw_only=True)
class StoredLog:
    """The lines of a log, each with its newline, and where they are kept (for messages).

    ``torn`` is what stood after the last whole line; ``torn_kept`` says where it was put when it was cut off (LOG-07).
    """

    lines: Sequence[bytes]
    where: str
    torn: bytes = b""
    torn_kept: str | None = None


class LogWriter(Protocol):
    """The one writer of a log; it holds the log's lock until it is closed."""

    @property
    def where(self) -> str: ...

    def append(self, line: bytes) -> None:
        """Write the line through, so that it outlives this process. All of it or, with an error, nothing.

        Raises:
            StoreError: it could not be written; the log is as it was.
        """
        ...

    def sync(self) -> None:
        """Make what was appended outlive the machine. Blocks; called in a worker thread.

        Raises:
            StoreError: it could not.
        """
        ...

    def close(self) -> None:
        """Give the lock back. A second call does nothing."""
        ...


@runtime_checkable
class SessionStore(Protocol):
    """Keeps the logs of many sessions."""

    durable: bool
    """Does `LogWriter.sync` do anything worth a worker thread?"""

    def create(self, session_id: str, lines: Sequence[bytes]) -> LogWriter:
        """A new log that begins with these lines; nobody ever sees it without them.

        Raises:
            SessionExistsError: there is one of this id.
            StoreError: it could not be written; there is none.
        """
        ...

    def open(self, session_id: str) -> tuple[LogWriter, StoredLog]:
        """The log for going on with it: locked, and with a torn last line cut off and kept beside it.

        Raises:
            SessionNotFoundError, SessionLockedError, StoreError
        """
        ...

    def read(self, session_id: str) -> StoredLog:
        """The log as it is now, without a lock and without changing anything.

        Raises:
            SessionNotFoundError, StoreError
        """
        ...

    def heads(self) -> Sequence[StoredLog]:
        """For each log enough of its beginning and its end to list it: the first line, some of the next, the last.

        What cannot be read is left out.
        """
        ...

    def delete(self, session_id: str) -> None:
        """Remove the log, if there is one. The caller holds its lock, or knows that nobody does.

        Raises:
            StoreError: it could not.
        """
        ...


class _MemoryWriter:
    def __init__(self, store: MemoryStore, session_id: str, lines: list[bytes]) -> None:
        self._store = store
        self._id = session_id
        self._lines: list[bytes] | None = lines

    @property
    def where(self) -> str:
        return f"memory:{self._id}"

    def append(self, line: bytes) -> None:
        if self._lines is None:
            raise SessionClosedError(f"The log of session {self._id!r} is closed.", session=self._id)
        self._lines.append(line)

    def sync(self) -> None:
        """Nothing in memory outlives the machine."""

    def close(self) -> None:
        if self._lines is not None:
            self._lines = None
            self._store.release(self._id)


class MemoryStore:
    """Keeps logs as long as the process lives; for tests, and for hosts without a folder."""

    durable = False

    def __init__(self) -> None:
        self._logs: dict[str, list[bytes]] = {}
        self._open: set[str] = set()

    def create(self, session_id: str, lines: Sequence[bytes]) -> LogWriter:
        if session_id in self._logs:
            raise SessionExistsError(f"There is a session {session_id!r} already.", session=session_id)
        self._logs[session_id] = list(lines)
        self._open.add(session_id)
        return _MemoryWriter(self, session_id, self._logs[session_id])

    def open(self, session_id: str) -> tuple[LogWriter, StoredLog]:
        stored = self.read(session_id)
        if session_id in self._open:
            raise SessionLockedError(f"The session {session_id!r} is open already in this process.", session=session_id)
        self._open.add(session_id)
        return _MemoryWriter(self, session_id, self._logs[session_id]), stored

    def read(self, session_id: str) -> StoredLog:
        if session_id not in self._logs:
            raise SessionNotFoundError(
                f"There is no session {session_id!r}.", session=session_id, known=sorted(self._logs)
            )
        return StoredLog(lines=tuple(self._logs[session_id]), where=f"memory:{session_id}")

    def heads(self) -> Sequence[StoredLog]:
        return [self.read(session_id) for session_id in self._logs]

    def delete(self, session_id: str) -> None:
        self._logs.pop(session_id, None)
        self._open.discard(session_id)

    def release(self, session_id: str) -> None:
        """Called by the writer that is closed."""
        self._open.discard(session_id)
