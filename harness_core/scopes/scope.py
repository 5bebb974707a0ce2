"""The tree of scopes. A scope says who sees a registration; its effects say how long it lives (D5).

Visibility (the parent link) and lifetime (which owner closes the scope) are two relations: a child normally has both
from the same parent, ``inherit`` sets the first alone (SCOPE-02). Knows nothing of what is registered in it: other
floors keep their layers in ``attachments``.
"""

from __future__ import annotations

from typing import Any, Self

from harness_core.errors import ScopeAlreadyBoundError, ScopeCycleError, ScopeError
from harness_core.scopes.effects import Effects
from harness_core.scopes.origin import Origin

__all__ = ["ScopeNode"]


class Tree:
    """What all scopes of one tree share: ``generation`` moves whenever any link of it is changed."""

    __slots__ = ("generation",)

    def __init__(self) -> None:
        self.generation = 0


class ScopeNode:
    """One node of a tree of scopes; compared by identity. The root stands for the global layer."""

    __slots__ = ("__weakref__", "_chain", "_chain_generation", "_parent", "attachments", "effects", "name", "tree")

    def __init__(self, name: str, parent: Self | None = None, owner: Effects | None = None) -> None:
        if parent is not None and type(parent).__mro__[0] is not type(self):
            raise ScopeError(f"The parent of scope {name!r} must be a scope of the same kind, not {parent!r}.")
        lifetime: Effects | None = owner if owner is not None else parent.effects if parent is not None else None
        if lifetime is not None:
            lifetime.require_active()  # before anything is created or linked
        self.name = name
        self.attachments: dict[Any, Any] = {}
        """What other floors keep for this scope; gone with it (X-34)."""
        self.effects: Effects = Effects(f"scope {name!r}", Origin(scope=name), lifetime)
        self._parent = parent
        self.tree: Tree = parent.tree if parent is not None else Tree()
        self._chain: tuple[Self, ...] = ()
        self._chain_generation = -1
        if lifetime is not None:
            handle = lifetime.add(self.aclose, f"scope {name!r}")
            self.effects.add(handle.forget, "leave the outer list")

    @property
    def parent(self) -> Self | None:
        return self._parent

    @property
    def is_root(self) -> bool:
        return self._parent is None

    @property
    def active(self) -> bool:
        return self.effects.active

    def child(self, name: str, *, inherit: Self | None = None, owner: Effects | None = None) -> Self:
        """A new scope below this one: it sees what this one sees, and is closed with it.

        ``inherit`` names another scope to see instead (lifetime nesting alone, SCOPE-02); ``owner`` another lifetime.

        Raises:
            InactiveOwnerError: this scope, or the owner, is closed or closing.
        """
        self.effects.require_active()
        if inherit is not None and inherit.tree is not self.tree:
            raise ScopeError(f"Scope {inherit.name!r} belongs to another harness than {self.name!r}.", entry=name)
        return type(self)(name, inherit if inherit is not None else self, owner if owner is not None else self.effects)

    def chain(self) -> tuple[Self, ...]:
        """This scope, its parent, and so on to the root."""
        if self._chain_generation != self.tree.generation:
            links = [self]
            while (parent := links[-1]._parent) is not None:
                links.append(parent)
            self._chain = tuple(links)
            self._chain_generation = self.tree.generation
        return self._chain

    def bind(self, parent: Self) -> None:
        """Refused: a scope has its parent from its creation (SCOPE-03); `relink` moves it.

        Raises:
            ScopeAlreadyBoundError: always.
        """
        bound = "is the root" if self._parent is None else f"already has the parent {self._parent.name!r}"
        raise ScopeAlreadyBoundError(
            f"Scope {self.name!r} {bound}.", remedy="Use scope.relink(parent) to move it.", entry=self.name
        )

    def relink(self, parent: Self) -> None:
        """Move this scope below another parent; seen from the next assembly and dispatch on (SCOPE-12).

        Raises:
            ScopeCycleError: the parent is this scope or one below it; nothing changed (SCOPE-04).
            ScopeError: this is the root, or the parent belongs to another tree.
        """
        if not isinstance(parent, ScopeNode) or parent.tree is not self.tree:
            raise ScopeError(f"Scope {self.name!r} can only move below a scope of the same harness.", entry=self.name)
        if self in parent.chain():
            path = " -> ".join(scope.name for scope in reversed(parent.chain()[: parent.chain().index(self) + 1]))
            raise ScopeCycleError(
                f"Scope {self.name!r} cannot move below {parent.name!r}: that is a cycle ({path} -> {self.name}).",
                entry=self.name,
                names=[self.name, parent.name],
            )
        if self._parent is None:
            raise ScopeError("The root scope has no parent and cannot get one.", entry=self.name)
        self._parent = parent
        self.tree.generation += 1

    async def aclose(self) -> None:
        """Undo everything that was registered through this scope, last first; return when all is quiet (SCOPE-10)."""
        await self.effects.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'/'.join(scope.name for scope in reversed(self.chain()))}>"
