"""The plugin: asks in a turn's first step where it is, and tells a model when that is not what it was told last."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import attrs

from harness_core import Enter, PluginContext, PreStep, Reject, Shell, Source, UserMessage, hookimpl
from harness_core.session import Clock, Event, MessageTrail, Session, UserMessageLogged
from harness_core.tools import ShellResult
from harness_tmux._query import location_of, query
from harness_tmux._texts import reading, state_of, state_text

__all__ = ["Config", "TmuxContext"]

PLUGIN = "tmux-context"
"""Stands as the plugin in the source of each reading, and is the plugin's name."""
QUERY_SECONDS = 2.0
"""tmux answers in milliseconds, or not at all; a turn must not wait long for the latter."""
_OVERTIME = 1.5
"""A shell service that does not keep to its time is left after so many times of it."""
_LARGEST = 2**53 - 1
"""Whole numbers up to here survive every JSON reader."""


def _interval(_: object, __: object, value: Any) -> None:
    if value is None:
        return
    if type(value) is not int:
        raise TypeError(f"must be a whole number of milliseconds, not {value!r}")
    if not 0 <= value <= _LARGEST:
        raise ValueError(f"must lie between 0 and {_LARGEST}, not {value!r}")


@attrs.define(kw_only=True)
class Config:
    """Settings of the tmux plugin."""

    refresh_interval_ms: int | None = attrs.field(default=None, validator=_interval)
    """tmux is asked again when the last reading is so old, in milliseconds; by default, and with 0, in every turn."""


def is_ours(source: Source) -> bool:
    return source.kind == "plugin" and source.plugin == PLUGIN


class TmuxContext:
    """Tells a model in which tmux pane it runs, when that is new.

    Args:
        clock: milliseconds since 1970; by default the clock by which the harness's sessions are logged.
        pid: the process whose place it is; by default this one.
        seconds: how long tmux may take to answer.
    """

    name = PLUGIN
    Config = Config

    def __init__(self, *, clock: Clock | None = None, pid: int | None = None, seconds: float = QUERY_SECONDS) -> None:
        self._clock = clock
        self._pid = pid
        self._seconds = seconds
        self._ctx: PluginContext | None = None
        self._trails: weakref.WeakKeyDictionary[Session, MessageTrail] = weakref.WeakKeyDictionary()

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        self._ctx = ctx

    @hookimpl(tryfirst=True)
    async def agent_pre_step(
        self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
    ) -> Enter | Reject:
        """Put a reading in front of a turn's first step, if there is something to tell."""
        decision = await call_next()
        ctx = self._ctx
        if ctx is None or isinstance(decision, Reject) or step.step != 1 or _canceled():
            return decision
        if not decision.messages:
            return decision  # nothing begins here; a reading alone is no reason to ask a model
        service: type[Any] = Shell
        shell: Shell | None = ctx.services.get(service, step.scope)
        if shell is None:
            return decision
        earlier = self._earlier(step.session)
        if earlier is not None and self._is_fresh(ctx, earlier):
            return decision
        result = await self._asked(ctx, shell)
        location = location_of(result.exit_code, result.stdout) if result is not None else None
        if location is None:
            return decision
        state = state_text(location)
        if earlier is not None and state_of(_text(earlier) or "") == state:
            return decision
        text = reading(step.turn, state)
        source = Source("plugin", "snapshot", PLUGIN, {"sections": [{"name": PLUGIN, "text": text}]})
        message = UserMessage(id=ctx.harness.agents.surroundings.new_id(), content=text, source=source)
        return Enter((message, *decision.messages))

    def _earlier(self, session: Session | None) -> Event | None:
        """The newest reading of the log; one that holds no text is as good as none (TMUX-09)."""
        if session is None:
            return None
        trail = self._trails.get(session)
        if trail is None:
            trail = self._trails[session] = MessageTrail(session, is_ours)
        newest = trail.newest
        return newest if newest is not None and _text(newest) is not None else None

    def _is_fresh(self, ctx: PluginContext, earlier: Event) -> bool:
        clock = self._clock if self._clock is not None else ctx.harness.agents.surroundings.clock
        interval: int = ctx.config.refresh_interval_ms or 0
        return 0 <= clock() - earlier.time_ms < interval

    async def _asked(self, ctx: PluginContext, shell: Shell) -> ShellResult | None:
        """What tmux says; None where it does not, which is never a reason to fail."""
        command = query(self._pid if self._pid is not None else os.getpid())
        try:
            with anyio.move_on_after(self._seconds * _OVERTIME):
                return await shell.run(command, timeout=self._seconds)
        except Exception as error:
            ctx.log.warning("tmux could not be asked where this process runs: %s", error)
        return None


def _text(event: Event) -> str | None:
    """The first block of a reading."""
    content = event.data.message.content if isinstance(event.data, UserMessageLogged) else ()
    return content[0].text if content else None


def _canceled() -> bool:
    """Is the turn told to stop? Whoever is inside may have been cancelled and gone on (TMUX-21)."""
    return anyio.current_effective_deadline() == -math.inf
