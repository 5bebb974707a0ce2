"""The host: the facade, plugin discovery and activation, and the only place that knows pluggy's manager."""

from harness_core.host.activation import Activation
from harness_core.host.agents import Agents, AgentSettings
from harness_core.host.changing import Applied
from harness_core.host.composition import Composition
from harness_core.host.context import PluginContext
from harness_core.host.discovery import ENTRY_POINT_GROUP, PluginSource, discover
from harness_core.host.harness import Harness, Hooks
from harness_core.host.loading import PluginFailure, PluginUse
from harness_core.host.own_loop import OwnLoop
from harness_core.host.reading import find_composition, read_composition
from harness_core.host.scope import Scope

__all__ = [
    "ENTRY_POINT_GROUP",
    "Activation",
    "AgentSettings",
    "Agents",
    "Applied",
    "Composition",
    "Harness",
    "Hooks",
    "OwnLoop",
    "PluginContext",
    "PluginFailure",
    "PluginSource",
    "PluginUse",
    "Scope",
    "discover",
    "find_composition",
    "read_composition",
]
