"""The surface: which messages the model sees, in order (SURF-01 to SURF-04). Owns derivation, and nothing of requests.

It follows the log event by event. Appending costs the same whatever the length; a replacement builds the list anew, so
that views taken before it stay what they were.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from harness_core.models.messages import AssistantMessage, Message
from harness_core.session._prefix import Prefix
from harness_core.session.digest import MessageChain
from harness_core.session.errors import SurfaceError
from harness_core.session.events import (
    SURFACE_TYPES,
    Event,
    EventData,
    SurfaceOperation,
    SurfaceReplace,
    surface_message,
)

__all__ = ["Surface"]


def _derives(message: Message) -> bool:
    """An assistant message without content exists only to hold usage (SURF-03)."""
    return not isinstance(message, AssistantMessage) or bool(message.content)


class Surface:
    """The surface of one log, kept up with `check` and `apply`."""

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._by_seq: dict[int, Message] = {}
        self._messages: list[Message] = []
        self._chain = MessageChain()
        self._in_order = True
        self.generation = 0
        """How many replacements there were."""

    @property
    def entries(self) -> Sequence[int]:
        """The numbers of the events on the surface, in surface order."""
        return Prefix(self._entries)

    @property
    def messages(self) -> Sequence[Message]:
        """The derived messages as of now, as an immutable view that costs nothing to take."""
        return Prefix(self._messages)

    @property
    def chain(self) -> MessageChain:
        """The digest over the derived messages (REQ-02); not to be changed by anybody else."""
        return self._chain

    def __contains__(self, seq: object) -> bool:
        return seq in self._by_seq

    def message(self, seq: int) -> Message:
        """The message of the event ``seq``, which must be on the surface."""
        return self._by_seq[seq]

    def check(self, seq: int, data: EventData, operation: SurfaceOperation | None) -> None:
        """May the event do this to the surface? Changes nothing.

        Raises:
            SurfaceError: it may not; the message says which rule it breaks.
        """
        if type(data) not in SURFACE_TYPES:
            if operation is not None:
                raise SurfaceError(f"An event of type {data.type} cannot join the surface.", entry=data.type)
        elif operation is None:
            raise SurfaceError(
                f"An event of type {data.type} must say how it joins the surface.",
                remedy="Pass APPEND, or a SurfaceReplace.",
                entry=data.type,
            )
        elif isinstance(operation, SurfaceReplace):
            self._check_replacement(seq, operation)

    def _check_replacement(self, seq: int, operation: SurfaceReplace) -> None:
        for name, number in (("start", operation.start), ("end", operation.end)):
            if number not in self._by_seq:
                raise SurfaceError(f"The replacement's {name} {number} is not on the surface.", entry=name)
        first, last = self._place(operation.start), self._place(operation.end)
        if first > last:
            raise SurfaceError(
                f"The replacement's start {operation.start} stands after its end {operation.end} on the surface.",
                entry="start",
            )
        sources = set(operation.sources)
        missing = [number for number in self._entries[first : last + 1] if number not in sources]
        if missing:
            raise SurfaceError(
                f"The replacement shadows the entries {missing[:5]} without citing them as sources.",
                entry="sources",
            )
        later = [number for number in sources if number >= seq]
        if later:
            raise SurfaceError(
                f"The replacement cites {later[:5]} as sources, which are not events before it.",
                entry="sources",
            )

    def _place(self, seq: int) -> int:
        if self._in_order:
            return bisect_left(self._entries, seq)
        return self._entries.index(seq)

    def apply(self, event: Event) -> None:
        """Take an event that `check` let through."""
        message = surface_message(event.data)
        if message is None:
            return
        if isinstance(event.surface, SurfaceReplace):
            self._replace(event.seq, message, event.surface)
            return
        self._entries.append(event.seq)
        self._by_seq[event.seq] = message
        if _derives(message):
            self._messages.append(message)
            self._chain.add(message)

    def _replace(self, seq: int, message: Message, operation: SurfaceReplace) -> None:
        first, last = self._place(operation.start), self._place(operation.end)
        for number in self._entries[first : last + 1]:
            del self._by_seq[number]
        self._by_seq[seq] = message
        self._in_order = self._in_order and last == len(self._entries) - 1
        self._entries = [*self._entries[:first], seq, *self._entries[last + 1 :]]
        self._messages = [m for number in self._entries if _derives(m := self._by_seq[number])]
        self._chain = MessageChain(self._messages)
        self.generation += 1
