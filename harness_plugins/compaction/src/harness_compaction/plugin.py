"""The plugin: compacts before a step when the conversation has grown too long, and when a request failed for that.

The summary takes the place of what it sums up on the session's surface; the log keeps everything. Compacting is help,
not a condition: what goes wrong with it is reported and the step goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from harness_compaction import config as settings
from harness_compaction.range import Range, estimate, older_part
from harness_compaction.summary import written
from harness_compaction.texts import FRAME, extract
from harness_core import Enter, PluginContext, PreStep, Reject, RequestFailure, Retry, Source, UserMessage, hookimpl
from harness_core.models import CallConfig, Usage
from harness_core.session import PluginRecord, Session, StepStart, SurfaceReplace, UserMessageLogged, random_id

__all__ = ["Compaction"]

RECORD = "plugin/compaction/summary"
OVERFLOW = "CONTEXT_OVERFLOW"
"""The code under which adapters report a request that is too long for its model."""
_CHARACTERS = 4
_RECORD_SHARE = 0.5
"""The part of the context window that the record for a summary may take."""
_RECORD_CHARACTERS = 200_000
"""... and its length where the window is not known."""


class Compaction:
    """Keeps conversations within their model's context."""

    name = "compaction"
    Config = settings.Config

    def __init__(self, *, new_id: Callable[[], str] = random_id) -> None:
        self._new_id = new_id
        self._ctx: PluginContext | None = None
        self._config = settings.Config()

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        self._ctx = ctx
        self._config = ctx.config

    @hookimpl(tryfirst=True)
    async def agent_pre_step(
        self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
    ) -> Enter | Reject:
        """Compacts before anybody else looks at the conversation; what others add then stands behind the summary."""
        session = step.session
        if session is not None and step.agent is not None and not step.preview:
            limit = self._limit(session)
            if limit is not None and estimate(session, step.messages) > limit:
                await self._compact(session, step.scope, "pressure", min(self._config.keep_tokens, limit // 2))
        return await call_next()

    @hookimpl
    async def agent_request_error(
        self, failure: RequestFailure, call_next: Callable[..., Awaitable[Retry | None]]
    ) -> Retry | None:
        """A request was too long: compact, once in a step, and send it again."""
        session = failure.session
        if failure.facts.code == OVERFLOW and session is not None and not _compacted_in_step(session):
            keep = min(self._config.keep_tokens, estimate(session) // 3)
            if await self._compact(session, failure.scope, "overflow", keep):
                return Retry(reason="the conversation was compacted")
        return await call_next()

    def _limit(self, session: Session) -> int | None:
        if self._config.at_tokens is not None:
            return self._config.at_tokens
        window = session.route.context_window if session.route is not None else None
        return int(window * self._config.at_share) if window else None

    async def _compact(self, session: Session, scope: Any, why: str, keep: int) -> bool:
        """Replace the older part by a summary; False where there is nothing to replace, or it failed."""
        part = older_part(session, keep)
        if part is None:
            return False
        before = estimate(session)
        text, by, usage = await self._summary(session, scope, part)
        if not all(entry in session.surface for entry in part.entries):
            return False  # somebody else replaced a part of it meanwhile
        source = Source("plugin", "recall", self.name, {"replaced": len(part.entries)})
        message = UserMessage(id=self._new_id(), content=FRAME + text, source=source)
        session.append(
            UserMessageLogged(message=message),
            SurfaceReplace(start=part.entries[0], end=part.entries[-1], sources=part.entries),
        )
        record: dict[str, Any] = {"why": why, "by": by, "replaced": len(part.entries), "tokens_before": before}
        record["tokens_after"] = estimate(session)
        if usage is not None:
            record["usage"] = usage.to_json()
        session.append(PluginRecord(RECORD, record))
        return True

    async def _summary(self, session: Session, scope: Any, part: Range) -> tuple[str, str, Usage | None]:
        limit = self._config.summary_tokens
        if self._config.summary == "model":
            try:
                text, usage = await self._by_model(session, scope, part)
                return text[: limit * _CHARACTERS * 2], "model", usage
            except Exception as error:  # the extract does it as well; cancelling passes through
                if self._ctx is not None:
                    self._ctx.log.warning("No model wrote a summary for %r: %s", session.id, error)
        return extract(part.messages, limit * _CHARACTERS), "extract", None

    async def _by_model(self, session: Session, scope: Any, part: Range) -> tuple[str, Usage | None]:
        header = session.header
        provider = self._config.provider or (header.config.provider if header is not None else None)
        model = self._config.model
        if model is None and header is not None and provider == header.config.provider:
            model = header.config.model
        known = scope.models.providers()
        if provider not in known:
            raise LookupError(f"nobody serves the provider {provider!r}; known are {sorted(known)}")
        config = CallConfig(provider=provider, model=model, max_tokens=self._config.summary_tokens)
        window = session.route.context_window if session.route is not None else None
        room = int(window * _RECORD_SHARE) * _CHARACTERS if window else _RECORD_CHARACTERS
        return await written(
            known[provider],
            config,
            part.messages,
            session_id=session.id,
            limit=self._config.summary_tokens,
            room=room,
        )


def _compacted_in_step(session: Session) -> bool:
    for event in reversed(session.events):
        if isinstance(event.data, StepStart):
            return False
        if isinstance(event.data, PluginRecord) and event.data.type == RECORD:
            return bool(event.data.data["why"] == "overflow")
    return False
