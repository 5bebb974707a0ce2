"""Tool calls of a loop of one's own: the same policy and rules as in an agent's turn, and nothing recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import attrs
import pytest

from harness_core import Harness
from harness_core.agent import Limits
from harness_core.errors import JsonValueError
from harness_core.hooks import Reject, ToolCall, ToolOutcome, hookimpl
from harness_core.host import AgentSettings
from harness_core.models import ScriptedAnswer, ToolSchema, UserMessage
from harness_core.session import Session

pytestmark = pytest.mark.anyio

PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@attrs.define
class Seen:
    calls: list[ToolCall] = attrs.field(factory=list)


class Policy:
    """Denies Atlantis, and moves Paris to Rome."""

    @hookimpl
    async def tool_call(self, call: ToolCall, call_next: Callable[..., Awaitable[ToolOutcome]]) -> ToolOutcome:
        city = call.arguments.get("city") if isinstance(call.arguments, dict) else None
        if city == "Atlantis":
            return ToolOutcome(content="Not there.", error="DENIED")
        return await call_next(call.with_arguments(city="Rome") if city == "Paris" else call)


def forecasts(harness: Harness, seen: Seen) -> None:
    def forecast(call: ToolCall) -> ToolOutcome:
        seen.calls.append(call)
        assert isinstance(call.arguments, dict)
        return ToolOutcome(
            content=f"Sunny in {call.arguments['city']}.",
            messages=[UserMessage(id="more", content="Take a hat.")],
            meta={"source": "sky"},
        )

    def broken(call: ToolCall) -> str:
        raise ValueError("no sky")

    harness.root.tools.register(ToolSchema("forecast", "", PLACE), forecast)
    harness.root.tools.register(ToolSchema("broken"), broken)
    harness.root.tools.register(ToolSchema("long"), lambda call: "é" * 100)
    harness.root.prompt.tools(lambda context: [ToolSchema("told")])


async def test_a_call_goes_through_the_listeners_to_the_handler(open_stage: Any) -> None:
    seen = Seen()
    async with open_stage(Policy(), prepare=lambda harness: forecasts(harness, seen)) as stage:
        session = Session.create("mine", cwd="/mine")
        step = await stage.harness.prepare_step(session, ["hi"], turn=2, step=3)
        outcome = await step.call_tool("forecast", '{"city": "Paris"}', call_id="c1")
        assert (outcome.text, outcome.error) == ("Sunny in Rome.", None)
        assert ([message.text for message in outcome.messages], outcome.meta) == (["Take a hat."], {"source": "sky"})
        (call,) = seen.calls
        assert (call.id, call.turn, call.step, call.cwd) == ("c1", 2, 3, "/mine")
        assert (call.session, call.agent, call.schema) == (session, None, ToolSchema("forecast", "", PLACE))
        outcome = await step.call_tool("forecast", {"city": "Atlantis"})
        assert (outcome.text, outcome.error, len(seen.calls)) == ("Not there.", "DENIED", 1)
        assert len(session.events) == 0


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("forecast", '{"city": "Oslo"}', None),
        ("forecast", '{"city": 3}', "INVALID_ARGUMENTS"),
        ("forecast", "no JSON", "INVALID_ARGUMENTS"),
        ("forecast", "", "INVALID_ARGUMENTS"),
        ("broken", "{}", "TOOL_FAILED"),
        ("told", "{}", "UNKNOWN_TOOL"),
        ("absent", "{}", "UNKNOWN_TOOL"),
        ("long", "", None),
    ],
)
async def test_a_call_comes_to_what_it_comes_to_in_an_agent_s_turn(
    open_stage: Any, name: str, arguments: str, error: str | None
) -> None:
    asked = ScriptedAnswer(calls=[(name, arguments)])
    async with open_stage(answers=[asked], tool_result=50, prepare=lambda harness: forecasts(harness, Seen())) as stage:
        step = await stage.harness.prepare_step(None, ["hi"])
        outcome = await step.call_tool(name, arguments)
        await stage.agent.run("hi")
        (result,) = [event.data for event in stage.agent.session.events if event.type == "tool/result"]
        assert (outcome.content, outcome.error) == (result.message.content, error)
        assert result.error == error


async def test_only_what_the_step_offers_is_called(open_stage: Any) -> None:
    """TOOLX-05: whatever was registered since, or is hidden where the step belongs."""

    class Refuse:
        @hookimpl
        def agent_pre_step(self) -> Reject:
            return Reject("no")

    async with open_stage(prepare=lambda harness: forecasts(harness, Seen())) as stage:
        harness = stage.harness
        hidden = harness.root.child("team")
        hidden.tools.restrict(deny=["forecast"])
        steps = [await harness.prepare_step(hidden, ["hi"]), await harness.prepare_step(None, ["hi"])]
        harness.root.tools.register(ToolSchema("late"), lambda call: "late")
        await harness.install(Refuse())
        refused = await harness.prepare_step(None, ["hi"])
        assert refused.rejected == "no"
        outcomes = [
            await steps[0].call_tool("forecast", {"city": "Oslo"}),
            await steps[1].call_tool("late"),
            await refused.call_tool("forecast", {"city": "Oslo"}),
        ]
        assert [outcome.error for outcome in outcomes] == ["UNKNOWN_TOOL"] * 3


async def test_what_a_listener_raises_and_what_is_no_json_reaches_the_caller(open_stage: Any) -> None:
    class Fails:
        @hookimpl
        def tool_call(self, call: ToolCall) -> None:
            raise LookupError("policy is away")

    async with open_stage(prepare=lambda harness: forecasts(harness, Seen())) as stage:
        step = await stage.harness.prepare_step(None, ["hi"])
        with pytest.raises(JsonValueError):
            await step.call_tool("forecast", {"city": object()})
        await stage.harness.install(Fails())
        with pytest.raises(LookupError):
            await step.call_tool("forecast", {"city": "Oslo"})


async def test_calls_started_at_once_keep_their_order_and_leave_alone_what_must_be_alone() -> None:
    log: list[str] = []
    async with Harness(autoload=False) as harness:

        def tool(name: str, safe: bool) -> None:
            async def handler(call: ToolCall) -> str:
                log.append(f"+{name}")
                await anyio.wait_all_tasks_blocked()
                log.append(f"-{name}")
                return name

            harness.root.tools.register(ToolSchema(name), handler, parallel_safe=safe)

        for name in ("a", "b", "c", "d", "e"):
            tool(name, safe=name != "c")
        step = await harness.prepare_step(None, ["hi"])
        async with anyio.create_task_group() as group:
            for each in step.tools:
                group.start_soon(step.call_tool, each.name)
                await anyio.lowlevel.checkpoint()
        assert sorted(log[:2]) == ["+a", "+b"]
        assert sorted(log[2:4]) == ["-a", "-b"]
        assert log[4:6] == ["+c", "-c"]
        assert sorted(log[6:8]) == ["+d", "+e"]


async def test_a_call_that_is_cancelled_while_it_waits_holds_up_nobody() -> None:
    async with Harness(autoload=False) as harness:
        release = anyio.Event()

        async def slow(call: ToolCall) -> str:
            await release.wait()
            return "slow"

        harness.root.tools.register(ToolSchema("slow"), slow, parallel_safe=True)
        harness.root.tools.register(ToolSchema("alone"), lambda call: "alone")
        step = await harness.prepare_step(None, ["hi"])
        async with anyio.create_task_group() as group:
            group.start_soon(step.call_tool, "slow")
            await anyio.wait_all_tasks_blocked()
            with anyio.CancelScope() as waiting:
                group.start_soon(_cancel_when_blocked, waiting)
                await step.call_tool("alone")
            assert waiting.cancelled_caught
            release.set()
        with anyio.fail_after(5):
            assert (await step.call_tool("alone")).text == "alone"


async def _cancel_when_blocked(scope: anyio.CancelScope) -> None:
    await anyio.wait_all_tasks_blocked()
    scope.cancel()


async def test_the_limit_is_the_host_s() -> None:
    async with Harness(autoload=False, agents=AgentSettings(limits=Limits(tool_result=4))) as harness:
        harness.root.tools.register(ToolSchema("long"), lambda call: "abcdefgh")
        step = await harness.prepare_step(None, ["hi"])
        assert (await step.call_tool("long")).text == "abcd\n[Cut here: 4 of 8 characters are shown.]"
