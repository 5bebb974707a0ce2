"""The embedded store: one file of JSON lines for each session in one folder. Owns files, locks and torn tails.

A line is written by one system call on an append-only descriptor, so it outlives the process; what a full disk cut short
is taken back at once. The file's name is the session's id, percent-encoded where a file system might mind.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from harness_core.session import _lock
from harness_core.session._clock import Clock, system_clock
from harness_core.session.errors import (
    SessionClosedError,
    SessionExistsError,
    SessionNotFoundError,
    StoreError,
)
from harness_core.session.reading import LogContents, read_lines
from harness_core.session.store import LogWriter, StoredLog

__all__ = ["FileStore", "read_log_file"]

_SUFFIX = ".jsonl"
_HEAD = 64 * 1024
"""Bytes read from a log's beginning for a listing: enough for the first turn's messages."""
_TAIL = 16 * 1024
"""Bytes read from its end: enough for nearly every last line."""


def _fail(what: str, path: Path, error: OSError, session_id: str | None) -> NoReturn:
    raise StoreError(
        f"Cannot {what} {path}: {error.strerror}.",
        remedy="What was written before is untouched; go on when there is space and permission again.",
        session=session_id,
        file=str(path),
        errno=error.errno,
    ) from error


class _FileWriter:
    def __init__(
        self, path: Path, session_id: str, descriptor: int, length: int, write: Callable[[int, bytes], int]
    ) -> None:
        self._path = path
        self._id = session_id
        self._descriptor = descriptor
        self._length = length
        self._write = write
        self._broken = False

    @property
    def where(self) -> str:
        return str(self._path)

    def append(self, line: bytes) -> None:
        self._usable()
        try:
            written = self._write(self._descriptor, line)
            while written < len(line):
                written += self._write(self._descriptor, line[written:])
        except OSError as error:
            self._take_back()
            _fail("write", self._path, error, self._id)
        self._length += len(line)

    def _usable(self) -> None:
        if self._descriptor < 0:
            raise SessionClosedError(
                f"The log of session {self._id!r} is closed.", session=self._id, file=str(self._path)
            )
        if self._broken:
            self._take_back()
            if self._broken:
                raise StoreError(
                    f"The log {self._path} ends in a half-written line that cannot be removed.",
                    session=self._id,
                    file=str(self._path),
                )

    def _take_back(self) -> None:
        """Cut off what a failed write left behind; another line after it would be damage in the middle."""
        try:
            os.ftruncate(self._descriptor, self._length)
            self._broken = False
        except OSError:
            self._broken = True

    def sync(self) -> None:
        if self._descriptor < 0:
            return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            _fail("sync", self._path, error, self._id)

    def close(self) -> None:
        if self._descriptor >= 0:
            _lock.forget(self._path)
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


class FileStore:
    """Keeps each session's log in ``folder``, which is made when the first is created.

    ``write`` is the system call that writes; a test may make it fail.
    """

    durable = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        clock: Clock = system_clock,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        self._folder = Path(folder)
        self._clock = clock
        self._write = write

    @property
    def folder(self) -> Path:
        return self._folder

    def path(self, session_id: str) -> Path:
        """Where the log of this session is, or would be."""
        return self._folder / (quote(session_id, safe=" ") + _SUFFIX)

    def create(self, session_id: str, lines: Sequence[bytes]) -> LogWriter:
        path = self.path(session_id)
        draft = path.with_name(f".{path.stem[:100]}.{secrets.token_hex(8)}.new")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if path.exists():
                raise self._exists(session_id, path)
            descriptor = os.open(draft, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            _fail("create", path, error, session_id)
        try:
            return self._fill(session_id, path, draft, descriptor, lines)
        except BaseException:
            os.close(descriptor)
            raise
        finally:
            draft.unlink(missing_ok=True)

    def _fill(self, session_id: str, path: Path, draft: Path, descriptor: int, lines: Sequence[bytes]) -> LogWriter:
        """Write and lock the draft, then give it its name: nobody ever finds a log without its first lines."""
        writer = _FileWriter(draft, session_id, descriptor, 0, self._write)
        writer.append(b"".join(lines))
        writer.sync()
        _lock.acquire(descriptor, path, session_id)
        try:
            _name(draft, path)
        except FileExistsError:
            raise self._exists(session_id, path) from None
        except OSError as error:
            _fail("create", path, error, session_id)
        try:
            self._sync_folder()
        except OSError as error:
            path.unlink(missing_ok=True)
            _fail("create", path, error, session_id)
        _lock.sign(path, self._clock)
        return _FileWriter(path, session_id, descriptor, sum(map(len, lines)), self._write)

    def _exists(self, session_id: str, path: Path) -> SessionExistsError:
        return SessionExistsError(
            f"There is a session {session_id!r} already, in {path}.",
            remedy="Resume it, or choose another id.",
            session=session_id,
            file=str(path),
        )

    def _sync_folder(self) -> None:
        """Without this the file's name may be lost with the power, although its content is safe."""
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def open(self, session_id: str) -> tuple[LogWriter, StoredLog]:
        path = self.path(session_id)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            raise self._missing(session_id) from None
        except OSError as error:
            _fail("open", path, error, session_id)
        try:
            _lock.acquire(descriptor, path, session_id)
            stored = self.read(session_id)
            length = sum(map(len, stored.lines))
            if stored.torn:
                stored = self._cut(session_id, path, descriptor, stored, length)
            _lock.sign(path, self._clock)
        except BaseException:
            os.close(descriptor)
            raise
        return _FileWriter(path, session_id, descriptor, length, self._write), stored

    def _cut(self, session_id: str, path: Path, descriptor: int, stored: StoredLog, length: int) -> StoredLog:
        kept = path.with_name(f"{path.name}.torn-{length}")
        try:
            kept.write_bytes(stored.torn)
            os.ftruncate(descriptor, length)
            os.fsync(descriptor)
        except OSError as error:
            _fail("repair", path, error, session_id)
        return StoredLog(lines=stored.lines, where=stored.where, torn=stored.torn, torn_kept=str(kept))

    def read(self, session_id: str) -> StoredLog:
        path = self.path(session_id)
        try:
            return _parted(path.read_bytes(), path)
        except FileNotFoundError:
            raise self._missing(session_id) from None
        except OSError as error:
            _fail("read", path, error, session_id)

    def _missing(self, session_id: str) -> SessionNotFoundError:
        return SessionNotFoundError(
            f"There is no session {session_id!r} in {self._folder}.",
            session=session_id,
            file=str(self.path(session_id)),
        )

    def heads(self) -> Sequence[StoredLog]:
        return [head for path in self._logs() if (head := _head(path)) is not None]

    def _logs(self) -> Iterable[Path]:
        try:
            return sorted(path for path in self._folder.iterdir() if path.suffix == _SUFFIX)
        except OSError:
            return ()

    def delete(self, session_id: str) -> None:
        path = self.path(session_id)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            _fail("delete", path, error, session_id)


_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})


def _name(draft: Path, path: Path) -> None:
    """Give a finished draft its name, unless that is taken. Some file systems know no second names: there it is moved."""
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.rename(draft, path)


def read_log_file(path: str | os.PathLike[str]) -> LogContents:
    """The log in a file, wherever it lies; nothing is locked, repaired or changed.

    Raises:
        StoreError: the file cannot be read.
        LogFormatError, LogDamagedError: it is no log of this version, or it is damaged.
    """
    place = Path(path)
    try:
        stored = _parted(place.read_bytes(), place)
    except OSError as error:
        _fail("read", place, error, None)
    return read_lines(stored.lines, where=stored.where, torn=stored.torn)


def _parted(content: bytes, path: Path) -> StoredLog:
    """Whole lines, and what stands after the last newline: a line that was not acknowledged.

    A last line that is whole but was never finished (zeros after a power cut) is the same case.
    """
    lines, torn = _lines(content)
    if lines and not torn and not lines[-1].endswith(b"}\n"):
        torn = lines.pop()
    return StoredLog(lines=lines, where=str(path), torn=torn)


def _lines(content: bytes) -> tuple[list[bytes], bytes]:
    *parts, rest = content.split(b"\n")
    return [part + b"\n" for part in parts], rest


def _head(path: Path) -> StoredLog | None:
    try:
        with path.open("rb") as log:
            beginning = log.read(_HEAD)
            size = os.fstat(log.fileno()).st_size
            log.seek(max(0, size - _TAIL))
            ending = log.read(_TAIL)
    except OSError:
        return None
    first, _ = _lines(beginning)
    last, _ = _lines(ending)
    return StoredLog(lines=first + last[-1:], where=str(path))
