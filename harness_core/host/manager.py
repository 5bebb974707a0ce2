"""The one place that knows pluggy's manager: registering activations and answering who listens to a hook, in order.

The order is pluggy's own (D2); the composition's outermost tier is put in front of it, each tier in pluggy's order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

from harness_core.hooks import HookSpecs, Listener
from harness_core.hooks.listeners import code_place, style_of
from harness_core.hooks.specs import OBSERVERS, PROJECT_NAME
from harness_core.host.catalog import HookCatalog, Implementations
from harness_core.scopes import ScopeNode

if TYPE_CHECKING:
    from harness_core.host.activation import Activation

__all__ = ["HookManager"]


class HookManager:
    """The activations that are registered, and the listeners that they bring."""

    def __init__(self) -> None:
        self.catalog = HookCatalog()
        self.generation = 0
        self._pluggy = pluggy.PluginManager(PROJECT_NAME)
        self._pluggy.add_hookspecs(HookSpecs)
        self._activations: dict[Activation, None] = {}
        self._registered = 0

    @property
    def activations(self) -> list[Activation]:
        """What is active, in order of registration."""
        return list(self._activations)

    def enlist(self, activation: Activation) -> None:
        """Register an activation's hooks; they leave with its effects."""
        activation.rank = self._registered
        self._registered += 1
        hooks = activation.hooks
        names = [name for name in hooks.names if name != hooks.setup]
        implementations = Implementations(activation.plugin, names, activation)
        self._pluggy.register(implementations, name=f"{activation.name}#{activation.rank}")
        self._activations[activation] = None
        self.generation += 1
        activation.effects.add(lambda: self._delist(activation, implementations), "its hooks")

    def _delist(self, activation: Activation, implementations: Implementations) -> None:
        self._pluggy.unregister(implementations)
        del self._activations[activation]
        self.generation += 1

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
