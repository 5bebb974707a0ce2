"""The plugin: one fact that changes twice a day, and one variable for the texts of others.

The fact is coarse on purpose. A context that changes is one more message in the conversation: "closes in 24 minutes" would be
one in every step, and say nothing that the model needs.
"""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

from harness_core import AssembleContext, PluginContext, hookimpl
from harness_office_hours.config import Config

__all__ = ["OfficeHours"]

CONTEXT_ORDER = 130
"""The place among contexts; nothing depends on it."""

_FRIDAY = 4


class OfficeHours:
    """Tells the model whether the office is open now."""

    name = "office-hours"
    Config = Config

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        config: Config = ctx.config
        self._zone = ZoneInfo(config.zone)
        self._opens = datetime.time.fromisoformat(config.opens)
        self._closes = datetime.time.fromisoformat(config.closes)
        # The clock by which the harness's sessions are logged: tests set it, and a replay sees the same times.
        self._clock = ctx.harness.agents.surroundings.clock
        hours = f"Monday to Friday, {config.opens} to {config.closes} ({config.zone})"
        ctx.prompt.variable("office_hours", lambda context: hours)
        ctx.prompt.context("office-hours:now", self._state, order=CONTEXT_ORDER)

    def _state(self, context: AssembleContext) -> str:
        """A plain function: it is called in every assembly, waits for nothing, and refers to the variable."""
        return f"The office is {'open' if self._open() else 'closed'}. Its hours: {{{{office_hours}}}}."

    def _open(self) -> bool:
        now = datetime.datetime.fromtimestamp(self._clock() / 1000, self._zone)
        return now.weekday() <= _FRIDAY and self._opens <= now.time() < self._closes
