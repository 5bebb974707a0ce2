"""What a session's log says of times: its newest message, its newest reading, and the zones named in the open turn.

Follows the log from where it last looked, so that asking costs what happened since, whatever the log's length. Hidden
messages count like any other (PRE-06).
"""

from __future__ import annotations

import weakref

from harness_core import Source
from harness_core.session import (
    AssistantMessageLogged,
    Event,
    Session,
    ToolResultLogged,
    TurnEnd,
    TurnStart,
    UserMessageLogged,
)
from harness_time.evidence import named_zone

__all__ = ["PLUGIN", "History", "is_reading"]

PLUGIN = "time-context"
"""Stands as the plugin in the source of each reading, and is the plugin's name."""


def is_reading(source: Source) -> bool:
    return source.kind == "plugin" and source.plugin == PLUGIN


class History:
    """One session's times. Does not keep the session alive."""

    def __init__(self, session: Session) -> None:
        self._session = weakref.ref(session)
        self._read = 0
        self.turn: int | None = None
        """The turn that is open in the log."""
        self.message_ms: int | None = None
        """When the newest message was logged, whoever it came from."""
        self.reading_ms: int | None = None
        """When the newest reading was logged."""
        self.reading_turn: int | None = None
        """The turn that it stands in."""
        self.zones: list[object] = []
        """The zones that users' messages of the open turn name, as they were recorded."""

    def catch_up(self) -> History:
        """Look at what was logged since the last time."""
        session = self._session()
        if session is not None:
            events = session.events
            if self._read < len(events):
                for event in events[self._read :]:
                    self._take(event)
                self._read = len(events)
        return self

    def _take(self, event: Event) -> None:
        data = event.data
        kind = type(data)
        if kind is AssistantMessageLogged or kind is ToolResultLogged:
            self.message_ms = event.time_ms
        elif isinstance(data, UserMessageLogged):
            self.message_ms = event.time_ms
            self._take_source(data.message.source, event.time_ms)
        elif isinstance(data, TurnStart):
            self.turn, self.zones = data.turn, []
        elif kind is TurnEnd:
            self.turn, self.zones = None, []

    def _take_source(self, source: Source, time_ms: int) -> None:
        if is_reading(source):
            self.reading_ms, self.reading_turn = time_ms, self.turn
            return
        zone = named_zone(source)
        if zone is not None and zone not in self.zones:
            self.zones.append(zone)
