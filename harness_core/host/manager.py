"""The one place that knows pluggy's manager: registering activations and answering who listens to a hook, in order.

The order is pluggy's own (D2); the composition's outermost tier is put in front of it, each tier in pluggy's order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import pluggy

from harness_core.hooks import Listener
from harness_core.hooks.listeners import code_place, style_of
from harness_core.hooks.specs import OBSERVERS, hook_manager
from harness_core.host.catalog import HookCatalog, Implementations
from harness_core.scopes import Origin, ScopeNode
from harness_core.scopes.staging import Position, arranged, current_staging

if TYPE_CHECKING:
    from harness_core.host.activation import Activation

__all__ = ["HookManager"]


class HookManager:
    """The activations that are registered, and the listeners that they bring."""

    def __init__(self) -> None:
        self.catalog = HookCatalog()
        self.generation = 0
        self._pluggy = hook_manager()
        self._activations: dict[Activation, Implementations] = {}
        self._registered = 0

    @property
    def activations(self) -> list[Activation]:
        """What is active, in order of registration."""
        return list(self._activations)

    def enlist(self, activation: Activation) -> None:
        """Register an activation's hooks; they leave with its effects."""
        staging = current_staging()
        if staging is not None:
            staging.file(
                self,
                activation.scope,
                activation.effects,
                activation,
                activation,
                lambda: self._delist(activation),
                "its hooks",
            )
            return
        self._register(activation)
        activation.effects.add(lambda: self._delist(activation), "its hooks")

    def _register(self, activation: Activation) -> None:
        activation.rank = self._registered
        self._registered += 1
        hooks = activation.hooks
        names = [name for name in hooks.names if name != hooks.setup]
        implementations = Implementations(activation.plugin, names, activation)
        self._pluggy.register(implementations, name=f"{activation.name}#{activation.rank}")
        self._activations[activation] = implementations
        self.generation += 1

    def _delist(self, activation: Activation) -> None:
        implementations = self._activations.pop(activation, None)
        if implementations is not None:
            self._pluggy.unregister(implementations)
            self.generation += 1

    # --- a change of several tables (see `StagedTable`) ---------------------------------------------------------------

    def taken(self, scope: ScopeNode, key: Hashable) -> tuple[Any, Origin] | None:
        return None  # any number of activations of a plugin may be active

    def insert(self, scope: ScopeNode, key: Any, value: Activation, origin: Origin) -> None:
        self._register(value)

    def drop(self, goes: Callable[[Origin], bool]) -> None:
        for activation in self.activations:
            if goes(activation.origin):
                self._delist(activation)

    def arrange(self, position: Position) -> None:
        """Register anew from the first activation that is out of order on: pluggy's order is that of registration."""
        ordered = arranged(self.activations, lambda activation: activation.origin, position)
        self._register_in(ordered)

    def _register_in(self, ordered: list[Activation]) -> None:
        now = self.activations
        same = next((i for i, (a, b) in enumerate(zip(now, ordered, strict=False)) if a is not b), len(ordered))
        for activation in now[same:]:
            self._delist(activation)
        self._registered = ordered[same - 1].rank + 1 if same else 0
        for activation in ordered[same:]:
            self._register(activation)

    def snapshot(self) -> list[Activation]:
        return self.activations

    def restore(self, snapshot: list[Activation]) -> None:
        self._register_in(snapshot)

    def announce(self) -> None:
        return None

    def listeners(self, hook: str, scope: ScopeNode | None) -> list[Listener]:
        """The listeners of a hook that ``scope`` admits, outermost first; all of them for None (SCOPE-17)."""
        caller: pluggy.HookCaller | None = getattr(self._pluggy.hook, hook, None)
        if caller is None:
            return []
        chain = None if scope is None else set(scope.chain())
        found = [
            self._listener(hook, impl)
            for impl in reversed(caller.get_hookimpls())
            if chain is None or _activation_of(impl).scope in chain
        ]
        if any(listener.outermost for listener in found):
            found.sort(key=lambda listener: not listener.outermost)
        return found

    def _listener(self, hook: str, impl: pluggy.HookImpl) -> Listener:
        activation = _activation_of(impl)
        file, line = code_place(impl.function)
        return Listener(
            hook=hook,
            plugin=activation.name,
            distribution=activation.origin.distribution,
            version=activation.origin.version,
            scope=activation.scope,
            style=style_of(impl, observer=hook in OBSERVERS),
            function=impl.function,
            argnames=tuple(impl.argnames),
            tryfirst=impl.tryfirst,
            trylast=impl.trylast,
            outermost=activation.outermost,
            rank=activation.rank,
            constraints=activation.constraints,
            file=file,
            line=line,
        )


def _activation_of(impl: pluggy.HookImpl) -> Activation:
    activation: Activation = impl.plugin._activation  # type: ignore[attr-defined]
    return activation
