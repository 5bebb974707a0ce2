"""What a turn logs, in order, and how turns follow each other."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from harness_core.agent import Agent, InboxError, InputCanceledError
from harness_core.hooks import Enter, PreStep, Reject, ToolCall, ToolOutcome, hookimpl
from harness_core.models import FailureFacts, ScriptedAnswer, ToolSchema, Usage, UserMessage
from harness_core.session import (
    AssistantMessageLogged,
    FileStore,
    InboxSpliced,
    StepStart,
    TurnEnd,
    TurnStart,
    UserMessageLogged,
    read_log,
    replay_inbox,
    verify,
)

pytestmark = pytest.mark.anyio

INSERT = CLAIM = "agent/inbox/spliced"
OPENING = [INSERT, "turn/start", CLAIM, "step/start", "user/message"]
REQUEST = ["request/header", "request/context", "request/dispatch", "assistant/chunk", "assistant/message"]
PLAIN = [*OPENING, *REQUEST, "step/end", "turn/end"]


def add_look(harness: Any, handler: Any = lambda call: "seen") -> None:
    harness.root.tools.register(ToolSchema("look", "Look."), handler)


LOOK = ScriptedAnswer(calls=[("look", {})])


@pytest.mark.spec("TURN-01")
async def test_a_plain_turn_logs_exactly_this(open_stage: Any) -> None:
    async with open_stage(answers=["Hello!"]) as stage:
        result = await stage.agent.run("Hi")
        assert stage.types == PLAIN
        assert (result.number, result.reason, result.text, result.ok) == (1, "completed", "Hello!", True)
        await stage.agent.run("Again")
        again = [kind for kind in PLAIN if kind not in ("request/header", "request/context")]
        assert stage.types == PLAIN + again


@pytest.mark.spec("TURN-02")
async def test_a_tool_turn_logs_pairs_and_then_another_step(open_stage: Any) -> None:
    answers = [ScriptedAnswer(calls=[("look", {}), ("look", "")]), "Done."]
    async with open_stage(answers=answers, prepare=add_look) as stage:
        result = await stage.agent.run("Look twice")
        pair = ["tool/call", "tool/result"]
        step = ["step/start", "request/dispatch", "assistant/chunk", "assistant/message", "step/end"]
        assert stage.types == [*PLAIN[:-2], *pair, *pair, "step/end", *step, "turn/end"]
        assert [(each.turn, each.step) for each in stage.data(StepStart)] == [(1, 1), (1, 2)]
        assert result.text == "Done."
        assert [len(request.messages) for request in stage.model.requests] == [1, 4]


@pytest.mark.spec("REQ-01", "REQ-02")
async def test_what_the_model_got_is_what_the_log_rebuilds(open_stage: Any) -> None:
    async with open_stage(answers=[LOOK, "a", LOOK, "b"], prepare=add_look) as stage:
        await stage.agent.run("one")
        await stage.agent.run("two")
        from harness_core.session import rebuild_requests

        session = stage.agent.session
        assert [each.request for each in rebuild_requests(session.info, session.events)] == stage.model.requests
        assert verify(session.info, session.events).ok
        for earlier, later in zip(stage.model.requests, stage.model.requests[1:], strict=False):
            assert list(later.messages)[: len(earlier.messages)] == list(earlier.messages)


class Steering:
    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.asked = 0

    @hookimpl
    def agent_turn_stopping(self, agent: Agent, turn: int) -> None:
        self.asked += 1
        if self.texts:
            agent.steer(self.texts.pop(0))


@pytest.mark.spec("TURN-03")
async def test_what_steers_at_the_end_continues_the_same_turn(open_stage: Any) -> None:
    plugin = Steering("more", "and more")
    async with open_stage(plugin, answers=["a", "b", "c"]) as stage:
        result = await stage.agent.run("Hi")
        assert (result.number, result.text, plugin.asked) == (1, "c", 3)
        assert [(each.turn, each.step) for each in stage.data(StepStart)] == [(1, 1), (1, 2), (1, 3)]
        assert [m.text for m in stage.agent.session.messages] == ["Hi", "a", "more", "b", "and more", "c"]
        assert len(stage.data(TurnStart)) == 1


@pytest.mark.spec("TURN-03")
async def test_a_tool_may_conclude_the_turn(open_stage: Any) -> None:
    def conclude(harness: Any) -> None:
        add_look(harness, lambda call: ToolOutcome(content="bye", conclude=True))

    async with open_stage(answers=[LOOK, "never"], prepare=conclude) as stage:
        result = await stage.agent.run("Hi")
        assert (result.reason, len(stage.model.requests)) == ("completed", 1)
        assert stage.types[-4:] == ["tool/call", "tool/result", "step/end", "turn/end"]


@pytest.mark.spec("TURN-03")
async def test_steering_that_arrived_meanwhile_continues_a_concluded_turn(open_stage: Any) -> None:
    def conclude(harness: Any) -> None:
        def handler(call: ToolCall) -> ToolOutcome:
            assert call.agent is not None
            call.agent.steer("wait")
            return ToolOutcome(content="bye", conclude=True)

        add_look(harness, handler)

    async with open_stage(answers=[LOOK, "yes?"], prepare=conclude) as stage:
        assert (await stage.agent.run("Hi")).text == "yes?"
        assert len(stage.data(TurnEnd)) == 1


@pytest.mark.spec("TURN-04")
async def test_an_answer_cut_off_runs_no_tools_and_its_reason_is_sticky_for_its_turn(open_stage: Any) -> None:
    cut = ScriptedAnswer(text="half an", calls=[("look", '{"a":')], finish="max-tokens")
    ran: list[Any] = []
    async with open_stage(
        Steering("go on"), answers=[cut, "whole", "next"], prepare=lambda h: add_look(h, ran.append)
    ) as stage:
        result = await stage.agent.run("Hi")
        assert (result.reason, result.ok, ran) == ("max-tokens", True, [])
        first = stage.data(AssistantMessageLogged)[0].message
        assert (first.text, first.tool_calls) == ("half an", ())
        assert (await stage.agent.run("Again")).reason == "completed"


async def test_usage_is_kept_with_the_message(open_stage: Any) -> None:
    usage = Usage(input_tokens=5, output_tokens=1)
    async with open_stage(answers=[ScriptedAnswer(usage=usage)]) as stage:
        await stage.agent.run("Hi")
        assert stage.data(AssistantMessageLogged)[0].usage == usage
        assert [m.text for m in stage.agent.session.messages] == ["Hi"]


# --- inbox ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("INBOX-01", "INBOX-03")
async def test_a_turn_claims_all_of_next_step_and_then_one_of_next_turn(open_stage: Any) -> None:
    async with open_stage(answers=["a", "b"]) as stage:
        agent = stage.agent
        agent.inject("context 1")
        agent.inject("context 2")
        await anyio.wait_all_tasks_blocked()
        assert stage.types == [INSERT, INSERT]
        agent.followup("first")
        agent.followup("second")
        await agent.when_idle()
        entered = [each.message.text for each in stage.data(UserMessageLogged)]
        assert entered == ["context 1", "context 2", "first", "second"]
        claims = [s for s in stage.data(InboxSpliced) if s.removed_count]
        assert [(s.target, s.start, s.removed_count, s.inserted, s.outcome) for s in claims] == [
            ("next-step", 0, 2, (), None),
            ("next-turn", 0, 1, (), None),
            ("next-turn", 0, 1, (), None),
        ]
        assert [each.turn for each in stage.data(TurnStart)] == [1, 2]


@pytest.mark.spec("INBOX-01")
async def test_steer_wakes_and_ids_are_unique_over_both_lists(open_stage: Any) -> None:
    async with open_stage() as stage:
        agent = stage.agent
        agent.inject(UserMessage(id="x", content="one"))
        with pytest.raises(InboxError, match="'x'"):
            agent.followup(UserMessage(id="x", content="two"))
        agent.steer("now")
        await agent.when_idle()
        assert [each.message.text for each in stage.data(UserMessageLogged)] == ["one", "now"]


@pytest.mark.spec("INBOX-02")
async def test_each_change_is_logged_before_it_is_made_and_replays(open_stage: Any) -> None:
    async with open_stage() as stage:
        agent = stage.agent
        seen: list[tuple[int, int]] = []
        agent.session.observe(lambda event: seen.append((len(agent.inbox.next_step), len(agent.inbox.next_turn))))
        a = agent.inject("a")
        b = agent.inject("b")
        assert seen == [(0, 0), (1, 0)]
        agent.inbox.replace(a.id, UserMessage(id="c", content="c"))
        assert not agent.inbox.remove(a.id)
        assert agent.inbox.remove(b.id)
        assert [m.id for m in agent.inbox.next_step] == ["c"]
        assert replay_inbox(agent.session.events).next_step == agent.inbox.next_step
        outcomes = [splice.outcome for splice in stage.data(InboxSpliced)]
        assert outcomes == [None, None, "canceled", "canceled"]
        agent.inbox.add("next-step", UserMessage(id="h", content="h"), first=True)
        assert [m.id for m in agent.inbox.next_step] == ["h", "c"]
        assert replay_inbox(agent.session.events).next_step == agent.inbox.next_step


@pytest.mark.spec("INBOX-02")
async def test_the_inbox_survives_a_restart_and_waits_for_a_wake(open_stage: Any, tmp_path: Any) -> None:
    store = FileStore(tmp_path)
    async with open_stage(store=store) as stage:
        stage.agent.inject("context")
        stage.agent.followup("task")
        stage.agent.inbox.sleep()
        await stage.agent.aclose()
        assert stage.ends == []
    async with open_stage(store=store, resume=True) as stage:
        assert [m.text for m in stage.agent.inbox.next_turn] == ["task"]
        await stage.agent.run("go on")
        entered = [each.message.text for each in stage.data(UserMessageLogged)]
        assert entered[:2] == ["context", "task"]


@pytest.mark.spec("INBOX-04")
async def test_input_after_the_claim_waits_for_the_next_boundary(open_stage: Any) -> None:
    class Late:
        @hookimpl
        def agent_pre_step(self, step: PreStep) -> None:
            if step.turn == 1 and step.step == 1:
                step.agent.steer("late")  # type: ignore[union-attr]

    async with open_stage(Late(), answers=["a", "b"]) as stage:
        await stage.agent.run("Hi")
        assert [m.text for m in stage.agent.session.messages] == ["Hi", "a", "late", "b"]


@pytest.mark.spec("INBOX-04")
async def test_a_wake_whose_message_is_gone_opens_a_turn_without_a_step(open_stage: Any) -> None:
    def facts(harness: Any) -> None:
        harness.root.prompt.context("now", "sunny", order=1)

    async with open_stage(prepare=facts) as stage:
        message = stage.agent.followup("never mind")
        stage.agent.inbox.remove(message.id)
        await stage.agent.when_idle()
        assert stage.types == [INSERT, CLAIM, "turn/start", "turn/end"]
        assert (stage.ends, stage.model.requests) == (["completed"], [])


@pytest.mark.spec("INBOX-05")
async def test_cancel_with_nothing_running_only_clears_next_step_first(open_stage: Any) -> None:
    async with open_stage() as stage:
        stage.agent.inject("a")
        stage.agent.inbox.add("next-turn", UserMessage(id="b", content="b"))
        stage.agent.cancel()
        await stage.agent.when_idle()
        assert [(s.target, s.outcome) for s in stage.data(InboxSpliced)[2:]] == [
            ("next-step", "canceled"),
            ("next-turn", "canceled"),
        ]
        assert stage.ends == []


async def test_waiting_for_a_message_that_is_taken_out_is_an_error(open_stage: Any) -> None:
    gate = anyio.Event()

    class Wait:
        @hookimpl
        async def agent_pre_step(self, step: PreStep, call_next: Any) -> Any:
            await gate.wait()
            return await call_next()

    async with open_stage(Wait()) as stage:
        caught: list[Exception] = []

        async def second() -> None:
            with pytest.raises(InputCanceledError) as error:
                await stage.agent.run("second")
            caught.append(error.value)

        stage.agent.followup("first")
        async with anyio.create_task_group() as group:
            group.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            (waiting,) = stage.agent.inbox.next_turn
            assert stage.agent.inbox.remove(waiting.id)
        gate.set()
        await stage.agent.when_idle()
        assert len(caught) == 1
        assert stage.ends == ["completed"]


# --- failure points ---------------------------------------------------------------------------------------------------


class PreStepper:
    """Answers each pre-step with the next of its decisions; a callable is called, an exception raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    @hookimpl
    async def agent_pre_step(self, step: PreStep, call_next: Any) -> Any:
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            return await call_next()
        return answer(step) if callable(answer) else answer


def failing_section(harness: Any) -> None:
    harness.root.prompt.section("bad", "Hello {{nobody}}", order=1)


def failing_context(harness: Any) -> None:
    harness.root.prompt.context("bad", "Hello {{nobody}}", order=1)


def failing_provider(harness: Any) -> None:
    def provider(context: Any) -> str:
        raise OSError("no answer")

    harness.root.prompt.section("bad", provider, order=1)


BEFORE_STEP = [INSERT, "turn/start", CLAIM, "turn/end"]
POINTS: list[Any] = [
    pytest.param([], failing_provider, BEFORE_STEP, "error", "no answer", id="assembly fails"),
    pytest.param([], failing_context, BEFORE_STEP, "error", "nobody", id="context rendering fails"),
    pytest.param([PreStepper(Reject("not now"))], None, BEFORE_STEP, "blocked", "not now", id="listener rejects"),
    pytest.param([PreStepper(Enter(()))], None, BEFORE_STEP, "completed", "", id="the list is empty"),
    pytest.param([PreStepper(ValueError("oops"))], None, BEFORE_STEP, "error", "oops", id="listener raises"),
    pytest.param(
        [], failing_section, [*OPENING, "step/end", "turn/end"], "error", "nobody", id="section rendering fails"
    ),
]


@pytest.mark.spec("PRE-02")
@pytest.mark.parametrize(("plugins", "prepare", "types", "reason", "why"), POINTS)
async def test_each_failure_point_logs_exactly_this(
    open_stage: Any, plugins: Any, prepare: Any, types: list[str], reason: str, why: str
) -> None:
    async with open_stage(*(PreStepper(*each.answers) for each in plugins), prepare=prepare) as stage:
        result = await stage.agent.run("Hi")
        assert stage.types == types
        assert result.reason == reason
        told = result.detail or (result.failure.message if result.failure else "")
        assert why in told
        if result.failure:
            assert result.failure.code == "UNKNOWN"
        assert stage.model.requests == []


@pytest.mark.spec("PRE-02")
@pytest.mark.parametrize("first", [Reject("no"), ValueError("oops")])
async def test_later_input_stays_queued_and_the_next_wake_works(open_stage: Any, first: Any) -> None:
    async with open_stage(PreStepper(first)) as stage:
        stage.agent.followup("one")
        stage.agent.followup("two")
        await stage.agent.when_idle()
        assert [m.text for m in stage.agent.inbox.next_turn] == ["two"]
        assert len(stage.ends) == 1
        stage.agent.followup("three")
        await stage.agent.when_idle()
        assert stage.ends[1:] == ["completed", "completed"]
        assert [m.text for m in stage.agent.session.messages] == ["two", "fine", "three", "fine"]


@pytest.mark.spec("PRE-01")
async def test_what_the_listener_returns_is_what_enters(open_stage: Any) -> None:
    def rewritten(step: PreStep) -> Enter:
        (said,) = step.claimed
        return Enter((UserMessage(id="extra", content="extra"), UserMessage(id=said.id, content=said.text.upper())))

    async with open_stage(PreStepper(rewritten)) as stage:
        await stage.agent.run("hi")
        assert [m.text for m in stage.agent.session.messages] == ["extra", "HI", "fine"]


@pytest.mark.spec("PRE-01", "X-03")
async def test_a_proposed_step_says_whether_results_are_due(open_stage: Any) -> None:
    seen: list[tuple[int, bool, list[str]]] = []

    class Watch:
        @hookimpl
        def agent_pre_step(self, step: PreStep) -> None:
            seen.append((step.step, step.results_due, [each.text for each in step.messages]))

    async with open_stage(Watch(), Steering("more"), answers=[LOOK, "a", "b"], prepare=add_look) as stage:
        await stage.agent.run("hi")
    assert seen == [(1, False, ["hi"]), (2, True, []), (3, False, ["more"])]


@pytest.mark.spec("PRE-01", "UC-27")
async def test_the_context_snapshot_stands_after_what_was_claimed(open_stage: Any) -> None:
    seen: list[PreStep] = []

    class Watch:
        @hookimpl
        def agent_pre_step(self, step: PreStep) -> None:
            seen.append(step)

    def facts(harness: Any) -> None:
        harness.root.prompt.context("now", "sunny", order=1)

    async with open_stage(Watch(), prepare=facts) as stage:
        await stage.agent.run("hi")
        (step,) = seen
        assert step.messages == (*step.claimed, step.candidate)
        first, second, _ = stage.agent.session.messages
        assert first.text == "hi" and second.text.endswith("sunny") and "not by the user" in second.text


# --- requests that fail -----------------------------------------------------------------------------------------------

DOWN = FailureFacts(code="OVERLOADED", message="busy", status=503, request_id="r1", retryable=True)


@pytest.mark.spec("STEP-03")
async def test_an_unhandled_failure_ends_the_turn_with_the_adapter_s_facts(open_stage: Any) -> None:
    async with open_stage(answers=[DOWN, "ok"]) as stage:
        result = await stage.agent.run("hi")
        assert (result.reason, result.failure) == ("error", DOWN)
        assert stage.types[-2:] == ["step/end", "turn/end"]
        assert (await stage.agent.run("again")).text == "ok"


@pytest.mark.spec("STEP-03")
async def test_any_other_exception_is_told_as_its_chain(open_stage: Any) -> None:
    class Broken:
        def resolve(self, config: Any) -> Any:
            try:
                raise KeyError("inner")
            except KeyError as error:
                raise RuntimeError("outer") from error

    async with open_stage(prepare=lambda h: h.root.models.register("broken", Broken())) as stage:
        stage.agent.configure(provider="broken")
        result = await stage.agent.run("hi")
        assert result.failure is not None
        assert (result.failure.code, result.failure.message) == ("UNKNOWN", "RuntimeError: outer <- KeyError: 'inner'")


async def test_a_stream_without_an_end_is_a_failure(open_stage: Any) -> None:
    from harness_core.models import TextDelta

    async with open_stage(answers=[ScriptedAnswer(chunks=[TextDelta("half")])]) as stage:
        result = await stage.agent.run("hi")
        assert result.failure is not None
        assert (result.failure.code, result.failure.output_started, result.failure.retryable) == (
            "STREAM_ENDED",
            True,
            True,
        )


@pytest.mark.spec("UC-26")
async def test_a_failing_listener_is_named_in_the_log(open_stage: Any) -> None:
    async with open_stage(PreStepper(ValueError("oops"))) as stage:
        result = await stage.agent.run("hi")
        assert result.failure is not None
        assert "listener of agent_pre_step by plugin" in result.failure.message
        assert "test_turns.py" in result.failure.message


@pytest.mark.spec("LOG-03")
async def test_plugins_see_each_event_once_it_is_in_the_log_and_cannot_break_it(open_stage: Any) -> None:
    class Watch:
        def __init__(self) -> None:
            self.seen: list[int] = []

        @hookimpl
        def session_event(self, session: Any, event: Any) -> None:
            assert session.events[event.seq] is event
            self.seen.append(event.seq)
            raise RuntimeError("broken observer")

    watch = Watch()
    async with open_stage(watch) as stage:
        assert (await stage.agent.run("hi")).ok
        assert watch.seen == list(range(len(stage.agent.session.events)))


async def test_a_session_can_be_read_while_its_agent_works(open_stage: Any, tmp_path: Any) -> None:
    store = FileStore(tmp_path)
    async with open_stage(store=store) as stage:
        await stage.agent.run("hi")
        assert list(read_log(store, "a1").events) == list(stage.agent.session.events)
