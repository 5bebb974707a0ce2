"""The lines of standard input, read so that a wait for one can be cancelled and keeps no program from ending."""

from __future__ import annotations

import os
import stat
import sys

import anyio
import anyio.to_thread

from harness_core._text import clean

__all__ = ["Lines"]

_CHUNK = 65536


class Lines:
    """Standard input, line by line; what is no UTF-8 in it is shown as such, and ends nothing."""

    def __init__(self) -> None:
        self._descriptor = _waitable()
        self._rest = b""
        self._ended = False

    async def next(self) -> str | None:
        """The next line, without its end; None where there are no more."""
        if self._descriptor is None:
            # A file answers at once. A thread that waits for a terminal would outlive the program.
            line = await anyio.to_thread.run_sync(_read_line, abandon_on_cancel=True)
            return clean(line.rstrip("\r\n")) if line else None
        while b"\n" not in self._rest and not self._ended:
            await anyio.wait_readable(self._descriptor)
            read = os.read(self._descriptor, _CHUNK)
            self._rest, self._ended = self._rest + read, not read
        if not self._rest:
            return None
        first, _, self._rest = self._rest.partition(b"\n")
        return first.decode(errors="replace").rstrip("\r")


def _waitable() -> int | None:
    """The descriptor of standard input where one can wait for it to be ready: a terminal, a pipe or a socket."""
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
    except (AttributeError, OSError, ValueError):  # there is none, or it is closed, or replaced
        return None
    waits = os.isatty(descriptor) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return descriptor if waits and sys.platform != "win32" else None


def _read_line() -> str:
    if sys.stdin is None:  # the program was started without one
        return ""
    if hasattr(sys.stdin, "buffer"):
        return sys.stdin.buffer.readline().decode(errors="replace")
    return sys.stdin.readline()
