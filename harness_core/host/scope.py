"""The scope as hosts and plugins see it: a node of the tree with the registrars that file into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from harness_core.models import ModelRegistry, ScopedModels
from harness_core.prompt import PromptRegistry, ScopedPrompt
from harness_core.scopes import Effects, ScopeNode
from harness_core.tools import ScopedServices, ScopedTools, Services, ToolRegistry

if TYPE_CHECKING:
    from harness_core.host.harness import Harness

__all__ = ["Registries", "Scope"]


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
