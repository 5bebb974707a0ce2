"""What is left out of a conversation that is too long."""

from __future__ import annotations

import pytest
from harness_session_reference import ReferenceProblem, SessionReferenceError
from harness_session_reference._texts import encoded, omitted_notice
from harness_session_reference.budget import Fitted, cut, fitted
from harness_session_reference.snapshot import Item, Snapshot
from hypothesis import given, strategies as st


def said(*texts: str, checkpoints: tuple[int, ...] = ()) -> Snapshot:
    items = tuple(
        Item(role="user" if place % 2 == 0 else "assistant", text=text, checkpoint=place in checkpoints)
        for place, text in enumerate(texts)
    )
    return Snapshot(session_id="s", label="l", cwd=None, captured_through_seq=len(texts), items=items)


def size(found: Fitted) -> int:
    return len(encoded(found.data).encode())


def texts(found: Fitted) -> list[str]:
    return [each["text"] for each in found.data["conversation"]]


def whole(snapshot: Snapshot) -> int:
    return size(fitted(snapshot, 10**9))


def test_what_fits_is_whole() -> None:
    snapshot = said("one", "two", "three")
    found = fitted(snapshot, whole(snapshot))
    assert texts(found) == ["one", "two", "three"]
    assert found.stats == {
        "compacted": False,
        "original_messages": 3,
        "retained_messages": 3,
        "omitted_messages": 0,
        "omitted_bytes": 0,
        "truncated": False,
    }


@pytest.mark.spec("SREF-14")
def test_an_empty_session_has_nothing_to_leave_out() -> None:
    found = fitted(Snapshot(session_id="s", label="l", cwd=None, captured_through_seq=None, items=()), 10_000)
    assert found.data == {
        "session_id": "s",
        "label": "l",
        "cwd": None,
        "captured_through_seq": None,
        "conversation": [],
    }
    assert set(found.stats.values()) == {0, False}


@pytest.mark.spec("SREF-15")
def test_one_byte_short_costs_the_oldest() -> None:
    snapshot = said("öne", "two", "three")
    found = fitted(snapshot, whole(snapshot) - 1)
    assert texts(found) == ["two", "three"]
    assert (found.stats["omitted_messages"], found.stats["omitted_bytes"], found.stats["truncated"]) == (1, 4, True)


@pytest.mark.spec("SREF-16")
def test_the_summary_and_the_newest_stay_to_the_last() -> None:
    snapshot = said("summary", "a" * 50, "b" * 50, "newest", checkpoints=(0,))
    room = whole(said("summary", "newest")) + 9  # the roles differ in length
    found = fitted(snapshot, room)
    assert texts(found) == ["summary", "newest"]
    assert found.stats["compacted"]
    assert found.stats["omitted_bytes"] == 100


@pytest.mark.spec("SREF-17")
def test_a_summary_may_be_the_newest() -> None:
    found = fitted(said("a" * 90, "b" * 90, "summary", checkpoints=(2,)), 200)
    assert texts(found) == ["summary"]


def test_dropping_stops_as_soon_as_it_fits() -> None:
    snapshot = said("a" * 50, "b" * 10, "c" * 10)
    assert texts(fitted(snapshot, whole(snapshot) - 30)) == ["b" * 10, "c" * 10]


@pytest.mark.spec("SREF-18")
def test_of_two_equal_texts_the_earlier_is_cut_first_and_the_later_only_for_the_rest() -> None:
    snapshot = said("a" * 500, "z" * 500, checkpoints=(0,))
    found = fitted(snapshot, whole(snapshot) - 100)
    assert texts(found)[1] == "z" * 500
    assert texts(found)[0].startswith("aaa")
    assert len(texts(found)[0]) in (399, 400)
    found = fitted(snapshot, whole(snapshot) - 700)
    first, second = texts(found)
    assert first == ""
    assert 250 < len(second) <= 300
    assert found.stats["omitted_bytes"] == 1000 - second.count("z")


@pytest.mark.spec("SREF-19")
@pytest.mark.parametrize("character", ["a", "ü", "€", "\U0001f600"])
@pytest.mark.parametrize("target", range(30, 60))
def test_a_cut_keeps_both_ends_on_whole_characters_and_counts_exactly(character: str, target: int) -> None:
    text = character * 100
    result, kept = cut(text, target)
    size = len(text.encode())
    notice = omitted_notice(size - kept)
    assert "\ufffd" not in result
    assert len(result.encode()) <= target
    assert result.count(character) * len(character.encode()) - notice.count(character) == kept
    head, _, tail = result.partition(notice)
    assert 0 <= len(head.encode()) - len(tail.encode()) <= len(character.encode()) or character != "a"
    assert target - len(result.encode()) <= 2 * len(character.encode()) + 1


def test_a_cut_without_room_for_its_notice_is_nothing() -> None:
    notice = len(omitted_notice(1000))
    assert cut("a" * 1000, notice - 1) == ("", 0)
    assert cut("a" * 1000, -5) == ("", 0)
    assert cut("a" * 1000, notice) == (omitted_notice(1000), 0)
    assert cut("a" * 1000, notice + 1) == ("a" + omitted_notice(999), 1)


@pytest.mark.spec("SREF-21")
def test_fields_that_do_not_fit_are_an_error() -> None:
    for snapshot in (said(), said("text"), said("a" * 1000, "b" * 1000, checkpoints=(0,))):
        with pytest.raises(SessionReferenceError) as error:
            fitted(snapshot, 20)
        assert error.value.problem is ReferenceProblem.BUDGET_EXCEEDED


def plain(snapshot: Snapshot, limit: int) -> list[str] | None:
    """The specification's three steps, word by word, with everything measured anew each time."""

    def total(items: list[tuple[Item, str]]) -> int:
        data = {
            "session_id": snapshot.session_id,
            "label": snapshot.label,
            "cwd": snapshot.cwd,
            "captured_through_seq": snapshot.captured_through_seq,
            "conversation": [{"role": item.role, "text": text} for item, text in items],
        }
        return len(encoded(data).encode())

    items = [(item, item.text) for item in snapshot.items]
    while total(items) > limit:
        droppable = [place for place, (item, _) in enumerate(items[:-1]) if not item.checkpoint]
        if not droppable:
            break
        del items[droppable[0]]
    while (over := total(items) - limit) > 0:
        lengths = [len(text.encode()) for _, text in items]
        if not any(lengths):
            return None
        place = lengths.index(max(lengths))
        item, _ = items[place]
        items[place] = (item, cut(item.text, lengths[place] - over)[0])
    return [text for _, text in items]


@given(
    st.lists(st.tuples(st.text('a<"ü€\n', max_size=120), st.booleans()), max_size=6),
    st.integers(60, 500),
)
def test_it_does_what_the_plain_steps_do(items: list[tuple[str, bool]], limit: int) -> None:
    snapshot = said(
        *(text for text, _ in items),
        checkpoints=tuple(place for place, (_, checkpoint) in enumerate(items) if checkpoint),
    )
    expected = plain(snapshot, limit)
    if expected is None:
        with pytest.raises(SessionReferenceError):
            fitted(snapshot, limit)
        return
    found = fitted(snapshot, limit)
    assert texts(found) == expected
    assert size(found) <= limit
    stats = found.stats
    assert stats["original_messages"] == len(items) == stats["retained_messages"] + stats["omitted_messages"]
    assert stats["truncated"] == (stats["omitted_bytes"] > 0 or stats["omitted_messages"] > 0)
