"""Observers: telling plugins that something happened. They decide nothing, and one that raises starves no other.

The exception is `system_prompt_change`, whose notice may veto a registration: the registry asks for the bare
functions and calls them itself (REG-13).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from harness_core.hooks.listeners import Listener, ListenerSource
from harness_core.scopes import ScopeNode

__all__ = ["Observer"]

_log = logging.getLogger("harness")


class Observer:
    """One observer hook over a source of listeners; ``arguments`` are the names its specification gives."""

    def __init__(self, hook: str, arguments: tuple[str, ...], source: ListenerSource) -> None:
        self.hook = hook
        self.arguments = arguments
        self._source = source

    def listeners(self, scope: ScopeNode | None) -> list[tuple[Listener, Callable[..., Any]]]:
        """The admitted listeners, outermost first, each with a function that takes all of the hook's arguments."""
        key = (self._source.generation, scope.tree.generation if scope is not None else 0)
        store = scope.attachments if scope is not None else self.__dict__
        cached = store.get(self)  # type: ignore[call-overload]
        if cached is not None and cached[0] == key:
            found: list[tuple[Listener, Callable[..., Any]]] = cached[1]
            return found
        found = [(each, self._adapted(each)) for each in self._source.listeners(self.hook, scope)]
        store[self] = (key, found)  # type: ignore[index]
        return found

    def _adapted(self, listener: Listener) -> Callable[..., Any]:
        if listener.argnames == self.arguments:
            return listener.function
        positions = [self.arguments.index(name) for name in listener.argnames]
        function = listener.function
        return lambda *given: function(*[given[position] for position in positions])

    def notify(self, scope: ScopeNode | None, *arguments: Any) -> None:
        """Call every admitted observer; failures are reported under the plugin's name and go no further (LOG-03)."""
        for listener, call in self.listeners(scope):
            try:
                result = call(*arguments)
                if inspect.iscoroutine(result):
                    result.close()
                    raise TypeError(f"observers of {self.hook} must be plain functions, not coroutine functions")
            except Exception:
                _log.exception("The observer of %s by %s failed.", self.hook, listener.label)

    async def notify_async(self, scope: ScopeNode | None, *arguments: Any) -> None:
        """Like `notify`, for a hook whose observers may be coroutine functions; they run one after another."""
        for listener, call in self.listeners(scope):
            try:
                result = call(*arguments)
                if inspect.isawaitable(result):
                    await result
            except Exception:
                _log.exception("The observer of %s by %s failed.", self.hook, listener.label)
