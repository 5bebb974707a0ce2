"""The plugin: a listener before each step, outside of those that add messages. Remembers nothing itself."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import attrs

from harness_core import Enter, PluginContext, PreStep, Reject, Source, TextBlock, UserMessage, hookimpl
from harness_redact.config import Config

__all__ = ["Redact"]

NAME = "redact"

NOTICE = "Words in [brackets] stand for what the user's privacy settings keep from you. Do not ask for it."


class Redact:
    """Puts words in the place of what a model must not read."""

    name = NAME
    Config = Config

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        config: Config = ctx.config
        self._rejects = config.found == "reject"
        self._patterns = [(re.compile(pattern), f"[{kind}]") for kind, pattern in config.patterns.items()]
        self._new_id = ctx.harness.agents.surroundings.new_id

    @hookimpl(tryfirst=True)
    async def agent_pre_step(
        self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
    ) -> Enter | Reject:
        """Look at what everybody further in let through or added.

        ``tryfirst`` puts it outside of the ordinary listeners; among several, the one that was registered later is further
        out, which is what ``after`` in a composition decides.
        """
        decision = await call_next()
        if isinstance(decision, Reject):
            return decision
        messages = [self._redacted(message) for message in decision.messages]
        if messages == list(decision.messages):
            return decision
        if self._rejects:
            return Reject("the message holds something that must not reach the model")
        if not _noticed(step):
            source = Source("plugin", "notice", NAME, {"summary": "what words in brackets mean"})
            messages.append(UserMessage(id=self._new_id(), content=NOTICE, source=source))
        return Enter(messages)

    def _redacted(self, message: UserMessage) -> UserMessage:
        """A message without it; records are frozen, so that a changed one is a new one, with the same id and source."""
        content = tuple(TextBlock(self._masked(block.text)) for block in message.content)
        return message if content == message.content else attrs.evolve(message, content=content)

    def _masked(self, text: str) -> str:
        for pattern, word in self._patterns:
            text = pattern.sub(word.replace("\\", r"\\"), text)
        return text


def _noticed(step: PreStep) -> bool:
    """Was the model told already? The session knows: also after a restart, or when a step did not begin after all."""
    messages = step.session.messages if step.session is not None else ()
    return any(isinstance(each, UserMessage) and each.source.plugin == NAME for each in messages)
