"""Running a command line: in a process group of its own, with bounded output, and nothing left of it afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from typing import Self

import anyio
import attrs

__all__ = ["Finished", "environment", "run_command"]

KEPT_BYTES = 512 * 1024
"""Bytes kept of the beginning, and as many of the end, of each output stream."""
GRACE = 0.2
"""Seconds that output may still come after the command ended, while something it started holds the stream."""
_CHUNK = 65_536
_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class Finished:
    """A command that is over. ``exit_code`` is None where a signal ended it or the time was up."""

    exit_code: int | None
    ended_by: str | None
    """What ended it instead: a signal's name, or ``"timeout"``."""
    stdout: str
    stderr: str


class _Output:
    """One of a command's output streams: a pipe, and the beginning and the end of what came out of it.

    The pipe is ours and not the event loop's: whoever inherited its other end may keep that open for as long as it
    likes, and must not keep ours open too.
    """

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._is_open = True
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.handed_over()
        os.close(self._reading)

    def handed_over(self) -> None:
        """The command has the other end by now."""
        if self._is_open:
            self._is_open = False
            os.close(self.writing)

    async def collect(self) -> None:
        """Take what comes until everybody has closed the other end."""
        while True:
            await anyio.wait_readable(self._reading)
            data = os.read(self._reading, _CHUNK)
            if not data:
                return
            self._add(data)

    def _add(self, data: bytes) -> None:
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
    with _Output() as out, _Output() as err:
        async with await anyio.open_process(
            ["/bin/sh", "-c", command],
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=out.writing,
            stderr=err.writing,
            start_new_session=True,
        ) as process:
            over = False
            try:
                out.handed_over()
                err.handed_over()
                async with anyio.create_task_group() as readers:
                    readers.start_soon(out.collect)
                    readers.start_soon(err.collect)
                    with anyio.move_on_after(timeout):
                        await process.wait()
                        over = True
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
