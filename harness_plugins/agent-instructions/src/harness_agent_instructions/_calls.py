"""Tool calls that are under way, one inside another: who of them touched what, once their results are final (1.4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs

from harness_core import ToolCall

__all__ = ["TOUCHING_TOOLS", "OpenCall", "OpenCalls"]

TOUCHING_TOOLS = frozenset({"read", "write", "edit"})
"""Tools whose ``file_path`` says where work goes on. Shell commands say nothing that could be relied on."""


@attrs.define(eq=False)
class OpenCall:
    """A call that has not come back. ``call`` is what is really carried out, after all listeners rewrote it."""

    call: ToolCall
    outer: OpenCall | None
    inner: list[str] = attrs.field(factory=list[str])
    """Directories that calls inside this one touched."""
    settled: bool = False


class OpenCalls:
    """The open calls of one plugin; each task sees those that it runs in."""

    def __init__(self) -> None:
        self._current: ContextVar[OpenCall | None] = ContextVar("harness_agent_instructions_call", default=None)

    @property
    def current(self) -> OpenCall | None:
        """The innermost call that this task runs in."""
        call = self._current.get()
        # What a tool left running in the background belongs to no call any more.
        return None if call is None or call.settled else call

    @contextmanager
    def entered(self, call: ToolCall) -> Iterator[OpenCall]:
        """While a call is carried out."""
        mine = OpenCall(call, self.current)
        token = self._current.set(mine)
        try:
            yield mine
        finally:
            self._current.reset(token)
            mine.settled = True
