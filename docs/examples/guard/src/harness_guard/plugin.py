"""The plugin: policy in two waterfalls, and observers that write down what happens. A composition puts it outermost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from harness_core import PluginContext, PromptAssembly, Section, ToolCall, ToolOutcome, hookimpl
from harness_core.session import Event, Session
from harness_guard.audit import Audit, open_audit
from harness_guard.config import Config

__all__ = ["Guard"]

_TURNS = frozenset({"turn/start", "turn/end"})


class Guard:
    """Denies tools by name: the model is not offered them, and calls of them are refused."""

    name = "guard"
    Config = Config

    def __init__(self) -> None:
        self._audit: Audit | None = None

    @hookimpl
    async def harness_setup(self, ctx: PluginContext) -> AsyncIterator[None]:
        config: Config = ctx.config
        self._denied = frozenset(config.denied)
        self._clock = ctx.harness.agents.surroundings.clock
        if config.audit_file is not None:
            # Closed last, when nothing of this plugin is registered any more.
            opening = open_audit(config.audit_file, ctx.harness.tasks)
            self._audit = await ctx.effects.enter_async_context(opening)
        yield
        self._audit = None

    @hookimpl
    async def system_prompt_assemble(
        self, assembly: PromptAssembly, call_next: Callable[..., Awaitable[PromptAssembly]]
    ) -> PromptAssembly:
        """Take away what is denied, after everybody further in has offered what they offer."""
        result = await call_next()
        denied = sorted({tool.name for tool in result.tools} & self._denied)
        if denied:
            result.tools[:] = [tool for tool in result.tools if tool.name not in self._denied]
            text = f"Denied here, whatever else you read: {', '.join(denied)}."
            result.sections.append(Section("guard:denied", text, interpolate=False))
        return result

    @hookimpl
    async def tool_call(self, call: ToolCall, call_next: Callable[..., Awaitable[ToolOutcome]]) -> ToolOutcome:
        """Refuse what is denied: a model may call what it was not offered. Not calling on ends the chain here."""
        if call.name in self._denied:
            outcome = ToolOutcome(content=f"{call.name} is denied by a policy. Go on without it.", error="DENIED")
        else:
            outcome = await call_next()
        self._record("call", call.session, tool=call.name, error=outcome.error)
        return outcome

    @hookimpl
    def session_event(self, session: Session, event: Event) -> None:
        """Write down turns. Observers do not wait, and decide nothing."""
        if event.type in _TURNS:
            self._record(event.type, session)

    def _record(self, what: str, session: Session | None, **facts: Any) -> None:
        if self._audit is not None:
            self._audit.record(
                ms=self._clock(), what=what, session=session.id if session is not None else None, **facts
            )
