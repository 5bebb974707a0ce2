"""A trail: the messages of one kind that a session holds, kept up as its log grows. Reads the log, and adds nothing to it.

For whoever puts messages into conversations and has to ask at each step what is there already. Each event is looked at
once, so asking costs what happened since it was asked last, whatever the length of the log.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness_core.models.messages import Source, UserMessage
from harness_core.session.events import Event, SurfaceAppend, UserMessageLogged

if TYPE_CHECKING:
    from harness_core.session.log import Session

__all__ = ["MessageTrail"]


class MessageTrail:
    """The user-role messages of a session whose source is ``wanted``.

    Does not keep the session alive, so it may be the value of a `weakref.WeakKeyDictionary` keyed by the session.
    """

    def __init__(self, session: Session, wanted: Callable[[Source], bool]) -> None:
        self._session = weakref.ref(session)
        self._generation = 0
        self._wanted = wanted
        self._read = 0
        self._surface_generation = 0
        self._visible: list[UserMessage] = []
        self._logged: set[str] = set()
        self._newest: Event | None = None

    @property
    def generation(self) -> int:
        """Moves whenever `visible` may have changed in another way than by growing."""
        self._catch_up()
        return self._generation

    @property
    def visible(self) -> tuple[UserMessage, ...]:
        """Those that the model still sees, in the order in which it sees them (PRE-06)."""
        self._catch_up()
        return tuple(self._visible)

    def was_logged(self, message_id: str) -> bool:
        """Was the one of that id ever logged, hidden or not?"""
        self._catch_up()
        return message_id in self._logged

    @property
    def newest(self) -> Event | None:
        """The one that was logged last, hidden or not, with its time."""
        self._catch_up()
        return self._newest

    @property
    def ever(self) -> bool:
        """Was there ever one?"""
        self._catch_up()
        return bool(self._logged)

    def _catch_up(self) -> None:
        session = self._session()
        if session is None:
            return
        events = session.events
        length = len(events)
        if self._read == length:
            return
        for event in events[self._read :]:
            if type(event.data) is UserMessageLogged and self._wanted(event.data.message.source):
                self._take(event, event.data.message)
        self._read = length
        if session.surface.generation != self._surface_generation:
            self._surface_generation = session.surface.generation
            self._look_again(session)

    def _take(self, event: Event, message: UserMessage) -> None:
        self._logged.add(message.id)
        self._newest = event
        if isinstance(event.surface, SurfaceAppend):
            self._visible.append(message)

    def _look_again(self, session: Session) -> None:
        """Entries were replaced: what is left in sight, and where, only the surface knows."""
        self._visible = [
            each for each in session.messages if isinstance(each, UserMessage) and self._wanted(each.source)
        ]
        self._generation += 1
