"""When a failed request is sent again, and when not."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
import tenacity
from harness_retry import Config, Policy, exponential
from hypothesis import given, strategies as st

from harness_core.hooks import Retry
from harness_core.host.config import structure_config
from harness_core.models import FailureFacts

BUSY = FailureFacts(code="OVERLOADED", message="busy", retryable=True)


def decide(
    facts: FailureFacts = BUSY, attempt: int = 1, waited: float = 0.0, chance: float = 0.0, **config: Any
) -> Retry | None:
    settings = Config(**config)
    return Policy(config=settings, shape=exponential(settings), chance=lambda: chance).decide(facts, attempt, waited)


def delays(**config: Any) -> list[float]:
    decisions = [decide(attempt=attempt, **config) for attempt in range(1, 7)]
    return [each.delay for each in decisions if each is not None]


def with_facts(**facts: Any) -> FailureFacts:
    return FailureFacts(**{"code": "X", "message": "m", "retryable": True, **facts})


def test_waits_grow_by_the_factor_up_to_the_limit() -> None:
    assert delays(jitter=0.0) == [1.0, 2.0, 4.0, 8.0]
    assert delays(jitter=0.0, attempts=7, first_delay=0.5, factor=3.0, max_delay=10.0) == [
        0.5,
        1.5,
        4.5,
        10.0,
        10.0,
        10.0,
    ]


@pytest.mark.parametrize(("chance", "delay"), [(0.0, 1.0), (0.5, 1.5), (0.999, 1.999)])
def test_jitter_leaves_a_part_to_chance(chance: float, delay: float) -> None:
    decision = decide(attempt=2, chance=chance, jitter=0.5)
    assert decision is not None
    assert decision.delay == pytest.approx(delay)


def test_the_decision_says_why() -> None:
    decision = decide(attempt=2)
    assert decision is not None
    assert decision.reason == "attempt 2 of 5 failed: OVERLOADED"


@pytest.mark.parametrize(
    ("facts", "config", "again"),
    [
        (with_facts(), {}, True),
        (with_facts(retryable=False), {}, False),
        (with_facts(retryable=False), {"codes": ["X"]}, True),
        (with_facts(output_started=True), {}, False),
        (with_facts(output_started=True), {"after_output": True}, True),
        (with_facts(output_started=True, retryable=False), {"after_output": True}, False),
        (with_facts(), {"attempts": 1}, False),
        (with_facts(retry_after=301.0), {}, False),
        (with_facts(retry_after=301.0), {"max_total": 1000.0}, True),
    ],
)
def test_what_is_repeated(facts: FailureFacts, config: dict[str, Any], again: bool) -> None:
    assert (decide(facts, **config) is not None) == again


def test_what_was_waited_counts_towards_the_total() -> None:
    assert decide(waited=299.0, jitter=0.0) is not None
    assert decide(waited=299.1, jitter=0.0) is None


@given(
    retry_after=st.none() | st.floats(0, 1000),
    attempt=st.integers(1, 20),
    waited=st.floats(0, 1000),
    chance=st.floats(0, 1, exclude_max=True),
    config=st.fixed_dictionaries(
        {
            "attempts": st.integers(1, 12),
            "first_delay": st.floats(0, 100),
            "factor": st.floats(1, 50),
            "max_delay": st.floats(0, 100),
            "jitter": st.floats(0, 1),
            "max_total": st.floats(0, 500),
        }
    ),
)
def test_bounds_hold_whatever_the_settings(
    retry_after: float | None, attempt: int, waited: float, chance: float, config: dict[str, Any]
) -> None:
    decision = decide(with_facts(retry_after=retry_after), attempt, waited, chance, **config)
    if decision is None:
        return
    assert attempt < config["attempts"]
    assert decision.delay >= 0
    assert waited + decision.delay <= config["max_total"]
    if retry_after is None:
        assert decision.delay <= config["max_delay"]
    else:
        assert decision.delay >= retry_after


def test_a_number_of_attempts_that_no_float_can_hold_is_no_trouble() -> None:
    assert delays(jitter=0.0, attempts=10**9)[:1] == [1.0]
    decision = decide(attempt=5000, attempts=10**9, jitter=0.0)
    assert decision is not None
    assert decision.delay == 60.0


def test_waits_of_another_shape() -> None:
    numbers = count(1)
    policy = Policy(config=Config(jitter=0.0), shape=tenacity.wait_fixed(3), chance=lambda: float(next(numbers)))
    assert policy.decide(BUSY, 4, 0.0) == Retry(delay=3.0, reason="attempt 4 of 5 failed: OVERLOADED")


@pytest.mark.parametrize(
    "data",
    [
        {"attempts": 0},
        {"first_delay": -1.0},
        {"factor": 0.5},
        {"max_delay": float("inf")},
        {"jitter": 1.5},
        {"max_total": float("nan")},
        {"codes": [3]},
        {"retries": 3},
    ],
)
def test_settings_that_cannot_be(data: dict[str, Any]) -> None:
    problems = structure_config(data, Config)
    assert isinstance(problems, list)
    assert problems[0].path.startswith(next(iter(data)))
