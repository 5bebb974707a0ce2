"""Named entries by scope: the nearest layer's entry of a name wins for a scope and those below it.

The simple storage behind tools, model adapters and services. (The prompt registry has its own, since it needs live
iteration and compiled views.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, cast

from harness_core.errors import DuplicateNameError
from harness_core.scopes.effects import Effects, Handle
from harness_core.scopes.origin import Origin
from harness_core.scopes.scope import ScopeNode
from harness_core.scopes.staging import Position, arranged, current_staging, looking

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
        self._origins: dict[tuple[ScopeNode, K], Origin] = {}
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
        staging = current_staging()
        taken = self._layers.get(scope, {}).get(key) if staging is None else staging.taken(self, scope, key)
        if taken is not None:
            self._refuse(scope, owner, key, taken)
        label = f"{self.kind} {key!r}"
        if staging is not None:
            return staging.file(self, scope, owner, key, value, lambda: self._remove(scope, key, value), label)
        self.insert(scope, key, value, owner.origin)
        handle = owner.add(lambda: self._remove(scope, key, value), label)
        try:
            self.changed()
        except BaseException:
            handle.forget()
            self._remove(scope, key, value)
            raise
        return handle

    def _remove(self, scope: ScopeNode, key: K, value: V) -> None:
        if self._layers.get(scope, {}).get(key) is not value:
            return
        self._delete(scope, key)
        try:
            self.changed()
        except Exception:
            _log.exception("An observer failed on the removal of %s %r; the removal stands.", self.kind, key)

    def _delete(self, scope: ScopeNode, key: K) -> None:
        layer = self._layers[scope]
        del layer[key]
        del self._origins[scope, key]
        self.generation += 1
        if not layer:
            del self._layers[scope]

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

    # --- reading ------------------------------------------------------------------------------------------------------

    def layer(self, scope: ScopeNode) -> dict[K, V]:
        """The scope's own entries."""
        own = self._layers.get(scope, {})
        staging = looking()
        return dict(own) if staging is None else staging.overlay(self, scope, own)

    def find(self, scope: ScopeNode, key: K) -> V | None:
        """The nearest entry of that key."""
        staging = looking()
        for each in scope.chain():
            layer = self._layers.get(each, {})
            if staging is not None:
                layer = staging.overlay(self, each, layer)
            if key in layer:
                return layer[key]
        return None

    def effective(self, scope: ScopeNode) -> dict[K, V]:
        """All entries that the scope sees, the farthest layer's first."""
        merged: dict[K, V] = {}
        for each in reversed(scope.chain()):
            merged.update(self.layer(each))
        return merged

    # --- a change of several tables (see `StagedTable`) ---------------------------------------------------------------

    def taken(self, scope: ScopeNode, key: Hashable) -> tuple[V, Origin] | None:
        name = cast("K", key)
        layer = self._layers.get(scope, {})
        return (layer[name], self._origins[scope, name]) if name in layer else None

    def insert(self, scope: ScopeNode, key: K, value: V, origin: Origin) -> None:
        self._layers.setdefault(scope, {})[key] = value
        self._origins[scope, key] = origin
        self.generation += 1

    def drop(self, goes: Callable[[Origin], bool]) -> None:
        for scope, key in [place for place, origin in self._origins.items() if goes(origin)]:
            self._delete(scope, key)

    def arrange(self, position: Position) -> None:
        for scope, layer in self._layers.items():
            keys = arranged(layer, lambda key, scope=scope: self._origins[scope, key], position)  # type: ignore[misc]
            if keys != list(layer):
                self._layers[scope] = {key: layer[key] for key in keys}
                self.generation += 1

    def snapshot(self) -> Any:
        return {scope: dict(layer) for scope, layer in self._layers.items()}, dict(self._origins)

    def restore(self, snapshot: Any) -> None:
        layers, origins = snapshot
        self._layers, self._origins = {scope: dict(layer) for scope, layer in layers.items()}, dict(origins)
        self.generation += 1

    def announce(self) -> None:
        self.changed()
