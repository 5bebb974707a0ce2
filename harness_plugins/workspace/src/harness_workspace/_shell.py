"""Running a command line: in a process group of its own, with bounded output, and nothing left of it afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping

import anyio
import anyio.abc
import attrs

__all__ = ["Finished", "environment", "run_command"]

KEPT_BYTES = 512 * 1024
"""Bytes kept of the beginning, and as many of the end, of each output stream."""
GRACE = 0.2
"""Seconds that output may still come after the command ended, while something it started holds the stream."""
_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class Finished:
    """A command that is over. ``exit_code`` is None where a signal ended it or the time was up."""

    exit_code: int | None
    ended_by: str | None
    """What ended it instead: a signal's name, or ``"timeout"``."""
    stdout: str
    stderr: str


class _Kept:
    """The beginning and the end of a stream."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = KEPT_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room < len(data) else b""
        extra = len(self._tail) - KEPT_BYTES
        if extra > 0:
            del self._tail[:extra]
            self._dropped += extra

    def text(self) -> str:
        if not self._dropped:
            return (self._head + self._tail).decode("utf-8", errors="replace")
        head = self._head.decode("utf-8", errors="replace")
        return f"{head}\n[{self._dropped} bytes are left out here]\n{self._tail.decode('utf-8', errors='replace')}"


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for commands: all of it but what looks like a secret, which output would carry into a log."""
    return {name: value for name, value in environ.items() if not _SECRET.search(name)}


async def run_command(
    command: str, *, cwd: str | os.PathLike[str] | None, timeout: float, environ: Mapping[str, str]
) -> Finished:
    """Run a command line with /bin/sh to its end, or end it after ``timeout`` seconds; cancelling ends it too.

    Whatever it left running in its process group ends with it.

    Raises:
        OSError: it cannot be started, as when there is no such folder.
    """
    out, err = _Kept(), _Kept()
    async with await anyio.open_process(
        ["/bin/sh", "-c", command],
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        over = False
        try:
            async with anyio.create_task_group() as readers:
                readers.start_soon(_collect, process.stdout, out)
                readers.start_soon(_collect, process.stderr, err)
                with anyio.move_on_after(timeout):
                    await process.wait()
                    over = True
                # Whoever is left in the group may hold the streams open for as long as it likes.
                readers.cancel_scope.deadline = anyio.current_time() + GRACE
                if not over:
                    _end_group(process.pid)
        finally:
            _end_group(process.pid)
    code = process.returncode
    return Finished(
        exit_code=code if over and code is not None and code >= 0 else None,
        ended_by="timeout" if not over else _signal(code) if code is not None and code < 0 else None,
        stdout=out.text(),
        stderr=err.text(),
    )


async def _collect(stream: anyio.abc.ByteReceiveStream | None, into: _Kept) -> None:
    if stream is not None:
        async for data in stream:
            into.add(data)


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # nobody is left in it, or nobody of ours
