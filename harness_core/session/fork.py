"""Starting a session from another one's events: the seed (LOG-05). A pure function; the new log is made by `Session.create`."""

from __future__ import annotations

from collections.abc import Sequence

from harness_core.session.errors import SessionError
from harness_core.session.events import Event
from harness_core.session.repair import closers

__all__ = ["seed_events"]


def seed_events(events: Sequence[Event], length: int | None = None) -> tuple[Event, ...]:
    """The first ``length`` events (all by default), balanced: a turn that is open there is closed in the seed only.

    Raises:
        SessionError: the log has fewer events.
    """
    if length is not None and not 0 <= length <= len(events):
        raise SessionError(f"A seed of {length} events cannot be taken from a log of {len(events)}.")
    prefix = tuple(events[:length])
    if not prefix:
        return ()
    time_ms = prefix[-1].time_ms
    closing = enumerate(closers(prefix), len(prefix))
    return prefix + tuple(Event(seq, time_ms, data, surface) for seq, (data, surface) in closing)
