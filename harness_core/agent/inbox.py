"""The inbox: what waits to enter the conversation, in two lists (INBOX-01 to INBOX-03). Owns them; starts nothing.

Every mutation is logged before the list changes, so replaying the log restores the lists. Which entries also wake the
agent is not part of the log: after a restart nothing runs until somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from harness_core.agent.errors import InboxError
from harness_core.models import UserMessage
from harness_core.session import InboxSpliced, InboxTarget, Session, replay_inbox

__all__ = ["Inbox"]


class Inbox:
    """The two lists of one agent; plugins may read them, and add, replace and remove entries."""

    def __init__(self, session: Session) -> None:
        stored = replay_inbox(session.events)
        self._session = session
        self._lists: dict[InboxTarget, list[UserMessage]] = {
            "next-step": list(stored.next_step),
            "next-turn": list(stored.next_turn),
        }
        self._waking: set[str] = set()
        self.dropped: Callable[[UserMessage], None] = lambda message: None
        """Called with every message that leaves without having been claimed."""

    @property
    def next_step(self) -> tuple[UserMessage, ...]:
        return tuple(self._lists["next-step"])

    @property
    def next_turn(self) -> tuple[UserMessage, ...]:
        return tuple(self._lists["next-turn"])

    def find(self, message_id: str) -> UserMessage | None:
        """The waiting message of that id."""
        place = self._place(message_id)
        return self._lists[place[0]][place[1]] if place is not None else None

    def _place(self, message_id: str) -> tuple[InboxTarget, int] | None:
        for target, messages in self._lists.items():
            for index, message in enumerate(messages):
                if message.id == message_id:
                    return target, index
        return None

    def add(self, target: InboxTarget, message: UserMessage, *, waking: bool = False, first: bool = False) -> None:
        """Append a message to a list, or put it at its head.

        Raises:
            InboxError: its id is taken in either list.
            StoreError: it could not be logged; the list is as it was.
        """
        if self._place(message.id) is not None:
            raise InboxError(
                f"A message with the id {message.id!r} waits in the inbox already.",
                agent=self._session.id,
                entry=message.id,
            )
        self._splice(target, 0 if first else len(self._lists[target]), 0, (message,))
        if waking:
            self._waking.add(message.id)

    def replace(self, message_id: str, message: UserMessage) -> bool:
        """Put another message in the place of a waiting one; False when it waits no longer."""
        place = self._place(message_id)
        if place is None:
            return False
        if message.id != message_id and self._place(message.id) is not None:
            raise InboxError(
                f"A message with the id {message.id!r} waits in the inbox already.", agent=self._session.id
            )
        target, index = place
        old = self._lists[target][index]
        self._splice(target, index, 1, (message,), "canceled")
        if message_id in self._waking:
            self._waking.discard(message_id)
            self._waking.add(message.id)
        if message.id != message_id:
            self.dropped(old)
        return True

    def remove(self, message_id: str) -> bool:
        """Take a waiting message out; False when it waits no longer."""
        place = self._place(message_id)
        if place is None:
            return False
        target, index = place
        old = self._lists[target][index]
        self._splice(target, index, 1, (), "canceled")
        self._waking.discard(message_id)
        self.dropped(old)
        return True

    def clear(self) -> None:
        """Take everything out, next-step first (INBOX-05)."""
        for target, messages in self._lists.items():
            if messages:
                old = tuple(messages)
                self._splice(target, 0, len(old), (), "canceled")
                for message in old:
                    self._waking.discard(message.id)
                    self.dropped(message)

    def claim(self, *, first: bool) -> tuple[UserMessage, ...]:
        """Take what enters at a boundary: all of next-step, and at a turn's first one of next-turn (INBOX-03)."""
        claimed = self._claim("next-step", len(self._lists["next-step"]))
        return claimed + self._claim("next-turn", 1) if first else claimed

    def _claim(self, target: InboxTarget, count: int) -> tuple[UserMessage, ...]:
        taken = tuple(self._lists[target][:count])
        if taken:
            self._splice(target, 0, len(taken), ())
            self._waking.difference_update(message.id for message in taken)
        return taken

    def _splice(
        self,
        target: InboxTarget,
        start: int,
        removed: int,
        inserted: tuple[UserMessage, ...],
        outcome: Literal["canceled"] | None = None,
    ) -> None:
        self._session.append(
            InboxSpliced(target=target, start=start, removed_count=removed, inserted=inserted, outcome=outcome)
        )
        self._lists[target][start : start + removed] = inserted

    # --- waking -------------------------------------------------------------------------------------------------------

    @property
    def wants_turn(self) -> bool:
        """Does something wait that asked for a turn?"""
        return bool(self._waking)

    @property
    def steered(self) -> bool:
        """Does something in next-step ask for attention now?"""
        return any(message.id in self._waking for message in self._lists["next-step"])

    def sleep(self) -> None:
        """Nothing that waits now asks for a turn any more (a cancelled turn's kept queue)."""
        self._waking.clear()
