"""The plugin: offers the service, and where that is turned on, follows the mentions in what users say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from harness_core import Enter, PluginContext, PreStep, Reject, TextBlock, UserMessage, hookimpl
from harness_session_reference.config import Config
from harness_session_reference.errors import PLUGIN
from harness_session_reference.mentions import SCHEME, scan
from harness_session_reference.references import Reference
from harness_session_reference.service import SessionReferences

__all__ = ["SessionReference"]


class SessionReference:
    """Lets messages refer to other sessions."""

    name = PLUGIN
    Config = Config

    def __init__(self) -> None:
        self._service: SessionReferences | None = None
        self._follows_mentions = False

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        agents = ctx.harness.agents
        self._follows_mentions = ctx.config.mentions
        self._service = SessionReferences(agents.settings.store, ctx.config, new_id=agents.surroundings.new_id)
        ctx.services.provide(SessionReferences, self._service)

    @hookimpl(tryfirst=True)
    async def agent_pre_step(
        self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
    ) -> Enter | Reject:
        """Put a recall directly behind each message of a user that mentions sessions."""
        decision = await call_next()
        if not self._follows_mentions or self._service is None or isinstance(decision, Reject):
            return decision
        if not any(_may_cite(each) for each in decision.messages):
            return decision
        messages: list[UserMessage] = []
        for each in decision.messages:
            messages += await self._with_recall(self._service, step, each) if _may_cite(each) else (each,)
        return Enter(messages)

    async def _with_recall(
        self, service: SessionReferences, step: PreStep, message: UserMessage
    ) -> tuple[UserMessage, ...]:
        references: list[Reference] = []
        blocks: list[TextBlock] = []
        for block in message.content:
            scanned = scan(block.text)
            references += scanned.references
            blocks.append(attrs.evolve(block, text=scanned.text) if scanned.references else block)
        if not references:
            return (message,)
        prepared = await service.prepare(step.session, blocks, references)
        readable = attrs.evolve(message, content=prepared.content)
        return (readable,) if prepared.recall is None else (readable, prepared.recall)


def _may_cite(message: UserMessage) -> bool:
    """Only what a person says is looked through; text of plugins that looks like a mention is text (SREF-29)."""
    return message.source.kind == "user" and SCHEME in message.text
