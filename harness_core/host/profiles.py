"""An agent's own part of a composition, filed like a plugin's: its persona, and what it may see of what it inherits."""

from __future__ import annotations

import attrs

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

    @property
    def name(self) -> str:
        return f"agent {self.agent}"

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        if self.persona is not None:
            ctx.prompt.section(PERSONA_SECTION, self.persona, order=PERSONA_ORDER)
        if not self.runtime_context:
            ctx.prompt.suppress_runtime_context()
        if self.tools is not None or self.deny_tools:
            ctx.tools.restrict(allow=self.tools, deny=self.deny_tools or None)
