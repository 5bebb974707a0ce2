"""References as callers name them."""

from __future__ import annotations

from typing import Any

import pytest
from harness_session_reference import Config, Reference, ReferenceProblem, SessionReferenceError, SessionReferences
from harness_session_reference.references import normalised

from harness_core.session import MemoryStore


def problem(*references: Any, target: str | None = "me", most: int = 3) -> ReferenceProblem:
    with pytest.raises(SessionReferenceError) as error:
        normalised(references, target, most)
    assert error.value.plugin == "session-reference"
    return error.value.problem


@pytest.mark.spec("SREF-02")
def test_each_session_counts_once_under_its_first_label() -> None:
    given = [{"id": "a", "label": "first"}, {"id": "a", "label": "dup"}, {"id": "b"}]
    assert normalised(given, "me", 2) == [Reference("a", "first"), Reference("b")]


def test_a_missing_label_is_the_id_and_an_empty_one_stays_empty() -> None:
    assert [each.shown for each in normalised([Reference("a"), {"id": "b", "label": ""}], None, 3)] == ["a", ""]


@pytest.mark.spec("SREF-03")
def test_a_session_may_not_refer_to_itself() -> None:
    assert problem({"id": "a"}, {"id": "me"}) is ReferenceProblem.SELF_REFERENCE
    assert problem(*({"id": str(number)} for number in range(9)), {"id": "me"}) is ReferenceProblem.SELF_REFERENCE


@pytest.mark.spec("SREF-04")
def test_more_sessions_than_allowed_are_too_many() -> None:
    assert problem({"id": "a"}, {"id": "b"}, {"id": "c"}, most=2) is ReferenceProblem.TOO_MANY
    assert len(normalised([{"id": "a"}, {"id": "b"}, {"id": "a"}], "me", 2)) == 2


@pytest.mark.spec("SREF-05")
@pytest.mark.parametrize(
    "reference",
    [
        None,
        5,
        "a",
        ["a"],
        {},
        {"id": 5},
        {"id": None},
        {"id": "a", "label": 5},
        {"id": b"a"},
        {"id": "\ud800"},
        {"id": "a", "label": "\udfff"},
        Reference(5),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_reference_is_refused(reference: Any) -> None:
    assert problem(reference) is ReferenceProblem.INVALID_REFERENCE


@pytest.mark.spec("SREF-05")
@pytest.mark.parametrize("references", [None, "a", b"a", {"id": "a"}, 5])
def test_what_is_no_list_is_refused(references: Any) -> None:
    with pytest.raises(SessionReferenceError) as error:
        normalised(references, None, 3)
    assert error.value.problem is ReferenceProblem.INVALID_REFERENCE


def test_the_first_problem_of_the_list_counts() -> None:
    assert problem(None, {"id": "me"}) is ReferenceProblem.INVALID_REFERENCE
    assert problem({"id": "me"}, None) is ReferenceProblem.SELF_REFERENCE


@pytest.mark.spec("SREF-35")
@pytest.mark.parametrize("value", [0, 4, -1, 1.5, 2.0, "2", float("inf"), True, None])
def test_settings_that_are_no_such_numbers_are_refused(value: Any) -> None:
    with pytest.raises(SessionReferenceError) as error:
        SessionReferences(MemoryStore(), Config(max_references=value))
    assert error.value.problem is ReferenceProblem.INVALID_CONFIG
    for name in ("candidate_limit", "max_reference_bytes"):
        if value not in (4, 1):
            with pytest.raises(SessionReferenceError, match=name):
                Config(**{name: value})
