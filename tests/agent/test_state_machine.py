"""Anything in any order: after each step the log is whole, its requests rebuild, and live state equals its replay."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from itertools import count
from typing import Any

import anyio
import anyio.from_thread
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness_core.hooks import PreStep, Reject, Retry, hookimpl
from harness_core.host import AgentSettings, Harness
from harness_core.models import (
    AssistantMessage,
    CallConfig,
    FailureFacts,
    ScriptedAnswer,
    ScriptedModel,
    Source,
    ToolResultMessage,
    ToolSchema,
    UserMessage,
)
from harness_core.session import (
    HeaderWritten,
    MemoryStore,
    Nesting,
    SurfaceReplace,
    UserMessageLogged,
    read_log,
    rebuild_requests,
    replay_inbox,
    verify,
)
from harness_core.session.digest import MessageChain

DOWN = FailureFacts(code="DOWN", message="down", retryable=True)


class Chaos:
    """A plugin that does to the next step, request or call what the test says."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.retries = 0
        self.context = "first"
        self.section = "stable"
        self.held: anyio.Event | None = None

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.section("changing", lambda context: self.section, order=10)
        ctx.prompt.context("changing", lambda context: self.context, order=10)
        ctx.tools.register(ToolSchema("quick"), lambda call: "done", parallel_safe=True)
        ctx.tools.register(ToolSchema("slow"), self.slow)
        ctx.tools.register(ToolSchema("bad"), self.bad, parallel_safe=True)

    async def slow(self, call: Any) -> str:
        if self.held is not None:
            await self.held.wait()
        return "slow"

    def bad(self, call: Any) -> str:
        raise ValueError("bad tool")

    @hookimpl
    async def agent_pre_step(self, step: PreStep, call_next: Any) -> Any:
        what = self.steps.pop(0) if self.steps else ""
        if what == "reject":
            return Reject("no")
        if what == "raise":
            raise RuntimeError("listener is broken")
        if what == "wait" and self.held is not None:
            await self.held.wait()
        if what == "compact" and step.session is not None and len(step.session.surface.entries) > 1:
            compact(step.session)
        return await call_next()

    @hookimpl
    def agent_request_error(self, failure: Any) -> Retry | None:
        self.retries -= 1
        return Retry() if self.retries >= 0 else None


def compact(session: Any) -> None:
    """Replace all but the last entry; calls and results are kept together by taking everything before the last user message."""
    entries = list(session.surface.entries)
    whole = [e for e in entries if isinstance(session.surface.message(e), UserMessage)]
    if len(whole) < 2 or session.nesting.step:
        return
    shadowed = entries[: entries.index(whole[-1])]
    if not shadowed:
        return
    message = UserMessage(
        id=f"summary {shadowed[-1]}", content="Summary.", source=Source("plugin", plugin="compaction")
    )
    session.append(
        UserMessageLogged(message=message),
        SurfaceReplace(start=shadowed[0], end=shadowed[-1], sources=tuple(shadowed)),
    )


ANSWERS: dict[str, Any] = {
    "text": "answer",
    "nothing": ScriptedAnswer(),
    "tools": ScriptedAnswer(
        text="calling", calls=[("quick", {}), ("slow", {}), ("bad", ""), ("unknown", "{"), ("quick", {})]
    ),
    "cut": ScriptedAnswer(text="cut", calls=[("quick", {})], finish="max-tokens"),
    "down": DOWN,
    "half": ScriptedAnswer(text="half", failure=DOWN),
    "broken": ScriptedAnswer(chunks=[]),
}


class AgentMachine(RuleBasedStateMachine):
    """One agent, driven from outside of its event loop; every rule returns once the loop has nothing left to do."""

    backend = "asyncio"

    @initialize()
    def start(self) -> None:
        self.stack = ExitStack()
        logger = logging.getLogger("harness")
        self.stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)
        self.portal = self.stack.enter_context(anyio.from_thread.start_blocking_portal(self.backend))
        self.store = MemoryStore()
        self.clock, self.ids = count(1), count(1)
        self.chaos = Chaos()
        self.generation = 0
        self.closing: Any = None
        self.open(resume=False)

    def open(self, *, resume: bool) -> None:
        config = AgentSettings(
            store=self.store,
            config=CallConfig(provider="p", model="m"),
            clock=self.clock.__next__,
            new_id=lambda: f"m{next(self.ids)}",
            debug=True,
        )
        self.model = ScriptedModel(otherwise="fine")
        self.harness = Harness(plugins=[self.chaos], autoload=False, agents=config)
        self.context = self.portal.wrap_async_context_manager(self.harness)
        self.context.__enter__()
        self.harness.root.models.register("p", self.model)
        bring_up = self.harness.resume_agent if resume else self.harness.create_agent
        self.agent: Any = self.portal.call(bring_up, "a")
        self.first = len(self.agent.session.events)

    def settle(self) -> None:
        async def quiet() -> None:
            for _ in range(4):
                await anyio.wait_all_tasks_blocked()

        self.portal.call(quiet)

    def call(self, function: Any, *arguments: Any, **named: Any) -> None:
        async def run() -> None:
            function(*arguments, **named)

        self.portal.call(run)
        self.settle()

    @rule(text=st.sampled_from(["one", "two"]), times=st.integers(1, 2))
    def send(self, text: str, times: int) -> None:
        for _ in range(times):
            self.call(self.agent.followup, text)

    @rule()
    def steer(self) -> None:
        self.call(self.agent.steer, "steer")

    @rule()
    def inject(self) -> None:
        self.call(self.agent.inject, "inject")

    @rule(keep=st.booleans())
    def cancel(self, keep: bool) -> None:
        self.call(self.agent.cancel, keep_queue=keep)

    @rule(which=st.sampled_from(sorted(ANSWERS)))
    def script(self, which: str) -> None:
        self.model.add(ANSWERS[which])

    @rule(what=st.sampled_from(["reject", "raise", "wait", "compact", ""]))
    def plan_step(self, what: str) -> None:
        self.chaos.steps.append(what)

    @rule(number=st.integers(0, 2))
    def plan_retries(self, number: int) -> None:
        self.chaos.retries = number

    @rule(text=st.sampled_from(["", "sunny", "rain"]))
    def change_context(self, text: str) -> None:
        self.chaos.context = text

    @rule(text=st.sampled_from(["stable", "other", "{{unknown}}"]))
    def change_section(self, text: str) -> None:
        self.chaos.section = text

    @rule()
    def hold(self) -> None:
        if self.chaos.held is None:
            self.chaos.held = self.portal.call(_event)

    @precondition(lambda self: self.chaos.held is not None)
    @rule()
    def release(self) -> None:
        held, self.chaos.held = self.chaos.held, None
        self.call(held.set)  # type: ignore[union-attr]

    @rule()
    def take_out(self) -> None:
        waiting = (*self.agent.inbox.next_step, *self.agent.inbox.next_turn)
        if waiting:
            self.call(self.agent.inbox.remove, waiting[-1].id)

    @rule()
    def compact_between_turns(self) -> None:
        if self.agent.status.value == "idle":
            self.call(compact, self.agent.session)

    @rule(crash=st.booleans())
    def close_and_resume(self, crash: bool) -> None:
        """Dispose, or lose the process: what the store has is all that is left."""
        if crash:
            lines = list(self.store.read("a").lines)
        self.context.__exit__(None, None, None)
        if crash:
            self.store.delete("a")
            self.store.create("a", lines).close()
        self.chaos.held = None
        self.open(resume=True)
        assert self.agent.session.nesting.turn == 0

    @invariant()
    def the_log_is_whole(self) -> None:
        session = self.agent.session
        nesting = Nesting()
        for event in session.events:
            nesting.check(event.data)
            nesting.apply(event.data)
        assert [event.seq for event in session.events] == list(range(len(session.events)))
        if self.agent.status.value == "idle":
            assert (nesting.turn, nesting.step) == (0, 0)

    @invariant()
    def live_state_equals_what_the_file_says(self) -> None:
        session = self.agent.session
        stored = read_log(self.store, "a")
        assert list(stored.events) == list(session.events)
        assert list(stored.surface.messages) == list(session.messages)
        assert session.surface.chain.value == MessageChain(session.messages).value
        lists = replay_inbox(session.events)
        assert (lists.next_step, lists.next_turn) == (self.agent.inbox.next_step, self.agent.inbox.next_turn)

    @invariant()
    def requests_rebuild_and_headers_are_minimal(self) -> None:
        session = self.agent.session
        assert verify(session.info, session.events).ok
        rebuilt = [
            each.request for each in rebuild_requests(session.info, session.events) if each.event.seq >= self.first
        ]
        assert rebuilt[: len(self.model.requests)] == self.model.requests
        headers = [event.data for event in session.events if isinstance(event.data, HeaderWritten)]
        for earlier, later in zip(headers, headers[1:], strict=False):
            assert later.reason == "resume" or earlier.header != later.header
        assert [each.reason for each in headers[:1]] in ([], ["initial"])

    @invariant()
    def every_call_has_one_result_right_behind_it(self) -> None:
        messages = list(self.agent.session.messages)
        if self.agent.status.value != "idle":
            return
        for place, message in enumerate(messages):
            if isinstance(message, AssistantMessage) and message.tool_calls:
                ids = [call.id for call in message.tool_calls]
                behind = messages[place + 1 : place + 1 + len(ids)]
                assert [each.call_id for each in behind if isinstance(each, ToolResultMessage)] == ids

    def teardown(self) -> None:
        if hasattr(self, "context"):
            self.context.__exit__(None, None, None)
            self.stack.close()


async def _event() -> anyio.Event:
    return anyio.Event()


class TrioMachine(AgentMachine):
    backend = "trio"


_settings = settings(
    max_examples=int(os.environ.get("HARNESS_STATE_EXAMPLES", "25")),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestOnAsyncio = AgentMachine.TestCase
TestOnTrio = TrioMachine.TestCase
TestOnAsyncio.settings = TestOnTrio.settings = _settings
