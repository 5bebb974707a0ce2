"""A pluggy-based plugin framework for agent prompt assembly and context injection.

Plugin authors need `hookimpl`, `PluginContext`, `ToolSchema`, `Literal`, `Enter`, `Reject`; hosts need `Harness` and
`PromptSettings`. The subpackages' ``__all__`` hold the rest of the public names.
"""

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
