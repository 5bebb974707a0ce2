"""Differences: minimal, complete, and nothing where nothing changed."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from harness_core import Enter, Reject, Section, ToolSchema, UserMessage
from harness_core.inspect import changes, snapshot
from harness_core.inspect.difference import list_changes
from harness_core.inspect.texts import text_diff
from harness_core.models import CallConfig


@attrs.frozen
class Thing:
    name: str
    value: int = 0


names = st.lists(st.sampled_from("abcdefgh"), unique=True)
things = st.lists(st.builds(Thing, st.sampled_from("abcdefgh"), st.integers(0, 2)), unique_by=lambda thing: thing.name)


def applied(before: list[Thing], found: list[Any], after: list[Thing]) -> list[Thing]:
    """The list with the changes made: what was removed or moved is out, then everything goes to where it is now."""
    away = {change.name for change in found if change.kind in ("removed", "moved")}
    rewritten = {change.name: change.after for change in found if change.kind == "rewritten"}
    kept = [rewritten.get(thing.name, thing) for thing in before if thing.name not in away]
    arriving = sorted((change.places[1], change.after) for change in found if change.kind in ("added", "moved"))
    for place, thing in arriving:
        kept.insert(place, thing)
    return kept


@given(things, things)
def test_the_changes_lead_from_the_one_list_to_the_other(before: list[Thing], after: list[Thing]) -> None:
    found = list_changes("things", before, after)
    assert [thing.name for thing in applied(before, found, after)] == [thing.name for thing in after]
    assert {change.name for change in found if change.kind == "rewritten"} == {
        thing.name for thing in after for old in before if old.name == thing.name and old != thing
    }


@given(names, st.data())
def test_as_few_as_can_be_are_said_to_have_moved(order: list[str], data: st.DataObject) -> None:
    """Brute force: the largest set that stays is a longest common subsequence of both orders."""
    now = data.draw(st.permutations(order))
    found = list_changes("things", [Thing(name) for name in order], [Thing(name) for name in now])
    assert all(change.kind == "moved" for change in found)
    assert len(order) - len(found) == common(order, list(now))


def common(one: list[str], two: list[str]) -> int:
    table = [[0] * (len(two) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(two):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def test_one_element_that_moves_far_is_one_change_and_what_shifts_is_none() -> None:
    before = [Thing(name) for name in "abcdef"]
    found = list_changes("things", before, [*before[1:], before[0]])
    assert [(change.kind, change.name, change.places) for change in found] == [("moved", "a", (0, 5))]


def test_two_of_one_name_are_told_apart() -> None:
    found = list_changes("things", [Thing("a", 1), Thing("a", 2)], [Thing("a", 1), Thing("a", 3)])
    assert [(change.kind, change.before, change.after) for change in found] == [
        ("rewritten", Thing("a", 2), Thing("a", 3))
    ]


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        (Section("s", "old"), Section("s", "new"), {"text": ("old", "new")}),
        (Section("s", "x"), Section("s", "x", interpolate=False), {"interpolate": ("", "False")}),
        (ToolSchema("t", "a"), ToolSchema("t", "b"), {"description": ("a", "b")}),
        (ToolSchema("t", "a", {"x": 1}), ToolSchema("t", "a", {"x": 2}), {"parameters": ('{"x":1}', '{"x":2}')}),
        (("v", "old"), ("v", None), {"value": ("old", "(no value)")}),
    ],
)
def test_a_rewritten_element_says_which_fields(before: Any, after: Any, fields: Any) -> None:
    (change,) = list_changes("lane", [before], [after])
    assert change.kind == "rewritten"
    assert dict(change.fields) == fields


def test_a_step_and_its_decision_are_compared_by_their_messages() -> None:
    one, two = UserMessage(id="1", content="a"), UserMessage(id="2", content="b")
    found = changes(snapshot(Enter([one, two])), snapshot(Enter([two])))
    assert [(change.lane, change.kind, change.name) for change in found] == [("messages", "removed", "1")]
    assert changes(snapshot(Enter([one])), snapshot(Reject("no"))) == ()


def test_a_configuration_is_compared_field_by_field() -> None:
    found = changes(snapshot(CallConfig(model="a", seed=1)), snapshot(CallConfig(model="b", top_p=0.5)))
    assert {(change.name, change.kind) for change in found} == {
        ("model", "rewritten"),
        ("seed", "removed"),
        ("top_p", "added"),
    }


@given(st.text(), st.text())
def test_a_text_difference_holds_both_texts(before: str, after: str) -> None:
    found = text_diff(before, after, context=10_000)
    assert "".join(text for sign, text in found if sign != "+") == before
    assert "".join(text for sign, text in found if sign != "-") == after


def test_long_equal_stretches_are_shortened() -> None:
    found = text_diff("a " * 500 + "old", "a " * 500 + "new", context=10)
    assert found[0][1].startswith("…")
    assert len(found[0][1]) == 11
    assert found[1:] == [("-", "old"), ("+", "new")]


def test_huge_texts_are_compared_in_no_time_and_the_result_still_holds_both() -> None:
    before, after = "word " * 20_000, "other " * 20_000
    found = text_diff(before, after, context=10)
    assert [sign for sign, _ in found] == ["-", "+"]
