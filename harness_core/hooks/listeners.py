"""Listeners: one implementation of a hook, with who it belongs to, how it is written and why it stands where it stands.

Knows pluggy's implementation records, but not its manager.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

import attrs
import pluggy

from harness_core.scopes import ScopeNode

__all__ = ["Listener", "ListenerSource", "Style", "code_place"]


class Style(Enum):
    """The ways to write a listener (D3)."""

    CALL_NEXT = "call_next"
    WRAPPER = "wrapper"
    PLAIN = "plain"
    OBSERVER = "observer"


def code_place(function: Callable[..., Any]) -> tuple[str | None, int | None]:
    """File and line of a function's definition, where Python knows them."""
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else (None, None)


@attrs.frozen(kw_only=True, eq=False)
class Listener:
    """One hook implementation as it takes part in dispatches."""

    hook: str
    plugin: str
    distribution: str | None
    version: str | None
    scope: ScopeNode
    style: Style
    function: Callable[..., Any] = attrs.field(repr=False)
    argnames: tuple[str, ...] = ()
    tryfirst: bool = False
    trylast: bool = False
    outermost: bool = False
    rank: int = 0
    """Position in the order of registration, counted from 0."""
    constraints: tuple[str, ...] = ()
    """The before/after constraints that took part in the plugin's rank, such as ``"before time"``."""
    file: str | None = None
    line: int | None = None

    @property
    def label(self) -> str:
        """The owner as errors and reports name it."""
        package = f" ({self.distribution} {self.version})" if self.distribution else ""
        place = f", {self.file}:{self.line}" if self.file else ""
        return f"plugin {self.plugin!r}{package}{place}"

    @property
    def why(self) -> str:
        """Why the listener stands where it stands (D2), in words."""
        if self.outermost:
            tier = "in the outermost tier of the composition"
        elif self.style is Style.WRAPPER:
            tier = "wrappers run outside all others"
        elif self.tryfirst:
            tier = "tryfirst"
        elif self.trylast:
            tier = "trylast"
        else:
            tier = "no priority"
        if self.style is Style.WRAPPER and not self.outermost:
            tier += "; tryfirst among them" if self.tryfirst else "; trylast among them" if self.trylast else ""
        constraints = f"; {', '.join(self.constraints)}" if self.constraints else ""
        return f"{tier}; registered as number {self.rank} (later is further out){constraints}"

    def facts(self) -> dict[str, Any]:
        """The attributes by which an error names this listener."""
        return {
            "plugin": self.plugin,
            "distribution": self.distribution,
            "version": self.version,
            "hook": self.hook,
            "file": self.file,
            "line": self.line,
        }


def style_of(impl: pluggy.HookImpl, *, observer: bool) -> Style:
    """Which of the ways an implementation is written in."""
    if observer:
        return Style.OBSERVER
    if impl.wrapper or impl.hookwrapper:
        return Style.WRAPPER
    return Style.CALL_NEXT if "call_next" in impl.argnames else Style.PLAIN


class ListenerSource(Protocol):
    """Where dispatchers get their listeners from; the host implements it over pluggy's manager."""

    @property
    def generation(self) -> int:
        """Moves with every change of the set or order of listeners."""
        ...

    def listeners(self, hook: str, scope: ScopeNode | None) -> list[Listener]:
        """The listeners of a hook that ``scope`` admits, outermost first; all of them for None (SCOPE-17)."""
        ...
