"""The context that a plugin's set-up gets: its own view of the harness, whose every registration ends with the plugin."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from harness_core.host.scope import Scope
from harness_core.models import ScopedModels
from harness_core.prompt import ScopedPrompt
from harness_core.scopes import Effects
from harness_core.tools import ScopedServices, ScopedTools

if TYPE_CHECKING:
    from harness_core.host.activation import Activation
    from harness_core.host.harness import Harness

__all__ = ["PluginContext"]


class PluginContext:
    """One activation of a plugin, as the plugin sees it.

    ``prompt``, ``tools``, ``models`` and ``services`` register into ``scope`` and are undone with the activation;
    ``effects`` takes any other clean-up; ``log`` carries the plugin's name.
    """

    __slots__ = ("_activation", "config", "effects", "log", "models", "name", "prompt", "scope", "services", "tools")

    def __init__(self, activation: Activation, config: Any) -> None:
        registries = activation.scope.registries
        self._activation = activation
        self.name: str = activation.name
        self.config: Any = config
        """The plugin's own ``Config``, or an empty dict where it declares none."""
        self.scope: Scope = activation.scope
        self.effects: Effects = activation.effects
        self.prompt: ScopedPrompt = registries.prompt.at(self.scope, self.effects)
        self.tools: ScopedTools = registries.tools.at(self.scope, self.effects)
        self.models: ScopedModels = registries.models.at(self.scope, self.effects)
        self.services: ScopedServices = registries.services.at(self.scope, self.effects)
        self.log: logging.Logger = logging.getLogger(f"harness.plugin.{self.name}")

    @property
    def harness(self) -> Harness:
        return self.scope.harness

    async def install(self, plugin: Any, **options: Any) -> Activation:
        """Install another plugin that lives no longer than this one; see `Harness.install`."""
        return await self.harness.install(plugin, **{"scope": self.scope, "owner": self.effects, **options})

    def __repr__(self) -> str:
        return f"<PluginContext of {self._activation!r}>"
