"""The order of a hook's listeners: who is called, who is not and why, and what would be otherwise elsewhere.

Static: nothing is dispatched. Two orders can be compared, of two scopes, of one harness with and without a plugin, or of
two compositions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from harness_core.hooks import Listener
from harness_core.hooks.specs import OBSERVERS, WATERFALLS
from harness_core.host import Harness, Scope
from harness_core.inspect.difference import list_changes
from harness_core.inspect.trace import listener_json
from harness_core.scopes import ScopeNode

__all__ = ["Filtered", "HookOrder", "OrderComparison", "OrderRow", "compare_orders", "hook_order", "hook_orders"]


@attrs.frozen
class Filtered:
    """A listener that dispatches in this scope do not reach, and why (UC-17)."""

    listener: Listener
    reason: str


@attrs.frozen(kw_only=True)
class HookOrder:
    """The listeners of one hook as one scope has them, outermost first."""

    hook: str
    scope: str
    listeners: tuple[Listener, ...]
    filtered: tuple[Filtered, ...]

    @property
    def waterfall(self) -> bool:
        return self.hook in WATERFALLS

    def without(self, plugin: str) -> HookOrder:
        """The order that is left when a plugin's listeners are not there; constraints that it brought stay in force."""
        return attrs.evolve(
            self,
            listeners=tuple(each for each in self.listeners if each.plugin != plugin),
            filtered=tuple(each for each in self.filtered if each.listener.plugin != plugin),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "hook": self.hook,
            "scope": self.scope,
            "listeners": [{"place": place, **_json(each)} for place, each in enumerate(self.listeners, start=1)],
            "filtered": [{**_json(each.listener), "reason": each.reason} for each in self.filtered],
        }


def _json(listener: Listener) -> dict[str, Any]:
    return {
        **listener_json(listener),
        "tryfirst": listener.tryfirst,
        "trylast": listener.trylast,
        "outermost": listener.outermost,
        "rank": listener.rank,
        "constraints": list(listener.constraints),
    }


def hook_order(harness: Harness, hook: str, scope: Scope | None = None) -> HookOrder:
    """The order of a hook in a scope, the global one by default.

    Raises:
        HarnessError: there is no such hook.
    """
    scope = scope if scope is not None else harness.root
    admitted = harness.listeners(hook, scope)
    known = {(each.rank, each.function) for each in admitted}
    filtered = [
        Filtered(each, _reason(each.scope, scope))
        for each in harness.listeners(hook)
        if (each.rank, each.function) not in known
    ]
    return HookOrder(hook=hook, scope=scope.name, listeners=tuple(admitted), filtered=tuple(filtered))


def hook_orders(harness: Harness, scope: Scope | None = None) -> list[HookOrder]:
    """The orders of all hooks that anybody listens to."""
    orders = [hook_order(harness, hook, scope) for hook in (*WATERFALLS, *OBSERVERS)]
    return [order for order in orders if order.listeners or order.filtered]


def _reason(own: ScopeNode, scope: ScopeNode) -> str:
    rule = "a listener hears its own scope and those below it"
    if scope in own.chain():
        return f"registered in scope {own.name!r}, which is below {scope.name!r}; {rule}"
    path = " -> ".join(each.name for each in reversed(scope.chain()))
    return f"registered in scope {own.name!r}, which is not among {path}; {rule}"


@attrs.frozen(kw_only=True)
class OrderRow:
    """One listener's places in two orders, counted from 1; None where it is not there. ``moved``: past another one."""

    name: str
    plugin: str
    left: int | None
    right: int | None
    moved: bool
    why: tuple[str, str]
    """Why it stands where it stands, in each of the two."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "plugin": self.plugin,
            "left": self.left,
            "right": self.right,
            "moved": self.moved,
            "why": list(self.why),
        }


@attrs.frozen(kw_only=True)
class OrderComparison:
    """Two orders of one hook side by side, in the order of the left one, then what only the right one has."""

    hook: str
    rows: tuple[OrderRow, ...]

    @property
    def same(self) -> bool:
        return all(row.left is not None and row.right is not None and not row.moved for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        return {"hook": self.hook, "same": self.same, "rows": [row.to_json() for row in self.rows]}


def compare_orders(left: HookOrder, right: HookOrder) -> OrderComparison:
    """What has come, gone or moved between two orders of the same hook."""
    moved = {
        change.name
        for change in list_changes("listeners", left.listeners, right.listeners, listener_key)
        if change.kind == "moved"
    }
    places = _places(left.listeners), _places(right.listeners)
    plugins = {listener_key(each): each.plugin for each in (*right.listeners, *left.listeners)}
    whys = [{listener_key(each): each.why for each in order.listeners} for order in (left, right)]
    keys = dict.fromkeys([*places[0], *places[1]])
    rows = [
        OrderRow(
            name=key,
            plugin=plugins[key],
            left=places[0].get(key),
            right=places[1].get(key),
            moved=key in moved,
            why=(whys[0].get(key, ""), whys[1].get(key, "")),
        )
        for key in keys
    ]
    return OrderComparison(hook=left.hook, rows=tuple(rows))


def listener_key(listener: Listener) -> str:
    """What a listener is recognised by in another harness: plugin, function and scope."""
    function = getattr(listener.function, "__qualname__", repr(listener.function))
    return f"{listener.plugin}: {function} in {listener.scope.name}"


def _places(listeners: Sequence[Listener]) -> dict[str, int]:
    return {listener_key(each): place for place, each in enumerate(listeners, start=1)}
