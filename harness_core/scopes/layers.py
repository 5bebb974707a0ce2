"""Named entries by scope: the nearest layer's entry of a name wins for a scope and those below it.

The simple storage behind tools, model adapters and services. (The prompt registry has its own, since it needs live
iteration and compiled views.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from harness_core.errors import DuplicateNameError
from harness_core.scopes.effects import Effects, Handle
from harness_core.scopes.scope import ScopeNode

__all__ = ["ScopedTable"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_log = logging.getLogger("harness")


class ScopedTable(Generic[K, V]):
    """Entries under keys, filed by scope and undone with their owner. ``kind`` is the word for an entry in errors."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.generation = 0
        """Moves with every change of any layer."""
        self._layers: dict[ScopeNode, dict[K, V]] = {}
        self.changed: Callable[[], None] = lambda: None
        """Called after each change; raising in a registration takes it back."""

    def file(self, scope: ScopeNode, owner: Effects, key: K, value: V) -> Handle:
        """File an entry into the scope's layer.

        Raises:
            InactiveOwnerError: owner or scope is gone or going.
            DuplicateNameError: the layer has the key; names both owners.
        """
        owner.require_active()
        scope.effects.require_active()
        layer = self._layers.get(scope, {})
        if key in layer:
            self._refuse(scope, owner, key, layer[key])
        self._layers[scope] = layer
        layer[key] = value
        self.generation += 1
        handle = owner.add(lambda: self._remove(scope, layer, key, value), f"{self.kind} {key!r}")
        try:
            self.changed()
        except BaseException:
            handle.forget()
            self._remove(scope, layer, key, value)
            raise
        return handle

    def _remove(self, scope: ScopeNode, layer: dict[K, V], key: K, value: V) -> None:
        if layer.get(key) is value:
            del layer[key]
            self.generation += 1
            if not layer:
                self._layers.pop(scope, None)
            try:
                self.changed()
            except Exception:
                _log.exception("An observer failed on the removal of %s %r; the removal stands.", self.kind, key)

    def _refuse(self, scope: ScopeNode, owner: Effects, key: K, taken: Any) -> None:
        layer = "global" if scope.is_root else scope.name
        remedy = (
            "To override it for one agent, register it through that agent's scope."
            if scope.is_root
            else "The clash is inside this scope: dispose the other registration, or use another name."
        )
        other = getattr(taken, "origin", None)
        raise DuplicateNameError(
            f"The {self.kind} {key!r} is already registered in layer {layer!r}{f' by {other}' if other else ''}; "
            f"registered again by {owner.origin}.",
            remedy=remedy,
            kind=self.kind,
            entry=str(key),
            layer=layer,
            names=[str(other), str(owner.origin)],
            plugin=owner.origin.plugin,
            distribution=owner.origin.distribution,
            version=owner.origin.version,
        )

    def layer(self, scope: ScopeNode) -> dict[K, V]:
        """The scope's own entries."""
        return dict(self._layers.get(scope, {}))

    def find(self, scope: ScopeNode, key: K) -> V | None:
        """The nearest entry of that key."""
        for each in scope.chain():
            layer = self._layers.get(each)
            if layer is not None and key in layer:
                return layer[key]
        return None

    def effective(self, scope: ScopeNode) -> dict[K, V]:
        """All entries that the scope sees, the farthest layer's first."""
        merged: dict[K, V] = {}
        for each in reversed(scope.chain()):
            merged.update(self._layers.get(each, {}))
        return merged
