"""The tools that one request offers, and how a call of one of them is carried out once policy has let it through.

The same for an agent's own loop and for people who bring theirs. Dispatches no hooks and records nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from harness_core._text import clean, quoted
from harness_core.agent.arguments import misfit
from harness_core.agent.surroundings import Surroundings, log
from harness_core.hooks import ToolCall, ToolOutcome
from harness_core.models import TextBlock, ToolSchema
from harness_core.scopes import ScopeNode
from harness_core.tools import Tool

__all__ = ["OfferedTools", "bounded"]

UNKNOWN_TOOL = "UNKNOWN_TOOL"
INVALID_ARGUMENTS = "INVALID_ARGUMENTS"
FAILED = "TOOL_FAILED"


class OfferedTools:
    """The tools that the model was told of, by name; handlers are looked up when they are called."""

    def __init__(self, surroundings: Surroundings, scope: ScopeNode, schemas: Mapping[str, ToolSchema]) -> None:
        self._surroundings = surroundings
        self._scope = scope
        self.schemas = schemas

    def _tool(self, name: str) -> Tool | None:
        """The tool with a handler; None when the request did not offer it, whatever the registry has (TOOLX-05)."""
        if name not in self.schemas:
            return None
        return self._surroundings.tools.handler(self._scope, name)

    def parallel_safe(self, call: ToolCall) -> bool:
        """Is the call safe beside others, as of now (TOOLX-02)?"""
        tool = self._tool(call.name)
        safe = tool.parallel_safe if tool is not None else False
        if callable(safe):
            return bool(safe(call))
        return safe

    async def carry_out(self, call: ToolCall) -> ToolOutcome:
        """What the call comes to; what the handler raises is an outcome with an error, for the model to read."""
        tool = self._tool(call.name)
        if tool is None or tool.handler is None:
            return ToolOutcome(content=f"There is no tool called {quoted(call.name)}.", error=UNKNOWN_TOOL)
        try:
            problem = misfit(self.schemas[call.name], call.arguments)
            if problem is not None:
                return ToolOutcome(content=problem, error=INVALID_ARGUMENTS)
            result = tool.handler(call)
            if inspect.isawaitable(result):
                result = await result
            if isinstance(result, str):
                return ToolOutcome(content=result)
            if isinstance(result, ToolOutcome):
                return result
            raise TypeError(f"the handler returned a {type(result).__name__}, not a str or ToolOutcome")
        except Exception as error:
            log.warning("The tool %r of %s failed.", call.name, tool.origin, exc_info=error)
            return ToolOutcome(content=f"{type(error).__name__}: {error}", error=FAILED)


def bounded(blocks: tuple[TextBlock, ...], limit: int) -> tuple[TextBlock, ...]:
    """The text that the model sees: valid Unicode, and no more than the limit, with a notice of what is missing."""
    if len(blocks) == 1 and len(blocks[0].text) <= limit and blocks[0].text.isascii():
        return blocks
    total = sum(len(block.text) for block in blocks)
    kept: list[TextBlock] = []
    room = limit
    for block in blocks:
        text = clean(block.text)
        if len(text) > room:
            text = f"{text[:room]}\n[Cut here: {limit} of {total} characters are shown.]"
            return (*kept, TextBlock(text))
        kept.append(block if text is block.text else TextBlock(text))
        room -= len(text)
    return tuple(kept)
