"""The plugin that lets a harness answer where no model service is configured."""

from __future__ import annotations

from harness_core.hooks import hookimpl
from harness_core.host.context import PluginContext
from harness_core.models.offline import OFFLINE_PROVIDER, offline_model

__all__ = ["OfflineModel"]


class OfflineModel:
    """Registers the scripted model that uses the agent's tools and says so."""

    name = "offline-model"

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.models.register(OFFLINE_PROVIDER, offline_model())
