"""The surface and the messages that derive from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness_core.models import AssistantMessage, ToolResultMessage, UserMessage
from harness_core.session import (
    APPEND,
    AssistantMessageLogged,
    MemoryStore,
    PluginRecord,
    Session,
    StepStart,
    Surface,
    SurfaceError,
    SurfaceReplace,
    ToolResultLogged,
    TurnStart,
    UserMessageLogged,
    read_log,
)
from harness_core.session.digest import MessageChain


def user(text: str) -> UserMessageLogged:
    return UserMessageLogged(message=UserMessage(id=text, content=text))


def texts(session: Session) -> list[str]:
    return [message.text for message in session.messages]


@pytest.fixture
def four(session: Session) -> Session:
    for text in "abcd":
        session.append(user(text), APPEND)
    return session


@pytest.mark.spec("SURF-01")
def test_only_messages_join_and_each_says_how(session: Session) -> None:
    with pytest.raises(SurfaceError, match="turn/start cannot join"):
        session.append(TurnStart(turn=1), APPEND)
    with pytest.raises(SurfaceError, match="cannot join"):
        session.append(PluginRecord("plugin/x/y"), APPEND)
    with pytest.raises(SurfaceError, match="must say how"):
        session.append(user("a"))
    assert len(session.events) == 0


@pytest.mark.spec("SURF-02")
def test_a_replacement_takes_the_place_of_its_range_and_counts_a_generation(four: Session) -> None:
    before = four.messages
    four.append(user("B"), SurfaceReplace(start=1, end=2, sources=[1, 2]))
    assert texts(four) == ["a", "B", "d"]
    assert (list(four.surface.entries), four.surface.generation) == ([0, 4, 3], 1)
    assert [message.text for message in before] == ["a", "b", "c", "d"]
    four.append(user("D"), SurfaceReplace(start=4, end=3, sources=[3, 4, 0]))
    four.append(user("e"), APPEND)
    assert texts(four) == ["a", "D", "e"]
    assert four.surface.generation == 2
    assert (1 in four.surface, 5 in four.surface) == (False, True)


@pytest.mark.spec("SURF-02")
@pytest.mark.parametrize(
    ("operation", "complaint"),
    [
        (SurfaceReplace(start=9, end=9, sources=[9]), "start 9 is not on the surface"),
        (SurfaceReplace(start=0, end=9, sources=[0]), "end 9 is not on the surface"),
        (SurfaceReplace(start=2, end=1, sources=[1, 2]), "stands after its end"),
        (SurfaceReplace(start=1, end=2, sources=[1]), "without citing"),
        (SurfaceReplace(start=1, end=2, sources=[1, 2, 4]), "not events before it"),
    ],
)
def test_a_replacement_that_does_not_fit_is_refused(four: Session, operation: Any, complaint: str) -> None:
    with pytest.raises(SurfaceError, match=complaint):
        four.append(user("x"), operation)
    assert texts(four) == ["a", "b", "c", "d"]
    assert len(four.events) == 4


def test_a_shadowed_entry_cannot_be_replaced_again(four: Session) -> None:
    four.append(user("B"), SurfaceReplace(start=1, end=2, sources=[1, 2]))
    with pytest.raises(SurfaceError, match="not on the surface"):
        four.append(user("x"), SurfaceReplace(start=1, end=1, sources=[1]))


@pytest.mark.spec("SURF-03")
def test_an_empty_assistant_message_is_on_the_surface_and_derives_nothing(session: Session) -> None:
    session.append(TurnStart(turn=1))
    session.append(StepStart(turn=1, step=1))
    session.append(user("a"), APPEND)
    session.append(AssistantMessageLogged(turn=1, step=1, message=AssistantMessage(content=())), APPEND)
    session.append(
        ToolResultLogged(turn=1, step=1, message=ToolResultMessage(call_id="c", name="n", content="r")), APPEND
    )
    assert texts(session) == ["a", "r"]
    assert list(session.surface.entries) == [2, 3, 4]


@st.composite
def operations(draw: st.DrawFn) -> list[tuple[str, Any]]:
    steps = draw(st.lists(st.sampled_from(["user", "answer", "empty", "record", "replace"]), max_size=25))
    return [(kind, draw(st.tuples(st.integers(0, 30), st.integers(0, 30)))) for kind in steps]


@pytest.mark.spec("SURF-04")
@given(operations())
def test_live_stored_and_prefix_derivation_agree(steps: list[tuple[str, Any]]) -> None:
    store = MemoryStore()
    session = Session.create("s", cwd="/", store=store)
    session.append(TurnStart(turn=1))
    session.append(StepStart(turn=1, step=1))
    after: list[list[Any]] = [[], []]
    for number, (kind, (a, b)) in enumerate(steps):
        entries = session.surface.entries
        match kind:
            case "user":
                session.append(user(str(number)), APPEND)
            case "answer" | "empty":
                answer = AssistantMessage(content=str(number) if kind == "answer" else ())  # type: ignore[arg-type]
                session.append(AssistantMessageLogged(turn=1, step=1, message=answer), APPEND)
            case "replace" if entries:
                first, last = sorted((a % len(entries), b % len(entries)))
                shadowed = entries[first : last + 1]
                replaced = SurfaceReplace(start=shadowed[0], end=shadowed[-1], sources=shadowed)
                session.append(user(f"r{number}"), replaced)
            case _:
                session.append(PluginRecord("plugin/x/y", {"n": number}))
        after.append(list(session.messages))
    stored = read_log(store, "s")
    assert list(stored.surface.messages) == list(session.messages)
    assert stored.surface.chain.value == session.surface.chain.value == MessageChain(session.messages).value
    folded = Surface()
    for event, expected in zip(stored.events, after, strict=True):
        folded.apply(event)
        assert list(folded.messages) == expected
