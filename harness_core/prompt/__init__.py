"""The prompt registry: what plugins contribute to a model's input, and how one step's input is assembled of it."""

from harness_core.prompt._placement import Override
from harness_core.prompt.assembly import assemble
from harness_core.prompt.records import (
    AssembleContext,
    ContextEntry,
    Literal,
    PromptAssembly,
    Section,
    Text,
    ToolProviderResult,
)
from harness_core.prompt.registrar import ScopedPrompt
from harness_core.prompt.registry import PromptRegistry
from harness_core.prompt.render import (
    RenderedPart,
    join_context_sections,
    render_context_sections,
    render_context_snapshot,
    render_parts,
    render_prompt,
)
from harness_core.prompt.settings import IDENTITY_SECTION, PERSONA_SECTION, PromptSettings
from harness_core.prompt.tool_order import UNLISTED_TOOLS

__all__ = [
    "IDENTITY_SECTION",
    "PERSONA_SECTION",
    "UNLISTED_TOOLS",
    "AssembleContext",
    "ContextEntry",
    "Literal",
    "Override",
    "PromptAssembly",
    "PromptRegistry",
    "PromptSettings",
    "RenderedPart",
    "ScopedPrompt",
    "Section",
    "Text",
    "ToolProviderResult",
    "assemble",
    "join_context_sections",
    "render_context_sections",
    "render_context_snapshot",
    "render_parts",
    "render_prompt",
]
