"""Which model adapters a scope can use, by provider name."""

from __future__ import annotations

import attrs

from harness_core.models.adapter import ModelAdapter
from harness_core.scopes import Effects, Handle, Origin, ScopeNode
from harness_core.scopes.layers import ScopedTable

__all__ = ["AdapterEntry", "ModelRegistry", "ScopedModels"]


@attrs.frozen(kw_only=True, eq=False)
class AdapterEntry:
    """One registration; a request holds on to it from resolution to dispatch (HDR-06)."""

    provider: str
    adapter: ModelAdapter
    origin: Origin


class ModelRegistry:
    """All adapters of one tree of scopes."""

    def __init__(self) -> None:
        self.table: ScopedTable[str, AdapterEntry] = ScopedTable("model provider")

    def at(self, scope: ScopeNode, owner: Effects | None = None) -> ScopedModels:
        return ScopedModels(self, scope, owner if owner is not None else scope.effects)

    def find(self, scope: ScopeNode, provider: str) -> AdapterEntry | None:
        """The nearest adapter of that provider name."""
        return self.table.find(scope, provider)

    def effective(self, scope: ScopeNode) -> dict[str, AdapterEntry]:
        """All adapters that the scope can use, by provider name."""
        return self.table.effective(scope)


class ScopedModels:
    """Registers adapters into one scope, on behalf of one owner."""

    __slots__ = ("_owner", "_registry", "scope")

    def __init__(self, registry: ModelRegistry, scope: ScopeNode, owner: Effects) -> None:
        self._registry = registry
        self._owner = owner
        self.scope = scope

    def register(self, provider: str, adapter: ModelAdapter) -> Handle:
        """Serve requests whose configuration names ``provider``.

        Raises:
            DuplicateNameError: the scope has an adapter of that name; names both owners.
            InactiveOwnerError: owner or scope is gone or going.
        """
        entry = AdapterEntry(provider=provider, adapter=adapter, origin=self._owner.origin)
        return self._registry.table.file(self.scope, self._owner, provider, entry)

    def providers(self) -> dict[str, AdapterEntry]:
        """All adapters that the scope can use, by provider name."""
        return self._registry.effective(self.scope)
