"""When a conversation is compacted, what stays, and what the log and the model get to see."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from harness_compaction.range import estimate, older_part
from harness_compaction.texts import FRAME, INSTRUCTIONS, extract, transcript
from hypothesis import given, strategies as st

from harness_core import PreStep, hookimpl
from harness_core.models import (
    AssistantMessage,
    FailureFacts,
    ScriptedAnswer,
    ScriptedModel,
    Source,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    ToolSchema,
    Usage,
    UserMessage,
)
from harness_core.session import (
    APPEND,
    AssistantMessageLogged,
    PluginRecord,
    RequestRetry,
    Session,
    StepStart,
    SurfaceReplace,
    ToolResultLogged,
    TurnEnd,
    TurnStart,
    UserMessageLogged,
    verify,
)

LONG = "word " * 200
TOO_LONG = FailureFacts(code="CONTEXT_OVERFLOW", message="too long")


def records(stage: Any) -> list[dict[str, Any]]:
    return [dict(each.data) for each in stage.data(PluginRecord) if each.type == "plugin/compaction/summary"]


def calls_have_results(stage: Any) -> None:
    messages = list(stage.agent.session.messages)
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            ids = [call.id for call in message.tool_calls]
            assert [each.call_id for each in messages[place + 1 : place + 1 + len(ids)]] == ids
        if isinstance(message, ToolResultMessage):
            assert place > 0


@pytest.mark.anyio
async def test_a_short_conversation_is_left_alone(stage: Any) -> None:
    async with stage(at_tokens=10_000) as it:
        for _ in range(5):
            await it.agent.run("hi")
        assert records(it) == []


@pytest.mark.anyio
async def test_without_a_window_and_a_number_nothing_is_compacted(stage: Any) -> None:
    async with stage() as it:
        for _ in range(5):
            await it.agent.run(LONG)
        assert records(it) == []


@pytest.mark.anyio
@pytest.mark.parametrize("how", [{"at_tokens": 1_000}, {"window": 2_000, "at_share": 0.5}])
async def test_under_pressure_the_older_part_gives_way_to_a_summary(stage: Any, how: dict[str, Any]) -> None:
    answers = ["a1", "a2", "a3", "They talked.", "a4"]
    async with stage(*answers, keep_tokens=300, **how) as it:
        for number in range(4):
            await it.agent.run(f"{number} {LONG}")
        (record,) = records(it)
        assert (record["why"], record["by"]) == ("pressure", "model")
        assert record["tokens_after"] < record["tokens_before"]
        assert it.shown[0] == FRAME + "They talked."
        assert it.shown[-2:] == [f"3 {LONG}", "a4"]
        assert len(it.shown) < 8
        (asked,) = [each for each in it.model.requests if each.header.system == INSTRUCTIONS]
        assert asked.header.tools == () and "User: 0 word" in asked.messages[0].text
        assert verify(it.agent.session.info, it.agent.session.events).ok
        summary = it.agent.session.messages[0]
        assert (summary.source.kind, summary.source.form, summary.source.plugin) == ("plugin", "recall", "compaction")


@pytest.mark.anyio
async def test_it_goes_on_for_ever_without_growing(stage: Any) -> None:
    async with stage(at_tokens=1_500, keep_tokens=400, summary="extract", summary_tokens=200) as it:
        for number in range(40):
            assert (await it.agent.run(f"{number} {LONG}")).ok
            assert estimate(it.agent.session) < 2_500
        assert len(records(it)) > 5
        assert all(each["by"] == "extract" for each in records(it))
        assert verify(it.agent.session.info, it.agent.session.events).requests == 40


@pytest.mark.anyio
async def test_what_the_service_counted_is_believed(stage: Any) -> None:
    counted = ScriptedAnswer(text="a", usage=Usage(input_tokens=5_000, output_tokens=10))
    small = ScriptedAnswer(text="a", usage=Usage(input_tokens=50, output_tokens=10))
    async with stage(small, counted, small, at_tokens=3_000, keep_tokens=10, summary="extract") as it:
        await it.agent.run("hi")
        await it.agent.run("again")
        assert estimate(it.agent.session) == 5_010
        assert records(it) == []
        await it.agent.run("and again")
        (record,) = records(it)
        assert record["tokens_before"] == 5_010 and record["tokens_after"] < 1_000


@pytest.mark.anyio
@pytest.mark.parametrize("broken", [FailureFacts(code="DOWN", message="down"), "", "missing provider"])
async def test_when_no_model_writes_a_summary_an_extract_stands_in(stage: Any, broken: Any, caplog: Any) -> None:
    config = {"provider": "nobody"} if broken == "missing provider" else {}
    async with stage("a1", "a2", broken, at_tokens=600, keep_tokens=100, **config) as it:
        for number in range(3):
            assert (await it.agent.run(f"{number} {LONG}")).ok
        assert records(it)[0]["by"] == "extract"
        assert it.shown[0].startswith(FRAME + "User: 0 word")
        assert "No model wrote a summary" in caplog.text


@pytest.mark.anyio
async def test_the_summary_may_be_another_model_s_work(stage: Any) -> None:
    other = ScriptedModel("By the other.")

    def prepare(harness: Any) -> None:
        harness.root.models.register("other", other)

    async with stage(at_tokens=600, keep_tokens=100, provider="other", model="small", prepare=prepare) as it:
        for _ in range(3):
            await it.agent.run(LONG)
        assert it.shown[0] == FRAME + "By the other."
        (asked,) = other.requests
        assert (asked.header.config.model, asked.header.config.max_tokens) == ("small", 2_000)


@pytest.mark.anyio
async def test_a_request_that_was_too_long_is_compacted_and_sent_again(stage: Any) -> None:
    async with stage("a1", "a2", TOO_LONG, "shorter", "a3") as it:
        await it.agent.run(LONG)
        await it.agent.run(LONG)
        result = await it.agent.run("and now?")
        assert (result.text, len(it.data(RequestRetry))) == ("a3", 1)
        assert records(it)[0]["why"] == "overflow"
        assert it.shown[0] == FRAME + "shorter" and it.shown[-2:] == ["and now?", "a3"]
        assert verify(it.agent.session.info, it.agent.session.events).ok


@pytest.mark.anyio
async def test_it_is_tried_once_in_a_step(stage: Any) -> None:
    async with stage("a1", "a2", TOO_LONG, "shorter", TOO_LONG, "never") as it:
        await it.agent.run(LONG)
        await it.agent.run(LONG)
        result = await it.agent.run("and now?")
        assert result.failure == TOO_LONG
        assert len(records(it)) == 1


@pytest.mark.anyio
async def test_what_cannot_be_made_shorter_fails_as_it_would(stage: Any) -> None:
    async with stage(TOO_LONG) as it:
        assert (await it.agent.run("hi")).failure == TOO_LONG
        assert records(it) == []


@pytest.mark.anyio
async def test_other_failures_are_none_of_its_business(stage: Any) -> None:
    down = FailureFacts(code="DOWN", message="down")
    async with stage("a1", down) as it:
        await it.agent.run(LONG)
        assert (await it.agent.run(LONG)).failure == down
        assert records(it) == []


@pytest.mark.anyio
async def test_calls_and_results_stay_together_within_a_long_turn(stage: Any) -> None:
    looks = [ScriptedAnswer(calls=[("look", {}), ("look", {})]) for _ in range(12)]

    def prepare(harness: Any) -> None:
        harness.root.tools.register(ToolSchema("look"), lambda call: LONG)

    async with stage(*looks, "done", at_tokens=3_000, keep_tokens=1_000, summary="extract", prepare=prepare) as it:
        assert (await it.agent.run("go")).text == "done"
        assert len(records(it)) >= 2
        calls_have_results(it)
        assert it.data(TurnEnd)[-1].reason == "completed"


@pytest.mark.anyio
@pytest.mark.spec("CTX-02", "PRE-06")
async def test_a_snapshot_that_gave_way_is_said_again_with_the_next_step(stage: Any) -> None:
    def prepare(harness: Any) -> None:
        harness.root.prompt.context("now", "sunny", order=1)

    async with stage(at_tokens=600, keep_tokens=100, summary="extract", prepare=prepare) as it:
        for _ in range(4):
            await it.agent.run(LONG)
        snapshots = [m for m in it.agent.session.messages if getattr(m, "source", Source()).form == "snapshot"]
        assert len(snapshots) == 1
        assert len(records(it)) >= 2


@pytest.mark.anyio
async def test_it_acts_before_others_add_theirs(stage: Any) -> None:
    seen: list[int] = []

    class Other:
        @hookimpl
        async def agent_pre_step(self, step: PreStep, call_next: Any) -> Any:
            seen.append(len(step.session.surface.entries))  # type: ignore[union-attr]
            return await call_next()

    async with stage(at_tokens=600, keep_tokens=100, summary="extract", others=[Other]) as it:
        for _ in range(3):
            await it.agent.run(LONG)
        assert seen == [0, 2, 2]


@pytest.mark.anyio
async def test_a_turn_may_be_stopped_while_the_summary_is_written(stage: Any) -> None:
    slow = ScriptedAnswer(text="slow", delay=3_600)
    async with stage("a1", "a2", slow, at_tokens=600, keep_tokens=100) as it:
        await it.agent.run(LONG)
        await it.agent.run(LONG)
        it.agent.followup(LONG)
        for _ in range(3):
            await anyio.wait_all_tasks_blocked()
        it.agent.cancel()
        await it.agent.when_idle()
        assert records(it) == []
        assert it.data(TurnEnd)[-1].reason == "aborted"


shapes = st.lists(st.sampled_from(["user", "answer", "calls"]), max_size=20)


@given(shapes, st.integers(1, 400))
def test_a_cut_never_parts_a_call_from_its_results_and_can_be_made(shape: list[str], keep: int) -> None:
    session = Session.create("s", cwd="/")
    session.append(TurnStart(turn=1))
    session.append(StepStart(turn=1, step=1))
    for number, kind in enumerate(shape):
        if kind == "user":
            session.append(UserMessageLogged(message=UserMessage(id=str(number), content="x" * 100)), APPEND)
            continue
        ids = (f"{number}a", f"{number}b") if kind == "calls" else ()
        content = (TextBlock("y" * 100), *(ToolCallBlock(each, "t", "{}") for each in ids))
        session.append(AssistantMessageLogged(turn=1, step=1, message=AssistantMessage(content=content)), APPEND)
        for each in ids:
            result = ToolResultMessage(call_id=each, name="t", content="z" * 100)
            session.append(ToolResultLogged(turn=1, step=1, message=result), APPEND)
    part = older_part(session, keep)
    if part is None:
        return
    rest = list(session.surface.entries)[len(part.entries) :]
    assert rest and not isinstance(session.surface.message(rest[0]), ToolResultMessage)
    message = UserMessage(id="summary", content="s")
    operation = SurfaceReplace(start=part.entries[0], end=part.entries[-1], sources=part.entries)
    session.append(UserMessageLogged(message=message), operation)
    assert len(session.surface.entries) == len(rest) + 1


@given(st.lists(st.text(max_size=300), max_size=30), st.integers(200, 2_000))
def test_extracts_and_records_keep_their_bounds(texts: list[str], limit: int) -> None:
    messages = [UserMessage(id=str(number), content=text) for number, text in enumerate(texts)]
    for made in (extract(messages, limit), transcript(messages, limit)):
        assert len(made) <= limit


@pytest.mark.anyio
async def test_looking_at_the_next_step_compacts_nothing(stage: Any) -> None:
    async with stage(at_tokens=600, keep_tokens=50) as it:
        for _ in range(2):
            await it.agent.run(LONG)
        seen = len(it.agent.session.events)
        await it.harness.prepare_step(it.agent, [LONG])
        assert len(it.agent.session.events) == seen
        await it.agent.run(LONG)
        assert len(records(it)) == 1
