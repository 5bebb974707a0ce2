"""The audit file: lines that are queued from anywhere and written by one task. Knows nothing of agents.

The task belongs to the harness. If it cannot write, the harness stops: what cannot be written down is not to be done.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectSendStream

__all__ = ["Audit", "open_audit"]


class Audit:
    """Takes records from functions that may not wait."""

    def __init__(self, lines: MemoryObjectSendStream[str]) -> None:
        self._lines = lines

    def record(self, **facts: Any) -> None:
        self._lines.send_nowait(json.dumps(facts, ensure_ascii=False) + "\n")


@asynccontextmanager
async def open_audit(path: str, tasks: anyio.abc.TaskGroup) -> AsyncIterator[Audit]:
    """An open audit file; when it is closed, everything that was recorded is in it.

    Raises:
        OSError: the file cannot be opened.
    """
    # No limit: a record must not be lost, and who records cannot wait.
    lines, queued = anyio.create_memory_object_stream[str](math.inf)
    written = anyio.Event()

    async def write() -> None:
        try:
            async with queued:
                async for line in queued:
                    await file.write(line)
                    await file.flush()
        finally:
            written.set()

    async with await anyio.open_file(path, "a", encoding="utf-8") as file:
        tasks.start_soon(write, name="audit")
        async with lines:
            yield Audit(lines)
        await written.wait()
