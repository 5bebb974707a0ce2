"""The plugin: answers `agent_request_error` by the policy. The loop announces, waits and sends (STEP-02)."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from tenacity.wait import wait_base

from harness_core import PluginContext, RequestFailure, Retry, hookimpl
from harness_core.session import RequestRetry, StepStart
from harness_retry import policy
from harness_retry.policy import Policy, exponential

__all__ = ["RetryRequests"]


class RetryRequests:
    """Repeats requests that failed for a reason that may pass.

    Args:
        shape: makes of the configuration how long waits are, before chance: any of tenacity's wait strategies.
        chance: numbers from 0 to below 1.
    """

    name = "retry"
    Config = policy.Config

    def __init__(
        self,
        *,
        shape: Callable[[policy.Config], wait_base] = exponential,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._shape = shape
        self._chance = chance
        self._policy = self._made(policy.Config())

    def _made(self, config: policy.Config) -> Policy:
        return Policy(config=config, shape=self._shape(config), chance=self._chance)

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        self._policy = self._made(ctx.config)

    @hookimpl
    async def agent_request_error(
        self, failure: RequestFailure, call_next: Callable[..., Awaitable[Retry | None]]
    ) -> Retry | None:
        """Whoever is further inside and knows this failure better goes first."""
        decision = await call_next()
        if decision is not None:
            return decision
        return self._policy.decide(failure.facts, failure.attempt, _waited(failure))


def _waited(failure: RequestFailure) -> float:
    """Seconds that this step has waited already, from the log: it is there whatever happened to this plugin since."""
    milliseconds = 0
    for event in reversed(failure.session.events if failure.session is not None else ()):
        if isinstance(event.data, StepStart):
            break
        if isinstance(event.data, RequestRetry):
            milliseconds += event.data.delay_ms
    return milliseconds / 1000
