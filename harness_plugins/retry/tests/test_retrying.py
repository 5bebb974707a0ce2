"""Retries in an agent's turns: announced, awaited, cancellable, and with what the step had."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from harness_retry import RetryRequests

from harness_core import Retry, hookimpl
from harness_core.models import FailureFacts, ScriptedAnswer, ScriptedModel
from harness_core.session import HeaderWritten, RequestDispatch, RequestRetry, TurnEnd

pytestmark = [pytest.mark.anyio, pytest.mark.spec("STEP-02")]

BUSY = FailureFacts(code="OVERLOADED", message="busy", status=503, retryable=True)


async def test_a_turn_survives_failures_that_pass(stage: Any) -> None:
    async with stage(BUSY, BUSY, "done", jitter=0.0) as it:
        result = await it.agent.run("hi")
        assert (result.reason, result.text) == ("completed", "done")
        assert it.slept == [1.0, 2.0]


async def test_each_retry_is_announced_with_its_wait_and_reason(stage: Any) -> None:
    async with stage(
        BUSY, FailureFacts(code="RATE_LIMITED", message="slow", retryable=True, retry_after=7.5), "x"
    ) as it:
        await it.agent.run("hi")
        announced = it.data(RequestRetry)
        assert [(each.attempt, each.delay_ms, each.failure.code) for each in announced] == [
            (1, 500, "OVERLOADED"),
            (2, 7500, "RATE_LIMITED"),
        ]
        assert announced[0].reason == "attempt 1 of 5 failed: OVERLOADED"
        kinds = [event.type for event in it.agent.session.events if event.type.startswith("request/")]
        assert kinds == ["request/header", "request/context"] + ["request/dispatch", "request/retry"] * 2 + [
            "request/dispatch"
        ]


@pytest.mark.spec("STEP-01")
async def test_a_retry_asks_for_exactly_the_same(stage: Any) -> None:
    model = ScriptedModel(BUSY, "done")
    async with stage(model=model) as it:
        it.harness.root.prompt.section("now", lambda _: f"asked {len(model.requests)} times", order=10)
        await it.agent.run("hi")
        first, second = model.requests
        assert first.header == second.header
        assert list(first.messages) == list(second.messages)
        digests = {each.digest for each in it.data(RequestDispatch)}
        assert len(digests) == 1
        assert len(it.data(HeaderWritten)) == 1


async def test_it_gives_up_after_the_last_attempt_and_the_turn_fails_with_the_facts(stage: Any) -> None:
    async with stage(*[BUSY] * 5, attempts=3) as it:
        result = await it.agent.run("hi")
        assert (result.reason, result.failure) == ("error", BUSY)
        assert len(it.data(RequestDispatch)) == 3
        assert (await it.agent.run("again")).reason == "error", "a new step has its attempts again"
        assert len(it.data(RequestDispatch)) == 5 + 1  # two failures were left; the script's end is not retryable


async def test_waiting_is_bounded_over_all_attempts_of_a_step(stage: Any) -> None:
    async with stage(*[BUSY] * 9, attempts=9, jitter=0.0, max_total=7.0) as it:
        assert (await it.agent.run("hi")).reason == "error"
        assert it.slept == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(("after_output", "reason"), [(False, "error"), (True, "completed")])
async def test_nothing_is_repeated_after_output_was_shown_unless_told_to(
    stage: Any, after_output: bool, reason: str
) -> None:
    cut = FailureFacts(code="STREAM_CUT", message="cut", retryable=True, output_started=True)
    async with stage(ScriptedAnswer(text="half an", failure=cut), "whole", after_output=after_output) as it:
        result = await it.agent.run("hi")
        assert result.reason == reason
        assert result.text == ("whole" if after_output else "")


async def test_a_failure_that_stays_is_not_repeated(stage: Any) -> None:
    async with stage(FailureFacts(code="AUTHENTICATION", message="no", status=401), "never") as it:
        assert (await it.agent.run("hi")).failure.code == "AUTHENTICATION"
        assert it.data(RequestRetry) == []


@pytest.mark.spec("CANCEL-01")
async def test_cancelling_ends_the_wait_and_wins_over_the_retry(stage: Any) -> None:
    waiting = anyio.Event()

    async def for_ever(_: float) -> None:
        waiting.set()
        await anyio.sleep_forever()

    model = ScriptedModel(BUSY, "never")
    async with stage(model=model, sleep=for_ever) as it:
        it.agent.followup("hi")
        with anyio.fail_after(5):
            await waiting.wait()
            it.agent.cancel()
            await it.agent.when_idle()
        (end,) = it.data(TurnEnd)
        assert (end.reason, end.cause) == ("aborted", "user")
        assert len(model.requests) == 1


async def test_another_plugin_s_decision_inside_comes_first(stage: Any) -> None:
    class Sure:
        @hookimpl(trylast=True)
        def agent_request_error(self, failure: Any) -> Retry:
            return Retry(delay=0.25)

    async with stage(FailureFacts(code="BAD_REQUEST", message="no"), "done", others=[Sure()]) as it:
        assert (await it.agent.run("hi")).text == "done"
        assert it.slept == [0.25]


async def test_it_is_gone_when_it_is_taken_out(stage: Any) -> None:
    async with stage(BUSY, "never") as it:
        (activation,) = it.harness.activations
        await activation.aclose()
        assert (await it.agent.run("hi")).reason == "error"


async def test_the_class_itself_can_be_installed(stage: Any) -> None:
    async with stage(BUSY, "done", plugin=RetryRequests, first_delay=0.0) as it:
        assert (await it.agent.run("hi")).text == "done"
