"""An agent's own part of a composition, filed like a plugin's: its persona, and what it may see of what it inherits."""

from __future__ import annotations

import attrs

from harness_core._text import nearest
from harness_core.errors import CompositionError, ToolRestrictionError
from harness_core.hooks import hookimpl
from harness_core.host.context import PluginContext
from harness_core.prompt import PERSONA_SECTION
from harness_core.prompt.settings import PERSONA_ORDER

__all__ = ["AgentProfile"]


@attrs.frozen(kw_only=True)
class AgentProfile:
    """What a composition says of one agent, set up in the agent's scope after all plugins."""

    agent: str
    persona: str | None = None
    runtime_context: bool = True
    tools: tuple[str, ...] | None = None
    deny_tools: tuple[str, ...] = ()

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        if self.persona is not None:
            ctx.prompt.section(PERSONA_SECTION, self.persona, order=PERSONA_ORDER)
        if not self.runtime_context:
            ctx.prompt.suppress_runtime_context()
        if self.tools is not None or self.deny_tools:
            self._restrict(ctx)

    def _restrict(self, ctx: PluginContext) -> None:
        try:
            ctx.tools.restrict(allow=self.tools, deny=self.deny_tools or None)
        except ToolRestrictionError as error:
            wrong = error.names[0]
            key = "deny_tools" if wrong in self.deny_tools else "tools"
            near = nearest(wrong.rpartition(":")[2], error.known)
            raise CompositionError(
                f"agents.{self.agent}.{key}: {error.message}",
                remedy=f"Did you mean {near!r}?" if near else "Correct the name, or remove it.",
                entry=f"agents.{self.agent}.{key}",
                names=error.names,
                known=error.known,
            ) from None
