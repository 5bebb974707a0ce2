"""A pluggy-based plugin framework for agent prompt assembly and context injection.

Plugin authors need `hookimpl`, `PluginContext`, `ToolSchema`, `Literal`, `Enter`, `Reject`; hosts need `Harness` and
`PromptSettings`. The subpackages' ``__all__`` hold the rest of the public names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_core.deprecation import HarnessDeprecationWarning
    from harness_core.errors import HarnessError, WaterfallError
    from harness_core.hooks import Enter, PreStep, Reject, RequestFailure, Retry, ToolCall, ToolOutcome, hookimpl
    from harness_core.host import Activation, Harness, PluginContext, PluginUse, Scope
    from harness_core.models import Source, TextBlock, ToolSchema, UserMessage
    from harness_core.prompt import (
        IDENTITY_SECTION,
        PERSONA_SECTION,
        UNLISTED_TOOLS,
        AssembleContext,
        ContextEntry,
        Literal,
        PromptAssembly,
        PromptSettings,
        Section,
        ToolProviderResult,
        render_context_sections,
        render_context_snapshot,
        render_prompt,
    )
    from harness_core.tools import FileSystem, Shell

__all__ = [
    "IDENTITY_SECTION",
    "PERSONA_SECTION",
    "UNLISTED_TOOLS",
    "Activation",
    "AssembleContext",
    "ContextEntry",
    "Enter",
    "FileSystem",
    "Harness",
    "HarnessDeprecationWarning",
    "HarnessError",
    "Literal",
    "PluginContext",
    "PluginUse",
    "PreStep",
    "PromptAssembly",
    "PromptSettings",
    "Reject",
    "RequestFailure",
    "Retry",
    "Scope",
    "Section",
    "Shell",
    "Source",
    "TextBlock",
    "ToolCall",
    "ToolOutcome",
    "ToolProviderResult",
    "ToolSchema",
    "UserMessage",
    "WaterfallError",
    "hookimpl",
    "render_context_sections",
    "render_context_snapshot",
    "render_prompt",
]

_HOMES = {
    "harness_core.deprecation": ("HarnessDeprecationWarning",),
    "harness_core.errors": ("HarnessError", "WaterfallError"),
    "harness_core.hooks": (
        "Enter",
        "PreStep",
        "Reject",
        "RequestFailure",
        "Retry",
        "ToolCall",
        "ToolOutcome",
        "hookimpl",
    ),
    "harness_core.host": ("Activation", "Harness", "PluginContext", "PluginUse", "Scope"),
    "harness_core.models": ("Source", "TextBlock", "ToolSchema", "UserMessage"),
    "harness_core.prompt": (
        "AssembleContext",
        "ContextEntry",
        "IDENTITY_SECTION",
        "Literal",
        "PERSONA_SECTION",
        "PromptAssembly",
        "PromptSettings",
        "Section",
        "ToolProviderResult",
        "UNLISTED_TOOLS",
        "render_context_sections",
        "render_context_snapshot",
        "render_prompt",
    ),
    "harness_core.tools": ("FileSystem", "Shell"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: a plugin that needs one marker does not load everything."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
