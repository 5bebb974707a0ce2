"""The services that the plugin offers to other plugins: files of the machine, and a shell that can be stopped."""

from __future__ import annotations

import os
import signal
import stat
import subprocess

import anyio
import anyio.abc

from harness_core.tools import FileInfo, ShellResult

__all__ = ["LocalFiles", "LocalShell"]

_OUTPUT_LIMIT = 1024 * 1024
"""Bytes kept of each output stream; more is read and thrown away, so that the command does not stall."""


class LocalFiles:
    """The `FileSystem` service over the machine's own files. Blocking calls run in worker threads."""

    async def info(self, path: str) -> FileInfo | None:
        try:
            found = await anyio.to_thread.run_sync(os.stat, path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        kind = "file" if stat.S_ISREG(found.st_mode) else "directory" if stat.S_ISDIR(found.st_mode) else "other"
        version = f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"
        return FileInfo(kind=kind, size=found.st_size if kind == "file" else None, version=version)

    async def read(self, path: str, limit: int) -> bytes:
        return await anyio.to_thread.run_sync(_read, path, limit)

    async def children(self, path: str) -> list[str]:
        return sorted(await anyio.to_thread.run_sync(os.listdir, path))


def _read(path: str, limit: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is no regular file")
        return file.read(limit)


class LocalShell:
    """The `Shell` service: commands in a process group of their own, killed as a group."""

    def __init__(self, cwd: str | None = None) -> None:
        self._cwd = cwd

    async def run(self, command: str, *, cwd: str | None = None, timeout: float = 10.0) -> ShellResult:
        async with await anyio.open_process(
            ["/bin/sh", "-c", command],
            cwd=cwd or self._cwd,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            out, err = bytearray(), bytearray()
            finished = False
            try:
                with anyio.move_on_after(timeout):
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(_collect, process.stdout, out)
                        tasks.start_soon(_collect, process.stderr, err)
                    await process.wait()
                    finished = True
            finally:
                if not finished:
                    _kill_group(process.pid)
            code = process.returncode if finished else None
            return ShellResult(
                exit_code=code if code is None or code >= 0 else None,
                stdout=out.decode("utf-8", errors="replace"),
                stderr=err.decode("utf-8", errors="replace"),
            )


async def _collect(stream: anyio.abc.ByteReceiveStream | None, into: bytearray) -> None:
    if stream is None:
        return
    async for data in stream:
        if len(into) < _OUTPUT_LIMIT:
            into += data[: _OUTPUT_LIMIT - len(into)]


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
