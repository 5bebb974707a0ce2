"""Durable, then visible, then told (LOG-03); and the policies of making a log outlive the machine."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from harness_core.session import (
    Durability,
    Event,
    FileStore,
    LogWriter,
    MemoryStore,
    PluginRecord,
    Session,
    SessionClosedError,
    SessionError,
    StoredLog,
    StoreError,
    TurnStart,
)


def note(number: int) -> PluginRecord:
    return PluginRecord("plugin/test/note", {"n": number})


@pytest.mark.spec("LOG-03")
def test_an_observer_finds_the_event_in_the_file_and_among_the_events(session: Session, store: FileStore) -> None:
    seen: list[tuple[int, bool, bool]] = []

    def look(event: Event) -> None:
        in_file = b'{"n":%d}' % event.seq in store.path("s1").read_bytes()
        seen.append((event.seq, event in session.events, in_file))

    session.observe(look)
    session.append(note(0))
    session.append(note(1))
    assert seen == [(0, True, True), (1, True, True)]


@pytest.mark.spec("LOG-03")
def test_a_raising_observer_is_reported_and_changes_nothing(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    told: list[int] = []

    def broken(event: Event) -> None:
        raise RuntimeError("observer is broken")

    session.observe(broken)
    session.observe(lambda event: told.append(event.seq))
    with caplog.at_level(logging.ERROR, "harness_core.session"):
        session.append(note(0))
    session.append(note(1))
    assert told == [0, 1]
    assert len(session.events) == 2
    assert "broken" in caplog.text and "event 0 (plugin/test/note)" in caplog.text


def test_events_that_an_observer_appends_are_told_to_all_in_the_same_order(session: Session) -> None:
    first: list[int] = []
    second: list[int] = []

    def chaining(event: Event) -> None:
        first.append(event.seq)
        if event.seq < 3:
            session.append(note(event.seq + 1))

    session.observe(chaining)
    session.observe(lambda event: second.append(event.seq))
    session.append(note(0))
    assert first == second == [0, 1, 2, 3]


def test_observations_end_when_disposed_in_any_order(session: Session) -> None:
    told: list[str] = []
    a = session.observe(lambda event: told.append("a"))
    b = session.observe(lambda event: told.append("b"))
    with session.observe(lambda event: told.append("c")):
        session.append(note(0))
    a.dispose()
    a.dispose()
    session.append(note(1))
    b.dispose()
    session.append(note(2))
    assert told == ["a", "b", "c", "b"]


def test_views_taken_before_stay_what_they_were(session: Session) -> None:
    session.append(note(0))
    before = session.events
    session.append(note(1))
    assert [event.seq for event in before] == [0]
    assert [event.seq for event in session.events] == [0, 1]
    with pytest.raises(TypeError):
        session.events[0] = session.events[1]  # type: ignore[index]


class Watched(MemoryStore):
    """Counts syncs, and can fail."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.syncs = 0
        self.failing: str | None = None

    def create(self, session_id: str, lines: Sequence[bytes]) -> LogWriter:
        return self._watch(super().create(session_id, lines))

    def open(self, session_id: str) -> tuple[LogWriter, StoredLog]:
        writer, stored = super().open(session_id)
        return self._watch(writer), stored

    def _watch(self, writer: Any) -> LogWriter:
        plain = writer.append

        def append(line: bytes) -> None:
            if self.failing == "append":
                raise StoreError("No space left.")
            plain(line)

        def sync() -> None:
            if self.failing == "sync":
                raise StoreError("Input/output error.")
            self.syncs += 1

        writer.append, writer.sync = append, sync
        return writer  # type: ignore[no-any-return]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("durability", "expected"), [("request", [0, 1, 1, 2]), ("event", [1, 1, 1, 2]), ("never", [0, 0, 0, 0])]
)
async def test_the_policy_decides_when_a_log_is_synced(durability: Durability, expected: list[int]) -> None:
    store = Watched()
    session = Session.create("s", cwd="/", store=store, durability=durability)
    counts = []
    session.append(note(0))
    counts.append(store.syncs)
    await session.sync()
    counts.append(store.syncs)
    await session.sync()
    counts.append(store.syncs)
    session.append(note(1))
    await session.sync()
    counts.append(store.syncs)
    assert counts == expected


@pytest.mark.anyio
async def test_a_failed_sync_is_an_error_and_is_tried_again() -> None:
    store = Watched()
    session = Session.create("s", cwd="/", store=store)
    session.append(note(0))
    store.failing = "sync"
    with pytest.raises(StoreError):
        await session.sync()
    store.failing = None
    await session.sync()
    assert store.syncs == 1


def test_a_failed_write_changes_nothing_and_the_session_goes_on_afterwards() -> None:
    store = Watched()
    session = Session.create("s", cwd="/", store=store)
    told: list[int] = []
    session.observe(lambda event: told.append(event.seq))
    session.append(TurnStart(turn=1))
    store.failing = "append"
    for _ in range(2):
        with pytest.raises(StoreError):
            session.append(note(1))
    assert (len(session.events), session.nesting.turn, told) == (1, 1, [0])
    store.failing = None
    assert session.append(note(1)).seq == 1


def test_a_closed_session_refuses_and_says_so(session: Session) -> None:
    session.close()
    session.close()
    with pytest.raises(SessionClosedError, match="s1"):
        session.append(note(0))
    assert session.closed


def test_a_session_needs_an_id(store: FileStore) -> None:
    with pytest.raises(SessionError, match="not empty"):
        Session.create("", cwd="/", store=store)


def test_an_event_that_could_not_be_synced_is_not_shown_and_ends_the_session() -> None:
    store = Watched()
    session = Session.create("s", cwd="/", store=store, durability="event")
    session.append(note(0))
    store.failing = "sync"
    with pytest.raises(StoreError):
        session.append(note(1))
    assert (len(session.events), session.closed) == (1, True)
    resumed = Session.resume("s", store=store)
    assert len(resumed.events) == 2


def test_an_interrupt_between_writing_and_showing_leaves_no_second_line_of_that_number() -> None:
    store = Watched()
    session = Session.create("s", cwd="/", store=store)
    session.append(note(0))
    plain = session._writer.append  # type: ignore[union-attr]

    def interrupted(line: bytes) -> None:
        plain(line)
        raise KeyboardInterrupt

    session._writer.append = interrupted  # type: ignore[method-assign, union-attr]
    with pytest.raises(KeyboardInterrupt):
        session.append(note(1))
    with pytest.raises(SessionClosedError):
        session.append(note(1))
    resumed = Session.resume("s", store=store)
    assert [event.data for event in resumed.events] == [note(0), note(1)]
