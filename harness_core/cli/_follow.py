"""Following a log's file while another process writes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from harness_core.session import Event, LogDamagedError
from harness_core.session.codec import LogCodec, decode_info
from harness_core.session.file_store import read_log_file

__all__ = ["follow_events"]

_PAUSE = 0.1
"""Seconds between looks: soon enough for a person, and next to no work."""


def follow_events(path: Path, wait: Callable[[float], None] = time.sleep) -> Iterator[Event]:
    """Every event of the log from its first one on, and each further one as it is written; never ends by itself.

    Raises:
        SessionError: the file cannot be read, or is no log.
    """
    read_log_file(path)  # says what is wrong with it, before anything is shown
    codec = LogCodec()
    with path.open("rb") as file:
        decode_info(file.readline())
        rest, number = b"", 1
        while True:
            read = file.read()
            if not read:
                wait(_PAUSE)
                continue
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                number += 1
                try:
                    yield codec.decode(line)
                except ValueError as error:
                    raise LogDamagedError(
                        f"Line {number} of {path} cannot be read: {error}", file=str(path), line=number, offset=0
                    ) from error
