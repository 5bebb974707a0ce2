"""Stopping a turn at every place where it can wait, and the end of an agent."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from harness_core.agent import AgentDisposedError, AgentError, AgentStatus
from harness_core.errors import HarnessError, InactiveOwnerError
from harness_core.hooks import PreStep, Retry, ToolCall, hookimpl
from harness_core.models import (
    FailureFacts,
    Finish,
    ReasoningDelta,
    ScriptedAnswer,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    ToolSchema,
    Usage,
    UsageReport,
)
from harness_core.session import (
    AssistantChunk,
    AssistantMessageLogged,
    FileStore,
    MemoryStore,
    Session,
    SessionExistsError,
    SessionLockedError,
    SessionNotFoundError,
    StoreError,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnd,
    list_sessions,
)

pytestmark = pytest.mark.anyio


async def settled() -> None:
    for _ in range(3):
        await anyio.wait_all_tasks_blocked()


async def for_ever(*_: Any) -> None:
    await anyio.sleep_forever()


class Blocking:
    """Waits for ever in the hook that it is told."""

    def __init__(self, hook: str, stubborn: bool = False) -> None:
        self.hook, self.stubborn = hook, stubborn
        self.swallowed = 0

    async def _maybe(self, hook: str) -> None:
        if hook == self.hook:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                if not self.stubborn:
                    raise
                self.swallowed += 1

    @hookimpl
    async def system_prompt_assemble(self, assembly: Any) -> None:
        await self._maybe("system_prompt_assemble")

    @hookimpl
    async def agent_pre_step(self, step: PreStep, call_next: Any) -> Any:
        await self._maybe("agent_pre_step")
        return await call_next()

    @hookimpl
    async def agent_request(self, config: Any) -> None:
        await self._maybe("agent_request")

    @hookimpl
    async def agent_request_error(self, failure: Any) -> Any:
        await self._maybe("agent_request_error")
        return Retry()

    @hookimpl
    async def tool_call(self, call: ToolCall, call_next: Any) -> Any:
        await self._maybe("tool_call")
        return await call_next()

    @hookimpl
    async def agent_turn_stopping(self, agent: Any) -> None:
        await self._maybe("agent_turn_stopping")


def look(handler: Any = lambda call: "seen", **options: Any) -> Any:
    return lambda harness: harness.root.tools.register(ToolSchema("look"), handler, **options)


BEFORE_STEP = ["agent/inbox/spliced", "turn/start", "agent/inbox/spliced", "turn/end"]
LOOK = ScriptedAnswer(calls=[("look", {})])
DOWN = FailureFacts(code="DOWN", message="down")


@pytest.mark.spec("PRE-03", "CANCEL-01")
@pytest.mark.parametrize("hook", ["system_prompt_assemble", "agent_pre_step"])
@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.parametrize("how", ["cancel", "aclose"])
async def test_stopping_while_a_listener_is_blocked_logs_the_end_and_nothing_else(
    open_stage: Any, hook: str, stubborn: bool, how: str
) -> None:
    plugin = Blocking(hook, stubborn)
    async with open_stage(plugin) as stage:
        stage.agent.followup("hi")
        await settled()
        if how == "cancel":
            stage.agent.cancel()
            await stage.agent.when_idle()
        else:
            await stage.agent.aclose()
        assert stage.types == BEFORE_STEP
        (end,) = stage.data(TurnEnd)
        assert (end.reason, end.cause) == ("aborted", "user" if how == "cancel" else "disposed")
        assert stage.model.requests == []
        assert plugin.swallowed == stubborn
        await settled()
        assert stage.types == BEFORE_STEP


@pytest.mark.spec("CANCEL-01")
@pytest.mark.parametrize("hook", ["agent_request", "agent_request_error", "tool_call", "agent_turn_stopping"])
@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_turn_can_be_stopped_in_every_hook(open_stage: Any, hook: str, stubborn: bool) -> None:
    answers = {"agent_request_error": [DOWN], "tool_call": [LOOK]}.get(hook, [])
    async with open_stage(Blocking(hook, stubborn), answers=answers, prepare=look()) as stage:
        stage.agent.followup("hi")
        await settled()
        asked = len(stage.model.requests)
        stage.agent.cancel("hook", "enough")
        await stage.agent.when_idle()
        (end,) = stage.data(TurnEnd)
        assert (end.reason, end.cause, end.detail) == ("aborted", "hook", "enough")
        assert len(stage.model.requests) == asked
        assert stage.agent.session.nesting.step == 0
        assert len(stage.data(ToolCallStarted)) == len(stage.data(ToolResultLogged)) == (hook == "tool_call")


@pytest.mark.spec("CANCEL-01")
async def test_the_first_cause_wins(open_stage: Any) -> None:
    async with open_stage(Blocking("agent_pre_step")) as stage:
        stage.agent.followup("hi")
        await settled()
        stage.agent.cancel("parent", "first")
        stage.agent.cancel("user", "second")
        await stage.agent.aclose()
        (end,) = stage.data(TurnEnd)
        assert (end.cause, end.detail) == ("parent", "first")


class Stream:
    """An adapter whose stream gives some chunks and then waits."""

    def __init__(self, *chunks: Any, stubborn: bool = False) -> None:
        self.chunks, self.stubborn, self.closed = chunks, stubborn, 0

    def resolve(self, config: Any) -> Any:
        from harness_core.models import ResolvedCall

        return ResolvedCall(config=config)

    def stream(self, request: Any) -> Any:
        from contextlib import asynccontextmanager

        @asynccontextmanager
        async def opened() -> Any:
            async def chunks() -> Any:
                for chunk in self.chunks:
                    yield chunk
                try:
                    await anyio.sleep_forever()
                except anyio.get_cancelled_exc_class():
                    if not self.stubborn:
                        raise
                yield Finish("aborted")

            try:
                yield chunks()
            finally:
                self.closed += 1

        return opened()


SEEN = [
    ReasoningDelta("hm"),
    TextDelta("Hel"),
    ToolCallStart(0, "c", "look"),
    ToolArgumentsDelta(0, "{}"),
    TextDelta("lo"),
    UsageReport(Usage(input_tokens=3)),
]


@pytest.mark.spec("CANCEL-02")
@pytest.mark.parametrize("stubborn", [False, True])
async def test_what_the_user_saw_stays_as_an_interrupted_message(open_stage: Any, stubborn: bool) -> None:
    adapter = Stream(*SEEN, stubborn=stubborn)
    async with open_stage(prepare=lambda h: h.root.models.register("s", adapter), provider="s") as stage:
        stage.agent.followup("hi")
        await settled()
        stage.agent.cancel()
        await stage.agent.when_idle()
        (logged,) = stage.data(AssistantMessageLogged)
        assert logged.interrupted and logged.message.text == "Hello"
        assert logged.message.tool_calls == () and logged.usage == Usage(input_tokens=3)
        chunks = [stage.agent.session.events[seq].data.chunk for seq in logged.chunks]
        assert chunks == [SEEN[0], SEEN[1], SEEN[4]]
        assert stage.types[-3:] == ["assistant/message", "step/end", "turn/end"]
        assert adapter.closed == 1
        assert [m.text for m in stage.agent.session.messages] == ["hi", "Hello"]


@pytest.mark.spec("CANCEL-02")
async def test_where_nothing_was_visible_there_is_no_message(open_stage: Any) -> None:
    adapter = Stream(ToolCallStart(0, "c", "look"))
    async with open_stage(prepare=lambda h: h.root.models.register("s", adapter), provider="s") as stage:
        stage.agent.followup("hi")
        await settled()
        stage.agent.cancel()
        await stage.agent.when_idle()
        assert stage.data(AssistantMessageLogged) == []
        assert len(stage.data(AssistantChunk)) == 1
        assert stage.types[-2:] == ["step/end", "turn/end"]


@pytest.mark.spec("STEP-02")
async def test_cancelling_wins_over_a_retry_and_its_delay(open_stage: Any) -> None:
    class Retrying:
        @hookimpl
        def agent_request_error(self, failure: Any) -> Retry:
            return Retry(delay=60)

    async with open_stage(Retrying(), answers=[DOWN], sleep=for_ever) as stage:
        stage.agent.followup("hi")
        await settled()
        assert stage.types[-1] == "request/retry"
        stage.agent.cancel()
        await stage.agent.when_idle()
        assert (stage.ends, len(stage.model.requests)) == (["aborted"], 1)


@pytest.mark.spec("TOOLX-04")
@pytest.mark.parametrize("safe", [False, True])
async def test_stopping_during_tools_awaits_the_started_and_never_starts_the_others(
    open_stage: Any, safe: bool
) -> None:
    cleaned: list[str] = []
    started: list[str] = []

    async def handler(call: ToolCall) -> str:
        name = call.arguments["n"]
        started.append(name)
        if name == "quick":
            return "quick result"
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0)
                cleaned.append(name)
            if name == "stubborn":
                return "finished anyway"
            raise
        return ""

    names = ["quick", "stubborn", "held", "barred"]
    calls = ScriptedAnswer(calls=[("barred" if n == "barred" else "look", {"n": n}) for n in names])

    def tools(harness: Any) -> None:
        look(handler, parallel_safe=safe)(harness)
        harness.root.tools.register(ToolSchema("barred"), handler)

    async with open_stage(answers=[calls], prepare=tools) as stage:
        stage.agent.followup("hi")
        await settled()
        stage.agent.cancel()
        await stage.agent.when_idle()
        found = {each.message.call_id[-1]: (each.message.text, each.error) for each in stage.data(ToolResultLogged)}
        assert found["1"] == ("quick result", None)
        assert found["2"] == ("finished anyway", None)
        assert found["3"][1] == ("ABORTED_WHILE_RUNNING" if safe else "ABORTED_BEFORE_DISPATCH")
        assert found["4"][1] == "ABORTED_BEFORE_DISPATCH"
        assert started == (["quick", "stubborn", "held"] if safe else ["quick", "stubborn"])
        assert set(cleaned) == set(started) - {"quick"}
        assert [each.call_id for each in stage.data(ToolCallStarted)] == [f"call-1-{n}" for n in range(1, 5)]
        assert [each.message.call_id for each in stage.data(ToolResultLogged)] == [f"call-1-{n}" for n in range(1, 5)]
        assert (stage.ends, stage.types[-2:]) == (["aborted"], ["step/end", "turn/end"])


@pytest.mark.spec("INBOX-04", "INBOX-05")
@pytest.mark.parametrize("keep", [False, True])
async def test_what_arrives_after_a_cancel_starts_the_next_turn(open_stage: Any, keep: bool) -> None:
    async with open_stage(Blocking("agent_turn_stopping")) as stage:
        stage.agent.followup("one")
        await settled()
        stage.agent.followup("two")
        stage.agent.cancel(keep_queue=keep)
        assert [m.text for m in stage.agent.inbox.next_turn] == (["two"] if keep else [])
        stage.agent.followup("three")
        await settled()
        assert stage.agent.turn == 2
        stage.agent.cancel(keep_queue=keep)
        await stage.agent.when_idle()
        said = [m.text for m in stage.agent.session.messages if m.text != "fine"]
        assert said == (["one", "two"] if keep else ["one", "three"])
        assert stage.ends == ["aborted", "aborted"]


async def test_an_observer_may_stop_the_turn_at_its_very_last_event(open_stage: Any) -> None:
    class Stop:
        @hookimpl
        def session_event(self, session: Any, event: Any) -> None:
            if event.type == "step/end":
                self.agent.cancel("hook")

    stop = Stop()
    async with open_stage(stop) as stage:
        stop.agent = stage.agent  # type: ignore[attr-defined]
        result = await stage.agent.run("hi")
        assert (result.reason, result.cause, result.text) == ("aborted", "hook", "fine")


async def test_cancelling_the_wait_for_a_turn_cancels_the_turn(open_stage: Any) -> None:
    async with open_stage(Blocking("agent_pre_step")) as stage:
        with anyio.move_on_after(0.01):
            await stage.agent.run("hi")
        await stage.agent.when_idle()
        assert stage.ends == ["aborted"]


async def test_cancelling_the_wait_for_a_queued_message_only_takes_it_out(open_stage: Any) -> None:
    async with open_stage(Blocking("agent_pre_step")) as stage:
        stage.agent.followup("one")
        await settled()
        with anyio.move_on_after(0.01):
            await stage.agent.run("two")
        assert stage.agent.inbox.next_turn == ()
        assert stage.agent.turn == 1 and stage.ends == []


# --- disposal ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("CANCEL-03")
async def test_disposal_returns_when_all_is_quiet_and_frees_the_id(open_stage: Any) -> None:
    order: list[str] = []

    async def handler(call: ToolCall) -> str:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                for _ in range(5):
                    await anyio.sleep(0)
            order.append("tool wound down")
            raise
        return ""

    class Watch:
        @hookimpl
        def agent_status(self, agent: Any, status: str) -> None:
            order.append(status)

    async with open_stage(Watch(), answers=[LOOK], prepare=look(handler)) as stage:
        agent, harness = stage.agent, stage.harness
        agent.scope.effects.callback(order.append, "scope undone")
        agent.followup("hi")
        await settled()
        async with anyio.create_task_group() as group:
            group.start_soon(agent.aclose)
            group.start_soon(agent.aclose)
            group.start_soon(agent.scope.aclose)
        assert order == ["running", "tool wound down", "idle", "disposed", "scope undone"]
        assert (agent.status, agent.session.closed, dict(harness.agents)) == (AgentStatus.DISPOSED, True, {})
        assert stage.data(TurnEnd)[-1].cause == "disposed"
        await agent.aclose()
        again = await harness.resume_agent("a1")
        assert again.session.repaired == ()
        assert (await again.run("hi")).number == 2


@pytest.mark.spec("CANCEL-03")
async def test_no_turn_starts_after_disposal_was_asked_for(open_stage: Any) -> None:
    async with open_stage(Blocking("agent_pre_step")) as stage:
        agent = stage.agent
        agent.followup("one")
        agent.followup("two")
        await settled()
        await agent.aclose()
        assert len(stage.ends) == 1
        for attempt in (agent.followup, agent.steer, agent.inject):
            with pytest.raises(AgentDisposedError):
                attempt("three")
        with pytest.raises(InactiveOwnerError):
            agent.scope.prompt.section("late", "x", order=1)


@pytest.mark.spec("CANCEL-03")
async def test_waiters_learn_of_the_disposal(open_stage: Any) -> None:
    async with open_stage(Blocking("agent_pre_step")) as stage:
        told: list[Any] = []

        async def wait(text: str) -> None:
            try:
                told.append((await stage.agent.run(text)).cause)
            except AgentDisposedError:
                told.append("gone")

        async with anyio.create_task_group() as group:
            group.start_soon(wait, "one")
            await settled()
            group.start_soon(wait, "two")
            await settled()
            await stage.agent.aclose()
        assert sorted(told) == ["disposed", "gone"]


@pytest.mark.spec("CANCEL-03")
@pytest.mark.parametrize("what", ["harness", "outer scope"])
async def test_closing_what_is_around_it_disposes_the_agent(open_stage: Any, what: str) -> None:
    async with open_stage(Blocking("agent_pre_step")) as stage:
        outer = stage.harness.root.child("team")
        agent = await stage.harness.create_agent("inner", scope=outer)
        agent.followup("hi")
        await settled()
        if what == "outer scope":
            await outer.aclose()
            assert "inner" not in stage.harness.agents
    assert agent.status is AgentStatus.DISPOSED
    assert agent.session.events[-1].data == TurnEnd(turn=1, reason="aborted", cause="disposed")


@pytest.mark.spec("CANCEL-03")
async def test_an_agent_may_ask_for_its_own_end_from_inside_a_turn(open_stage: Any) -> None:
    async def handler(call: ToolCall) -> str:
        await call.agent.aclose()  # type: ignore[union-attr]
        await anyio.sleep_forever()
        return ""

    async with open_stage(answers=[LOOK], prepare=look(handler)) as stage:
        agent = stage.agent
        agent.followup("hi")
        while "a1" in stage.harness.agents:
            await settled()
        assert (agent.status, agent.session.closed) == (AgentStatus.DISPOSED, True)
        assert stage.ends == ["aborted"]


async def test_waiting_for_oneself_is_refused(open_stage: Any) -> None:
    caught: list[str] = []

    async def handler(call: ToolCall) -> str:
        for attempt in (lambda: call.agent.run("x"), call.agent.when_idle):  # type: ignore[union-attr]
            with pytest.raises(AgentError, match="wait for itself"):
                await attempt()
            caught.append("refused")
        return "ok"

    async with open_stage(answers=[LOOK], prepare=look(handler)) as stage:
        assert (await stage.agent.run("hi")).ok
        assert len(caught) == 2


async def test_a_harness_that_is_cancelled_from_outside_leaves_a_whole_log(open_stage: Any, tmp_path: Any) -> None:
    store = FileStore(tmp_path)
    with anyio.CancelScope() as scope:
        async with open_stage(Blocking("agent_pre_step"), store=store) as stage:
            stage.agent.followup("hi")
            await settled()
            scope.cancel()
            await anyio.sleep_forever()
    resumed = Session.resume("a1", store=store)
    assert resumed.repaired == ()
    assert resumed.events[-1].data.reason == "aborted"  # type: ignore[union-attr]
    resumed.close()


@pytest.mark.spec("CANCEL-04")
@pytest.mark.parametrize("failing", ["raises", "cancelled", "disposes"])
@pytest.mark.parametrize("new", [True, False])
async def test_an_agent_that_cannot_be_set_up_leaves_nothing_and_frees_its_id(
    open_stage: Any, tmp_path: Any, failing: str, new: bool
) -> None:
    store = FileStore(tmp_path)
    undone: list[str] = []
    if not new:
        Session.create("b", cwd="/", store=store).close()

    async def setup(scope: Any) -> None:
        scope.prompt.section("mine", "Mine.", order=1)
        scope.effects.callback(undone.append, "undone")
        assert "b" not in harness.agents
        if failing == "raises":
            raise ValueError("no")
        if failing == "disposes":
            await scope.aclose()
            return
        await anyio.sleep_forever()

    async with open_stage(store=store) as stage:
        harness = stage.harness
        bring_up = harness.create_agent if new else harness.resume_agent
        if failing == "cancelled":
            with anyio.move_on_after(0.01) as scope:
                await bring_up("b", setup=setup)
            assert scope.cancelled_caught
        else:
            with pytest.raises((ValueError, InactiveOwnerError)):
                await bring_up("b", setup=setup)
        assert (undone, list(harness.agents)) == (["undone"], ["a1"])
        assert [summary.id for summary in list_sessions(store)].count("b") == (not new)
        agent = await bring_up("b")
        assert (await agent.run("hi")).ok


async def test_ids_are_given_once(open_stage: Any, tmp_path: Any) -> None:
    store = FileStore(tmp_path)
    async with open_stage(store=store) as stage:
        with pytest.raises(AgentError, match="'a1' already"):
            await stage.harness.create_agent("a1")
        Session.create("b", cwd="/", store=store).close()
        with pytest.raises(SessionExistsError):
            await stage.harness.create_agent("b")
        with pytest.raises(SessionNotFoundError):
            await stage.harness.resume_agent("c")
        holder = Session.resume("b", store=store)
        with pytest.raises(SessionLockedError):
            await stage.harness.resume_agent("b")
        holder.close()
        await stage.harness.resume_agent("b")
        assert list(stage.harness.agents) == ["a1", "b"]


async def test_agents_need_a_running_harness() -> None:
    from harness_core.host import Harness

    with pytest.raises(HarnessError, match="not running"):
        await Harness(autoload=False).create_agent("a")


# --- a store that fails -------------------------------------------------------------------------------------------------


class Failing(MemoryStore):
    """Cannot write events of the types in ``broken``."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()

    def create(self, session_id: str, lines: Any) -> Any:
        writer: Any = super().create(session_id, lines)
        plain = writer.append

        def append(line: bytes) -> None:
            if any(f'"type":"{kind}"'.encode() in line for kind in self.broken):
                raise StoreError("No space left on device.")
            plain(line)

        writer.append = append
        return writer


ALL = {
    "turn/start",
    "step/start",
    "user/message",
    "request/dispatch",
    "assistant/chunk",
    "assistant/message",
    "tool/call",
    "tool/result",
    "step/end",
    "turn/end",
}


@pytest.mark.parametrize("kind", sorted(ALL))
@pytest.mark.parametrize("only", [True, False])
async def test_a_store_that_fails_during_a_turn_ends_it_and_the_agent_goes_on_afterwards(
    open_stage: Any, kind: str, only: bool
) -> None:
    store = Failing()
    async with open_stage(store=store, answers=[LOOK, "done"], prepare=look()) as stage:

        class Break:
            def __call__(self, event: Any) -> None:
                if event.type == "agent/inbox/spliced":
                    store.broken = {kind} if only else ALL if event.seq > 3 or kind == "turn/start" else {kind}

        watching = stage.agent.session.observe(Break())
        try:
            result = await stage.agent.run("hi")
            assert result.reason in ("error", "completed")
            assert result.reason == "error" or kind in ("turn/end",)
        except (StoreError, AgentError):
            assert kind == "turn/start"
        watching.dispose()
        store.broken = set()
        stage.model.add("better")
        result = await stage.agent.run("again")
        assert result.ok
        session = stage.agent.session
        assert session.nesting.turn == 0
        calls = [call.id for m in session.messages for call in getattr(m, "tool_calls", ())]
        assert calls == [m.call_id for m in session.messages if hasattr(m, "call_id")]
