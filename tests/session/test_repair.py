"""What is closed when a log is loaded after a crash, and how numbers go on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness_core.models import ToolResultMessage
from harness_core.session import (
    APPEND,
    Event,
    FileStore,
    Session,
    SessionError,
    SessionLockedError,
    SessionSeeded,
    StepEnd,
    StepStart,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnd,
    TurnStart,
    closers,
    read_log,
    seed_events,
    verify,
)


def result(call_id: str) -> ToolResultLogged:
    return ToolResultLogged(turn=1, step=1, message=ToolResultMessage(call_id=call_id, name="look", content="ok"))


@pytest.fixture
def resume(session: Session, store: FileStore) -> Callable[[], Session]:
    def run() -> Session:
        session.close()
        return Session.resume("s1", store=store)

    return run


@pytest.mark.spec("LOG-06")
def test_open_calls_get_results_in_call_order_then_step_and_turn_end(
    session: Session, tool_step: Callable[[Session], None], resume: Callable[[], Session]
) -> None:
    tool_step(session)
    session.append(ToolCallStarted(turn=1, step=1, call_id="c1", name="look", arguments="{}"))
    before = list(session.events)
    resumed = resume()
    assert list(resumed.events)[: len(before)] == before
    first, second, step, turn = (event.data for event in resumed.events[len(before) :])
    assert isinstance(first, ToolResultLogged) and isinstance(second, ToolResultLogged)
    assert (first.message.call_id, first.error) == ("c1", "TOOL_OUTCOME_UNKNOWN")
    assert "do not simply repeat" in first.message.text and first.message.is_error
    assert (second.message.call_id, second.error) == ("c2", "TOOL_NOT_STARTED")
    assert step == StepEnd(turn=1, step=1)
    assert turn == TurnEnd(turn=1, reason="interrupted")
    assert {event.time_ms for event in resumed.events[len(before) :]} == {before[-1].time_ms}
    assert [event.data for event in resumed.repaired] == [first, second, step, turn]
    resumed.close()


@pytest.mark.spec("LOG-06")
def test_a_call_with_a_result_is_left_alone(
    session: Session, tool_step: Callable[[Session], None], resume: Callable[[], Session]
) -> None:
    tool_step(session)
    session.append(ToolCallStarted(turn=1, step=1, call_id="c1", name="look", arguments="{}"))
    session.append(result("c1"), APPEND)
    resumed = resume()
    codes = [event.data.error for event in resumed.repaired if isinstance(event.data, ToolResultLogged)]
    assert codes == ["TOOL_NOT_STARTED"]
    resumed.close()


@pytest.mark.spec("LOG-06")
@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], []),
        ([TurnStart(turn=1)], ["turn/end"]),
        ([TurnStart(turn=1), StepStart(turn=1, step=1)], ["step/end", "turn/end"]),
        ([TurnStart(turn=1), StepStart(turn=1, step=1), StepEnd(turn=1, step=1)], ["turn/end"]),
        ([TurnStart(turn=1), TurnEnd(turn=1, reason="completed")], []),
    ],
)
def test_repair_closes_exactly_what_is_open_and_only_once(
    session: Session, store: FileStore, resume: Callable[[], Session], events: list[TurnStart], expected: list[str]
) -> None:
    for data in events:
        session.append(data)
    resumed = resume()
    assert [event.type for event in resumed.repaired] == expected
    resumed.close()
    again = Session.resume("s1", store=store)
    assert again.repaired == ()
    again.close()


@pytest.mark.spec("LOG-06")
def test_a_live_turn_is_not_repaired_by_a_second_opener(
    session: Session, store: FileStore, tool_step: Callable[[Session], None]
) -> None:
    tool_step(session)
    before = store.path("s1").read_bytes()
    with pytest.raises(SessionLockedError):
        Session.resume("s1", store=store)
    assert store.path("s1").read_bytes() == before
    session.append(StepEnd(turn=1, step=1))


@pytest.mark.spec("LOG-05")
def test_turn_numbers_go_on_after_resume_and_steps_start_at_one(
    session: Session, tool_step: Callable[[Session], None], resume: Callable[[], Session]
) -> None:
    tool_step(session)
    resumed = resume()
    assert (resumed.nesting.turn, resumed.nesting.last_turn) == (0, 1)
    resumed.append(TurnStart(turn=2))
    resumed.append(StepStart(turn=2, step=1))
    resumed.close()


@pytest.mark.spec("LOG-05")
def test_a_fork_goes_on_from_a_balanced_prefix_and_leaves_its_origin_alone(
    session: Session, store: FileStore, tool_step: Callable[[Session], None]
) -> None:
    tool_step(session)
    origin = list(session.events)
    seed = seed_events(session.events)
    assert [event.type for event in seed[len(origin) :]] == ["tool/result", "tool/result", "step/end", "turn/end"]
    fork = Session.create("s2", cwd="/work", store=store, parent="s1", depth=1, seed=seed)
    assert fork.info.seed_length == len(seed)
    assert fork.events[-1].data == SessionSeeded(origin="s1")
    assert list(fork.messages)[: len(session.messages)] == list(session.messages)
    assert fork.header == session.header
    fork.append(TurnStart(turn=2))
    assert list(session.events) == origin
    read = read_log(store, "s2")
    assert list(read.events) == list(fork.events)
    assert verify(read.info, read.events).ok and verify(read.info, read.events).requests == 1
    grandchild = Session.create("s3", cwd="/", store=store, parent="s2", seed=seed_events(fork.events))
    assert verify(grandchild.info, grandchild.events).ok
    for each in (fork, grandchild):
        each.close()


def test_a_seed_may_be_any_prefix(session: Session, tool_step: Callable[[Session], None]) -> None:
    tool_step(session)
    for length in range(len(session.events) + 1):
        seed = seed_events(session.events, length)
        assert closers(seed) == []
        fork = Session.create("f", cwd="/", seed=seed)
        assert list(fork.events)[: len(seed)] == list(seed)
    with pytest.raises(SessionError, match="7 events"):
        seed_events(session.events, 7)


def test_closers_depend_on_the_events_alone(session: Session, tool_step: Callable[[Session], None]) -> None:
    tool_step(session)
    shifted = [Event(event.seq, event.time_ms + 5, event.data, event.surface) for event in session.events]
    assert closers(session.events) == closers(shifted)
