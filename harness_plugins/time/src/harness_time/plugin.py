"""The plugin: puts a reading of the clock behind everything else that enters a step."""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Awaitable, Callable
from zoneinfo import ZoneInfo

import anyio
import attrs
import tzlocal

from harness_core import Enter, HarnessError, PluginContext, PreStep, Reject, Source, UserMessage, hookimpl
from harness_core.session import Clock, Session
from harness_time._history import PLUGIN, History
from harness_time._texts import elapsed_line, reading, timestamp, zone_line
from harness_time.config import Config
from harness_time.evidence import named_zone, zones_in_force
from harness_time.zones import UnknownZoneError, ZoneTable

__all__ = ["TimeContext"]


def process_zone() -> str:
    """The name of this process's time zone.

    Raises:
        Exception: it cannot be told; which one depends on the system.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # tzlocal assumes UTC where it finds nothing, and only warns of it
        tzlocal.reload_localzone()  # otherwise it answers what it found when it was first asked
        return str(tzlocal.get_localzone_name())


@attrs.frozen(kw_only=True)
class _Active:
    """What one activation works with."""

    table: ZoneTable
    fallback: ZoneInfo
    interval_ms: int
    clock: Clock
    new_id: Callable[[], str]


class TimeContext:
    """Tells a model the time in each step that begins.

    Args:
        clock: milliseconds since 1970; by default the clock by which the harness's sessions are logged.
        local_zone: the name of the process's zone, asked for once in each set-up.
    """

    name = PLUGIN
    Config = Config

    def __init__(self, *, clock: Clock | None = None, local_zone: Callable[[], str] = process_zone) -> None:
        self._clock = clock
        self._local_zone = local_zone
        self._active: _Active | None = None
        self._histories: weakref.WeakKeyDictionary[Session, History] = weakref.WeakKeyDictionary()

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        table = ZoneTable.packaged()
        config: Config = ctx.config
        surroundings = ctx.harness.agents.surroundings
        self._active = _Active(
            table=table,
            fallback=table.zone(config.time_zone) if config.time_zone is not None else self._process_zone(table),
            interval_ms=config.refresh_interval_ms or 0,
            clock=self._clock if self._clock is not None else surroundings.clock,
            new_id=surroundings.new_id,
        )

    def _process_zone(self, table: ZoneTable) -> ZoneInfo:
        try:
            return table.zone(self._local_zone())
        except Exception as error:
            problem = error.message if isinstance(error, HarnessError) else str(error)
            raise UnknownZoneError(
                f"The time zone of this process cannot be told: {problem}",
                remedy="Name one in the setting time_zone, or in the environment variable TZ.",
                plugin=PLUGIN,
                entry="time_zone",
            ) from error

    @hookimpl(tryfirst=True)
    async def agent_pre_step(
        self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
    ) -> Enter | Reject:
        """Read the clock once everybody else has decided."""
        decision = await call_next()
        if self._active is None or isinstance(decision, Reject) or _canceled():
            return decision
        if not (decision.messages or step.results_due):
            return decision  # nothing begins here; a reading alone is no reason to ask a model
        message = self._due(self._active, step, decision)
        return decision if message is None else Enter((*decision.messages, message))

    def _due(self, active: _Active, step: PreStep, decision: Enter) -> UserMessage | None:
        history = self._history(step.session)
        now = active.clock()
        last = history.reading_ms if history is not None else None
        if last is not None and 0 <= now - last < active.interval_ms:
            return None
        here = history if history is not None and history.turn == step.turn else None
        named = [*(here.zones if here is not None else ()), *map(_zone_of, decision.messages)]
        zones = zones_in_force([zone for zone in named if zone is not None], active.table)
        zone = active.table.zone(zones[0]) if len(zones) == 1 else active.fallback
        text = reading(
            step.turn,
            step.step,
            timestamp(now, zone),
            zone_line(zones),
            elapsed_line(step.step == 1, _elapsed(history, step, now)),
        )
        source = Source("plugin", "snapshot", PLUGIN, {"sections": [{"name": PLUGIN, "text": text}]})
        return UserMessage(id=active.new_id(), content=text, source=source)

    def _history(self, session: Session | None) -> History | None:
        if session is None:
            return None
        found = self._histories.get(session)
        if found is None:
            found = self._histories[session] = History(session)
        return found.catch_up()


def _canceled() -> bool:
    """Is the turn told to stop? Whoever is inside may have been cancelled and gone on (TIME-12)."""
    return anyio.current_effective_deadline() == -math.inf


def _zone_of(message: UserMessage) -> object | None:
    return named_zone(message.source)


def _elapsed(history: History | None, step: PreStep, now: int) -> int | None:
    """Milliseconds since what the step is compared with, where there is such a thing."""
    if history is None:
        return None
    if step.step == 1:
        since = history.message_ms
    else:
        since = history.reading_ms if history.reading_turn == step.turn else None
    return None if since is None else now - since
