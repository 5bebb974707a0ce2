"""The services that the plugin offers to other plugins: files of the machine, and a shell that can be stopped."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence

import anyio

from harness_core.tools import FileInfo, ShellResult
from harness_workspace._shell import Finished, environment, run_command

__all__ = ["LocalFiles", "LocalShell"]


class LocalFiles:
    """The `FileSystem` service over the machine's own files. Blocking calls run in worker threads."""

    async def info(self, path: str) -> FileInfo | None:
        return await anyio.to_thread.run_sync(_info, path)

    async def infos(self, paths: Sequence[str]) -> Sequence[FileInfo | OSError | None]:
        return await anyio.to_thread.run_sync(_infos, tuple(paths))

    async def read(self, path: str, limit: int) -> bytes:
        return await anyio.to_thread.run_sync(_read, path, limit)

    async def children(self, path: str) -> list[str]:
        return await anyio.to_thread.run_sync(_children, path)


def _info(path: str) -> FileInfo | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise _unusable(path, error) from None
    kind = "file" if stat.S_ISREG(found.st_mode) else "directory" if stat.S_ISDIR(found.st_mode) else "other"
    version = f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"
    return FileInfo(kind=kind, size=found.st_size if kind == "file" else None, version=version)


def _infos(paths: Sequence[str]) -> list[FileInfo | OSError | None]:
    found: list[FileInfo | OSError | None] = []
    for path in paths:
        try:
            found.append(_info(path))
        except OSError as error:
            found.append(error)
    return found


def _read(path: str, limit: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:
        raise _unusable(path, error) from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "It is no regular file", path)
        return file.read(limit)


def _children(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except ValueError as error:
        raise _unusable(path, error) from None


def _unusable(path: str, error: ValueError) -> OSError:
    """A path that no file can have: with a NUL, or a lone surrogate."""
    return OSError(errno.EINVAL, str(error), path)


class LocalShell:
    """The `Shell` service: commands in a process group of their own, of which nothing is left afterwards."""

    def __init__(self, cwd: str | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._cwd = cwd
        self._environ = environ

    async def run(self, command: str, *, cwd: str | None = None, timeout: float = 10.0) -> ShellResult:
        done = await self.finished(command, cwd=cwd, timeout=timeout)
        return ShellResult(exit_code=done.exit_code, stdout=done.stdout, stderr=done.stderr)

    async def finished(self, command: str, *, cwd: str | None, timeout: float) -> Finished:
        """Like `run`, with what ended the command."""
        environ = environment(os.environ if self._environ is None else self._environ)
        return await run_command(command, cwd=cwd or self._cwd, timeout=timeout, environ=environ)
