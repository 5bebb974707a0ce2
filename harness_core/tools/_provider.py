"""The tool registry as a schema provider of the prompt registry: visible schemas, and all names that exist (TOOL-20)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness_core.prompt import AssembleContext, ToolProviderResult

if TYPE_CHECKING:
    from harness_core.tools.registry import Tool, ToolRegistry

__all__ = ["Visible", "provide_schemas"]


class Visible:
    """What a scope sees of the tool registry; keeps the provider's result, so that it is the same until something changes."""

    __slots__ = ("known", "result", "tools")

    def __init__(self, tools: dict[str, Tool], known: tuple[str, ...], previous: Visible | None) -> None:
        self.tools = tools
        self.known = known
        result = ToolProviderResult([tool.schema for tool in tools.values()], known)
        self.result: Any = previous.result if previous is not None and previous.result == result else result


def provide_schemas(registry: ToolRegistry) -> Callable[[AssembleContext], ToolProviderResult]:
    """The provider to register once, globally; it answers for each assembled scope."""
    root = registry.root

    def tool_registry(context: AssembleContext) -> ToolProviderResult:
        result: ToolProviderResult = registry.view(context.scope if context.scope is not None else root).result
        return result

    return tool_registry
