"""Order, parallelism, policy and failures of tool calls."""

from __future__ import annotations

from typing import Any

import anyio
import attrs
import pytest

from harness_core.hooks import ToolCall, ToolOutcome, hookimpl
from harness_core.models import ScriptedAnswer, Source, ToolResultMessage, ToolSchema, UserMessage
from harness_core.session import ToolCallStarted, ToolResultLogged

pytestmark = pytest.mark.anyio

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


async def settled() -> None:
    """Everything that can go on has gone on; a task that waits for another's end can look blocked for one round."""
    for _ in range(3):
        await anyio.wait_all_tasks_blocked()


def results(stage: Any) -> list[tuple[str, str, str | None]]:
    return [(each.message.call_id, each.message.text, each.error) for each in stage.data(ToolResultLogged)]


def texts(stage: Any) -> list[str]:
    return [text for _, text, _ in results(stage)]


def ask(*calls: tuple[str, Any]) -> list[Any]:
    return [ScriptedAnswer(calls=calls), "done"]


def tool(name: str, handler: Any, parameters: Any = None, **options: Any) -> Any:
    def add(harness: Any) -> None:
        harness.root.tools.register(ToolSchema(name, "", parameters or {}), handler, **options)

    return add


def several(*adds: Any) -> Any:
    def add(harness: Any) -> None:
        for each in adds:
            each(harness)

    return add


@pytest.mark.spec("TOOLX-01")
@pytest.mark.parametrize(
    ("written", "seen"),
    [("", {}), ("  \n", {}), ("{}", {}), ('{"city": "Rome"}', {"city": "Rome"})],
)
async def test_arguments_are_parsed_and_no_text_means_none(open_stage: Any, written: str, seen: Any) -> None:
    got: list[Any] = []
    async with open_stage(
        answers=ask(("t", written)), prepare=tool("t", lambda call: got.append(call.arguments) or "ok")
    ) as stage:
        await stage.agent.run("hi")
        assert got == [seen]
        assert stage.data(ToolCallStarted)[0].arguments == written


@pytest.mark.spec("TOOLX-01")
@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ('{"city": "Ro', "not a valid JSON object"),
        ("[1]", "not a valid JSON object"),
        ('{"city": NaN}', "not a valid JSON object"),
        ("[" * 5000, "not a valid JSON object"),
        ("{}", "'city' is a required property"),
        ('{"city": 5}', "at city: 5 is not of type 'string'"),
        ('{"city": "R", "zip": 1}', "'zip' was unexpected"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_before_the_handler(
    open_stage: Any, written: str, complaint: str
) -> None:
    ran: list[Any] = []
    async with open_stage(answers=ask(("t", written)), prepare=tool("t", ran.append, CITY)) as stage:
        assert (await stage.agent.run("hi")).text == "done"
        ((_, text, error),) = results(stage)
        assert complaint in text and error == "INVALID_ARGUMENTS"
        assert ran == []


@pytest.mark.spec("TOOLX-01")
async def test_a_listener_sees_unparsable_arguments_as_text(open_stage: Any) -> None:
    class Repair:
        @hookimpl
        async def tool_call(self, call: ToolCall, call_next: Any) -> ToolOutcome:
            assert call.arguments == '{"city": '
            outcome: ToolOutcome = await call_next(call.with_arguments(city="Rome"))
            return outcome

    async with open_stage(
        Repair(), answers=ask(("t", '{"city": ')), prepare=tool("t", lambda c: c.arguments["city"], CITY)
    ) as stage:
        await stage.agent.run("hi")
        assert texts(stage) == ["Rome"]


class Gate:
    """Parallel-safe calls that finish in the order that a test opens them."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.highest = 0
        self.open: dict[str, anyio.Event] = {}

    async def handler(self, call: ToolCall) -> str:
        name = call.arguments["n"]
        self.running.append(name)
        self.highest = max(self.highest, len(self.running))
        await self.open.setdefault(name, anyio.Event()).wait()
        self.running.remove(name)
        return f"result {name}"

    def let(self, name: str) -> None:
        self.open.setdefault(name, anyio.Event()).set()


def numbered(name: str, count: int) -> list[tuple[str, Any]]:
    return [(name, {"n": f"{name}{number}"}) for number in range(count)]


@pytest.mark.spec("TOOLX-02")
async def test_parallel_calls_run_together_and_their_results_stay_in_order(open_stage: Any) -> None:
    gate = Gate()
    async with open_stage(answers=ask(*numbered("p", 3)), prepare=tool("p", gate.handler, parallel_safe=True)) as stage:
        stage.agent.followup("hi")
        await settled()
        assert gate.running == ["p0", "p1", "p2"]
        gate.let("p2")
        gate.let("p1")
        await settled()
        assert results(stage) == []
        gate.let("p0")
        await stage.agent.when_idle()
        assert texts(stage) == ["result p0", "result p1", "result p2"]
        assert [each.call_id for each in stage.data(ToolCallStarted)] == ["call-1-1", "call-1-2", "call-1-3"]


@pytest.mark.spec("TOOLX-02")
async def test_the_pool_is_bounded(open_stage: Any) -> None:
    gate = Gate()
    for number in range(25):
        gate.let(f"p{number}")
    async with open_stage(
        answers=ask(*numbered("p", 25)), prepare=tool("p", gate.handler, parallel_safe=True)
    ) as stage:
        await stage.agent.run("hi")
        assert len(texts(stage)) == 25
    held = Gate()
    async with open_stage(
        answers=ask(*numbered("p", 25)), prepare=tool("p", held.handler, parallel_safe=True)
    ) as stage:
        stage.agent.followup("hi")
        await settled()
        assert len(held.running) == 10
        for number in range(25):
            held.let(f"p{number}")
        await stage.agent.when_idle()
        assert texts(stage) == [f"result p{number}" for number in range(25)]


@pytest.mark.spec("TOOLX-02")
async def test_an_exclusive_call_is_a_barrier(open_stage: Any) -> None:
    gate = Gate()
    calls = [*numbered("p", 2), ("x", {"n": "x0"}), ("p", {"n": "p2"})]
    tools = several(tool("p", gate.handler, parallel_safe=True), tool("x", gate.handler))
    async with open_stage(answers=ask(*calls), prepare=tools) as stage:
        stage.agent.followup("hi")
        await settled()
        assert gate.running == ["p0", "p1"]
        gate.let("p0")
        await settled()
        assert gate.running == ["p1"]
        gate.let("p1")
        await settled()
        assert gate.running == ["x0"]
        gate.let("x0")
        await settled()
        assert gate.running == ["p2"]
        gate.let("p2")
        await stage.agent.when_idle()
        assert texts(stage) == ["result p0", "result p1", "result x0", "result p2"]


@pytest.mark.spec("TOOLX-02")
async def test_parallel_safety_is_asked_again_just_before_the_start(open_stage: Any) -> None:
    gate = Gate()
    safe = {"p0": True, "p1": True, "p2": True}

    class Policy:
        @hookimpl
        def tool_call(self, call: ToolCall) -> None:
            if call.arguments["n"] == "p1":
                safe["p2"] = False

    prepare = tool("p", gate.handler, parallel_safe=lambda call: safe[call.arguments["n"]])
    async with open_stage(Policy(), answers=ask(*numbered("p", 3)), prepare=prepare) as stage:
        stage.agent.followup("hi")
        await settled()
        assert gate.running == ["p0", "p1"]
        for name in safe:
            gate.let(name)
        await stage.agent.when_idle()


@pytest.mark.spec("TOOLX-02")
async def test_policy_runs_in_the_model_s_order_even_where_it_waits(open_stage: Any) -> None:
    gate, asked = Gate(), []
    answered = anyio.Event()

    class Policy:
        @hookimpl
        async def tool_call(self, call: ToolCall, call_next: Any) -> Any:
            asked.append(call.arguments["n"])
            if call.arguments["n"] == "p0":
                await answered.wait()
            if call.arguments["n"] == "p1":
                return ToolOutcome(content="denied", error="DENIED")
            return await call_next()

    async with open_stage(
        Policy(), answers=ask(*numbered("p", 3)), prepare=tool("p", gate.handler, parallel_safe=True)
    ) as stage:
        stage.agent.followup("hi")
        await settled()
        assert (asked, gate.running, stage.data(ToolCallStarted)) == (["p0"], [], [])
        answered.set()
        await settled()
        assert (asked, gate.running) == (["p0", "p1", "p2"], ["p0", "p2"])
        gate.let("p2")
        gate.let("p0")
        await stage.agent.when_idle()
        assert [error for _, _, error in results(stage)] == [None, "DENIED", None]


@pytest.mark.spec("TOOLX-03")
async def test_extra_messages_go_to_next_step_after_all_results(open_stage: Any) -> None:
    def handler(call: ToolCall) -> ToolOutcome:
        name = call.arguments["n"]
        extra = UserMessage(id=f"extra {name}", content=f"about {name}", source=Source("plugin", plugin="t"))
        return ToolOutcome(content=name, messages=[extra])

    async with open_stage(answers=ask(*numbered("p", 2)), prepare=tool("p", handler, parallel_safe=True)) as stage:
        await stage.agent.run("hi")
        assert [m.text for m in stage.agent.session.messages] == ["hi", "", "p0", "p1", "about p0", "about p1", "done"]


@pytest.mark.spec("TOOLX-05")
async def test_a_denied_an_unknown_and_a_hidden_tool_give_error_results(open_stage: Any) -> None:
    class Deny:
        @hookimpl
        def tool_call(self, call: ToolCall) -> ToolOutcome | None:
            return ToolOutcome(content="Not allowed here.", error="DENIED") if call.name == "denied" else None

        @hookimpl
        def system_prompt_assemble(self, assembly: Any) -> None:
            assembly.tools[:] = [each for each in assembly.tools if each.name != "hidden"]

    ran: list[Any] = []
    tools = several(*(tool(name, ran.append) for name in ("denied", "hidden")))
    async with open_stage(Deny(), answers=ask(("denied", {}), ("hidden", {}), ("unknown", {})), prepare=tools) as stage:
        await stage.agent.run("hi")
        assert ran == []
        denied, hidden, unknown = results(stage)
        assert denied[1:] == ("Not allowed here.", "DENIED")
        assert hidden[1:] == ("There is no tool called 'hidden'.", "UNKNOWN_TOOL")
        assert unknown[1:] == ("There is no tool called 'unknown'.", "UNKNOWN_TOOL")
        assert all(m.is_error for m in stage.agent.session.messages if isinstance(m, ToolResultMessage))


@pytest.mark.spec("TOOLX-05")
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_handler_s_exception_is_an_error_result_without_traceback_or_locals(
    open_stage: Any, asynchronous: bool
) -> None:
    def fail() -> None:
        secret = "hunter2"
        raise FileNotFoundError(2, f"No such file of {len(secret)}", "x.txt")

    async def handler(call: ToolCall) -> str:
        fail()
        return ""

    async with open_stage(
        answers=ask(("t", {})), prepare=tool("t", handler if asynchronous else lambda call: fail())
    ) as stage:
        assert (await stage.agent.run("hi")).text == "done"
        ((_, text, error),) = results(stage)
        assert (text, error) == ("FileNotFoundError: [Errno 2] No such file of 7: 'x.txt'", "TOOL_FAILED")


async def test_a_handler_that_returns_something_else_is_told_so(open_stage: Any) -> None:
    async with open_stage(answers=ask(("t", {})), prepare=tool("t", lambda call: 42)) as stage:
        await stage.agent.run("hi")
        assert texts(stage) == ["TypeError: the handler returned a int, not a str or ToolOutcome"]


@pytest.mark.spec("TOOLX-06")
async def test_the_result_is_under_the_model_s_id_whatever_a_listener_does(open_stage: Any) -> None:
    class Redirect:
        @hookimpl
        async def tool_call(self, call: ToolCall, call_next: Any) -> Any:
            outcome = await call_next(attrs.evolve(call, id="other", name="b"))
            return attrs.evolve(outcome, content=outcome.text + "!", meta={"was": call.name})

    tools = several(tool("a", lambda call: "a"), tool("b", lambda call: "b"))
    async with open_stage(Redirect(), answers=ask(("a", {})), prepare=tools) as stage:
        await stage.agent.run("hi")
        (logged,) = stage.data(ToolResultLogged)
        assert (logged.message.call_id, logged.message.name, logged.message.text) == ("call-1-1", "a", "b!")
        assert logged.meta == {"was": "a"}


async def test_a_listener_that_raises_ends_the_turn_and_leaves_no_call_without_a_result(open_stage: Any) -> None:
    class Broken:
        @hookimpl
        def tool_call(self, call: ToolCall) -> None:
            if call.arguments["n"] == "p1":
                raise OSError("policy is unreadable")

    ran: list[str] = []
    prepare = tool("p", lambda call: ran.append(call.arguments["n"]) or "ok", parallel_safe=True)
    for safe in (True, False):
        ran.clear()
        prepare = tool("p", lambda call: ran.append(call.arguments["n"]) or "ok", parallel_safe=safe)
        async with open_stage(Broken(), answers=ask(*numbered("p", 3)), prepare=prepare) as stage:
            result = await stage.agent.run("hi")
            assert result.failure is not None and "policy is unreadable" in result.failure.message
            assert ran == ["p0"]
            assert [error for _, _, error in results(stage)] == [
                None,
                "ABORTED_BEFORE_DISPATCH",
                "ABORTED_BEFORE_DISPATCH",
            ]
            assert [each.call_id for each in stage.data(ToolCallStarted)] == ["call-1-1", "call-1-2", "call-1-3"]


async def test_a_handler_may_be_registered_apart_from_its_schema(open_stage: Any) -> None:
    def apart(harness: Any) -> None:
        harness.root.prompt.tools(lambda context: [ToolSchema("t", "", CITY)])
        harness.root.tools.handle("t", lambda call: f"in {call.arguments['city']}")

    async with open_stage(answers=ask(("t", {"city": "Rome"}), ("t", {})), prepare=apart) as stage:
        await stage.agent.run("hi")
        first, second = results(stage)
        assert first[1] == "in Rome" and second[2] == "INVALID_ARGUMENTS"


async def test_a_long_result_is_cut_with_a_notice(open_stage: Any) -> None:
    async with open_stage(answers=ask(("t", {})), prepare=tool("t", lambda call: "x" * 900), tool_result=100) as stage:
        await stage.agent.run("hi")
        assert texts(stage) == ["x" * 100 + "\n[Cut here: 100 of 900 characters are shown.]"]


async def test_text_that_utf_8_cannot_carry_is_mended(open_stage: Any) -> None:
    async with open_stage(answers=ask(("t", {})), prepare=tool("t", lambda call: "a\udcffb \U0001f600")) as stage:
        assert (await stage.agent.run("hi")).ok
        assert texts(stage) == ["a\ufffdb \U0001f600"]


async def test_a_schema_cannot_make_anybody_fetch_something(open_stage: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}
    async with open_stage(answers=ask(("t", {"a": 1})), prepare=tool("t", lambda call: "ran", schema)) as stage:
        await stage.agent.run("hi")
        ((_, text, error),) = results(stage)
        assert error == "TOOL_FAILED" and "Unresolvable" in text
