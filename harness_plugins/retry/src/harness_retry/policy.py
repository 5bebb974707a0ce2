"""When to send a failed request again: a pure decision from facts, chance included as an argument. Waits for nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import tenacity
from tenacity.wait import wait_base

from harness_core.hooks import Retry
from harness_core.models import FailureFacts

__all__ = ["Config", "Policy", "exponential"]


def _count(_: object, __: object, value: int) -> None:
    if value < 1:
        raise ValueError(f"must be 1 or more, not {value!r}")


def _seconds(_: object, __: object, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"must be a number of seconds from 0, not {value!r}")


def _factor(_: object, __: object, value: float) -> None:
    if not (math.isfinite(value) and value >= 1):
        raise ValueError(f"must be a number from 1, not {value!r}")


def _share(_: object, __: object, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"must lie between 0 and 1, not {value!r}")


@attrs.define(kw_only=True)
class Config:
    """Settings of the retry plugin. Times are in seconds."""

    attempts: int = attrs.field(default=5, validator=_count)
    """All requests of a step, the first one included."""
    first_delay: float = attrs.field(default=1.0, validator=_seconds)
    """The wait before the second request."""
    factor: float = attrs.field(default=2.0, validator=_factor)
    """How many times as long each later wait is as the one before."""
    max_delay: float = attrs.field(default=60.0, validator=_seconds)
    """The longest single wait."""
    jitter: float = attrs.field(default=0.5, validator=_share)
    """The part of a wait that is left to chance."""
    max_total: float = attrs.field(default=300.0, validator=_seconds)
    """The longest that a step waits altogether, also where a service asks for more."""
    after_output: bool = False
    """Repeat a request although a part of its answer was shown."""
    codes: list[str] = attrs.field(factory=list[str])
    """Failures to repeat although the adapter holds them to be permanent."""


def exponential(config: Config) -> wait_base:
    """Waits that grow by a constant factor."""
    return tenacity.wait_exponential(multiplier=config.first_delay, exp_base=config.factor, max=config.max_delay)


@attrs.frozen(kw_only=True)
class Policy:
    """``shape`` gives the length of a wait before chance; ``chance`` numbers from 0 to below 1."""

    config: Config
    shape: wait_base
    chance: Callable[[], float]

    def decide(self, facts: FailureFacts, attempt: int, waited: float) -> Retry | None:
        """Whether to go on after failed attempt number ``attempt``, with ``waited`` seconds spent on waiting before."""
        config = self.config
        if not (facts.retryable or facts.code in config.codes):
            return None
        if facts.output_started and not config.after_output:
            return None
        if attempt >= config.attempts:
            return None
        delay = self._delay(attempt, facts.retry_after)
        if waited + delay > config.max_total:
            return None
        return Retry(delay=delay, reason=f"attempt {attempt} of {config.attempts} failed: {facts.code}")

    def _delay(self, attempt: int, retry_after: float | None) -> float:
        jitter, chance = self.config.jitter, self.chance()
        delay = self.shape(_state(attempt)) * (1 - jitter + jitter * chance)
        if retry_after is None:
            return delay
        # Never sooner than asked; and a little later by chance, because all who were turned away come back then.
        return max(delay, retry_after + jitter * chance * self.config.first_delay)


def _state(attempt: int) -> tenacity.RetryCallState:
    """What tenacity's strategies want to know of a call."""
    unused: Any = None
    state = tenacity.RetryCallState(unused, None, (), {})
    state.attempt_number = attempt
    return state
