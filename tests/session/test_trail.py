"""The trail of one kind of message: always what a look at the whole log and surface would say."""

from __future__ import annotations

import gc
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from hypothesis import given, strategies as st

from harness_core.models import Source, UserMessage
from harness_core.session import (
    APPEND,
    MemoryStore,
    MessageTrail,
    Session,
    SurfaceReplace,
    TurnStart,
    UserMessageLogged,
    seed_events,
)


def is_ours(source: Source) -> bool:
    return source.kind == "ours"


def message(name: str, kind: str = "ours") -> UserMessage:
    return UserMessage(id=name, content=name, source=Source(kind))


def visible(session: Session) -> list[str]:
    return [m.id for m in session.messages if isinstance(m, UserMessage) and is_ours(m.source)]


def ids(trail: MessageTrail) -> list[str]:
    return [each.id for each in trail.visible]


@pytest.mark.spec("PRE-06")
def test_a_replacement_hides_what_it_covers_and_the_log_still_knows_it(session: Session) -> None:
    trail = MessageTrail(session, is_ours)
    assert (ids(trail), trail.ever, trail.generation) == ([], False, 0)
    for name, kind in (("a", "ours"), ("b", "user"), ("c", "ours")):
        session.append(UserMessageLogged(message=message(name, kind)), APPEND)
    assert ids(trail) == ["a", "c"]
    session.append(UserMessageLogged(message=message("s", "user")), SurfaceReplace(start=0, end=1, sources=[0, 1]))
    assert (ids(trail), trail.generation) == (["c"], 1)
    assert trail.ever
    assert trail.was_logged("a")
    assert not trail.was_logged("b")


def test_one_made_late_knows_what_a_fork_inherited(session: Session) -> None:
    session.append(UserMessageLogged(message=message("a")), APPEND)
    fork = Session.create("s2", cwd="/work", store=MemoryStore(), seed=seed_events(session.events))
    assert ids(MessageTrail(fork, is_ours)) == ["a"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["ours", "user", "turn", "look", "replace"]), st.integers(0, 30), st.integers(0, 4))
    )
)
def test_it_agrees_with_the_surface_whenever_it_is_asked(moves: list[tuple[str, int, int]]) -> None:
    session = Session.create("s", cwd="/", store=MemoryStore())
    trail = MessageTrail(session, is_ours)
    for number, (move, place, length) in enumerate(moves):
        data: Any = UserMessageLogged(message=message(f"m{number}", "ours" if number % 2 else "user"))
        entries = list(session.surface.entries)
        if move == "look":
            assert ids(trail) == visible(session)
        elif move == "replace" and entries:
            start = place % len(entries)
            covered = entries[start : start + length + 1]
            session.append(data, SurfaceReplace(start=covered[0], end=covered[-1], sources=covered))
        elif move == "turn":
            if not session.nesting.turn:
                session.append(TurnStart(turn=session.nesting.last_turn + 1))
        elif move in ("ours", "user"):
            session.append(UserMessageLogged(message=message(f"m{number}", move)), APPEND)
    assert ids(trail) == visible(session)


def test_asking_looks_only_at_what_is_new(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def wanted(source: Source) -> bool:
        looks.append(source.kind)
        return True

    trail = MessageTrail(session, wanted)
    for number in range(50):
        session.append(UserMessageLogged(message=message(f"m{number}")), APPEND)
    assert len(trail.visible) == 50
    session.append(UserMessageLogged(message=message("last")), APPEND)
    assert len(trail.visible) == 51
    assert (trail.ever, trail.was_logged("m3"), len(looks)) == (True, True, 51)


def test_it_does_not_keep_a_session_alive() -> None:
    session = Session.create("s", cwd="/", store=MemoryStore())
    session.append(UserMessageLogged(message=message("a")), APPEND)
    trails = WeakKeyDictionary({session: MessageTrail(session, is_ours)})
    (trail,) = trails.values()
    assert ids(trail) == ["a"]
    del session
    gc.collect()
    assert not trails
    assert ids(trail) == ["a"]


@pytest.mark.spec("PRE-06")
def test_the_newest_one_is_the_last_of_the_raw_log(session: Session) -> None:
    trail = MessageTrail(session, is_ours)
    assert trail.newest is None
    first = session.append(UserMessageLogged(message=message("a")), APPEND)
    session.append(UserMessageLogged(message=message("b", "user")), APPEND)
    assert trail.newest is first
    session.append(UserMessageLogged(message=message("s", "user")), SurfaceReplace(start=0, end=1, sources=[0, 1]))
    assert trail.newest is first
    assert MessageTrail(session, is_ours).newest is first
