"""The framework's hooks: their specifications, and how their listeners are run."""

from harness_core.hooks.decisions import (
    Enter,
    PreStep,
    Reject,
    RequestFailure,
    RequestStep,
    Retry,
    ToolCall,
    ToolOutcome,
)
from harness_core.hooks.listeners import Listener, ListenerSource, Style
from harness_core.hooks.observers import Observer
from harness_core.hooks.specs import HookSpecs, WaterfallSpec, hookimpl, hookspec, waterfall_specs
from harness_core.hooks.waterfall import Chain, Waterfall

__all__ = [
    "Chain",
    "Enter",
    "HookSpecs",
    "Listener",
    "ListenerSource",
    "Observer",
    "PreStep",
    "Reject",
    "RequestFailure",
    "RequestStep",
    "Retry",
    "Style",
    "ToolCall",
    "ToolOutcome",
    "Waterfall",
    "WaterfallSpec",
    "hookimpl",
    "hookspec",
    "waterfall_specs",
]
