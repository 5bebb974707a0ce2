"""The scope as hosts and plugins see it: a node of the tree with the registrars that file into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from harness_core._text import nearest, quoted_list
from harness_core.errors import ScopeError
from harness_core.models import ModelRegistry, ScopedModels
from harness_core.prompt import PromptRegistry, ScopedPrompt
from harness_core.scopes import Effects, ScopeNode
from harness_core.tools import ScopedServices, ScopedTools, Services, ToolRegistry

if TYPE_CHECKING:
    from harness_core.host.harness import Harness

__all__ = ["NamedScopes", "Registries", "Scope"]


class Registries:
    """The registries of one harness, shared by all of its scopes."""

    __slots__ = ("harness", "models", "prompt", "services", "tools")
    prompt: PromptRegistry
    tools: ToolRegistry
    models: ModelRegistry
    services: Services
    harness: Harness


class Scope(ScopeNode):
    """A scope: what is registered through it is seen in it and below it, and goes with it.

    ``harness.root`` is the global one; ``scope.child("reviewer")`` makes one below.
    """

    __slots__ = ("registries",)

    def __init__(
        self, name: str, parent: Self | None = None, owner: Effects | None = None, registries: Registries | None = None
    ) -> None:
        super().__init__(name, parent, owner)
        self.registries: Registries = registries if parent is None else parent.registries  # type: ignore[assignment]

    @property
    def harness(self) -> Harness:
        return self.registries.harness

    @property
    def prompt(self) -> ScopedPrompt:
        """Sections, contexts, variables, tool schemas and suppressors of this scope."""
        return self.registries.prompt.at(self)

    @property
    def tools(self) -> ScopedTools:
        """Tools with handlers, and restrictions, of this scope."""
        return self.registries.tools.at(self)

    @property
    def models(self) -> ScopedModels:
        """Model adapters of this scope."""
        return self.registries.models.at(self)

    @property
    def services(self) -> ScopedServices:
        """What plugins offer each other in this scope."""
        return self.registries.services.at(self)


class NamedScopes:
    """The scopes of one harness that have names of their own, by the path of names below the global one."""

    def __init__(self, root: Scope) -> None:
        self._root = root
        self._scopes: dict[tuple[str, ...], Scope] = {}

    def named(self, name: str) -> Scope | None:
        """The active scope whose own name that is."""
        return next((scope for path, scope in self._scopes.items() if path[-1] == name and scope.active), None)

    def at(self, path: tuple[str, ...]) -> Scope | None:
        """The active scope at a path; the global one at the empty one."""
        found = self._scopes.get(path) if path else self._root
        return found if found is not None and found.active else None

    def made(self, path: tuple[str, ...]) -> Scope:
        """The scope at a path, made where there is none yet."""
        found = self.at(path)
        if found is None:
            found = self._scopes[path] = self.made(path[:-1]).child(path[-1])
        return found

    def known(self, name: str) -> Scope:
        """The scope of that name.

        Raises:
            ScopeError: there is none; ``known`` lists those that there are.
        """
        found = self.named(name)
        if found is not None:
            return found
        known = [path[-1] for path, scope in self._scopes.items() if scope.active]
        near = nearest(name, known)
        meant = f"Did you mean {near!r}? " if near else ""
        raise ScopeError(
            f"There is no scope called {name!r}.",
            remedy=f"{meant}Known: {quoted_list(known)}.",
            entry=name,
            known=known,
        )

    def copy(self) -> NamedScopes:
        """The same scopes, to which others can be added apart."""
        other = NamedScopes(self._root)
        other._scopes = {path: scope for path, scope in self._scopes.items() if scope.active}
        return other

    def paths(self) -> list[tuple[str, ...]]:
        return list(self._scopes)

    def adopt(self, path: tuple[str, ...], scope: Scope) -> None:
        self._scopes[path] = scope

    def forget(self, path: tuple[str, ...]) -> Scope:
        return self._scopes.pop(path)
