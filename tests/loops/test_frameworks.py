"""One set of plugins in the loops of three frameworks and in the harness's own: the model is told the same in all.

The code that joins them is that of the pages in docs/how-to. No test sends anything: the models are scripted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness_core import (
    UNLISTED_TOOLS,
    Enter,
    Harness,
    PluginContext,
    PreStep,
    PromptSettings,
    Reject,
    Source,
    ToolCall,
    ToolOutcome,
    ToolSchema,
    UserMessage,
    hookimpl,
)
from tests.loops._told import ANSWERS, FRAMEWORKS, QUESTIONS, Framework, Told

pytestmark = pytest.mark.anyio

SYSTEM = "You plan trips.\n\nYou are in Rome, “ça va”."
PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    ("forecast", "The forecast for a city.", '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'),
    ("book", "Book a room.", "{}"),
]  # fmt: skip


class Trip:
    """A section with a variable, a context whose fact changes, and tools of which one changes it."""

    def __init__(self) -> None:
        self.sky = "sunny"
        self.calls: list[ToolCall] = []

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        ctx.prompt.section("trip:how", "You are in {{city}}, “ça va”.", order=20)
        ctx.prompt.variable("city", lambda context: "Rome")
        ctx.prompt.context("trip:sky", lambda context: f"The sky is {self.sky}.", order=50)
        ctx.tools.register(ToolSchema("book", "Book a room."), lambda call: "Booked.")
        ctx.tools.register(ToolSchema("forecast", "The forecast for a city.", PLACE), self.forecast)

    def forecast(self, call: ToolCall) -> ToolOutcome:
        self.calls.append(call)
        self.sky = "grey"
        assert isinstance(call.arguments, dict)
        reminder = UserMessage(id="r", content="Answer briefly.", source=Source("plugin", "reminder", "trip", {}))
        return ToolOutcome(content=f"Rain in {call.arguments['city']}.", messages=[reminder])


class Policy:
    """Corrects and denies calls, and greets in the first step of a conversation."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, bool]] = []

    @hookimpl
    async def tool_call(self, call: ToolCall, call_next: Callable[..., Awaitable[ToolOutcome]]) -> ToolOutcome:
        assert isinstance(call.arguments, dict)
        if call.arguments["city"] == "Atlantis":
            return ToolOutcome(content="There is no such city.", error="DENIED")
        return await call_next(call.with_arguments(city="Paris, France"))

    @hookimpl
    async def agent_pre_step(
        self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
    ) -> Enter | Reject:
        self.steps.append((step.turn, step.step, step.results_due))
        decision = await call_next()
        if step.turn > 1 or step.step > 1 or isinstance(decision, Reject):
            return decision
        greeting = UserMessage(id="g", content="Be kind.", source=Source("plugin", "greeting", "policy", {}))
        return Enter([greeting, *decision.messages])


class Refuses:
    """Refuses a step of the first turn."""

    def __init__(self, step: int) -> None:
        self.step = step

    @hookimpl
    def agent_pre_step(self, step: PreStep) -> Reject | None:
        return Reject("not today") if step.step == self.step else None


@pytest.fixture
def anyio_backend() -> str:
    """Two of the frameworks know asyncio only."""
    return "asyncio"


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Framework:
    found = FRAMEWORKS[request.param]
    if found.module is not None:
        pytest.importorskip(found.module, reason="requirements/loops.txt is installed for one Python only")
    return found


def opened(*plugins: Any) -> Harness:
    settings = PromptSettings("You plan trips.", identity=False, tool_order=["forecast", UNLISTED_TOOLS])
    return Harness(settings, plugins=plugins, autoload=False)


def snapshot(sky: str) -> tuple[str, str]:
    frame = "Current facts about the environment, given by the harness and not by the user. They replace every earlier list of this kind."
    return "user", f"{frame}\n\nThe sky is {sky}."


async def test_the_model_is_told_what_plugins_say_and_a_changed_fact_once(framework: Framework) -> None:
    trip, policy = Trip(), Policy()
    async with opened(trip, policy) as harness:
        talk, told = await framework.open(harness)
        assert [await talk.ask(question) for question in QUESTIONS] == ANSWERS

    first = [("user", "Be kind."), ("user", QUESTIONS[0]), snapshot("sunny")]
    second = [*first, ("assistant", ""), ("tool", "Rain in Paris, France."), ("user", "Answer briefly."), snapshot("grey")]  # fmt: skip
    third = [*second, ("assistant", ""), ("tool", "There is no such city.")]
    fourth = [*third, ("assistant", ANSWERS[0]), ("user", QUESTIONS[1])]
    assert told() == [Told(SYSTEM, TOOLS, messages) for messages in (first, second, third, fourth)]
    assert policy.steps == [(1, 1, False), (1, 2, True), (1, 3, True), (2, 1, False)]
    assert [(call.turn, call.step, call.arguments) for call in trip.calls] == [(1, 1, {"city": "Paris, France"})]


async def test_a_refused_question_reaches_no_model(framework: Framework) -> None:
    async with opened(Trip(), Refuses(1)) as harness:
        talk, told = await framework.open(harness)
        await talk.ask(QUESTIONS[0])
        assert told() == []


async def test_a_refused_step_within_a_run_ends_it(framework: Framework) -> None:
    async with opened(Trip(), Refuses(2)) as harness:
        talk, told = await framework.open(harness)
        try:
            await talk.ask(QUESTIONS[0])
        except PermissionError as error:
            assert str(error) == "not today"
        else:
            assert framework.module is None
        assert len(told()) == 1


async def test_tools_that_appear_during_a_run_are_offered_at_the_next_step(framework: Framework) -> None:
    class Grows(Trip):
        def forecast(self, call: ToolCall) -> ToolOutcome:
            if not self.calls:
                harness.root.tools.register(ToolSchema("cancel", "Cancel a room."), lambda call: "Cancelled.")
            return super().forecast(call)

    async with opened(Grows()) as harness:
        talk, told = await framework.open(harness)
        await talk.ask(QUESTIONS[0])
    names = [[name for name, _, _ in each.tools] for each in told()]
    assert names == [["forecast", "book"], *2 * [["forecast", "book", "cancel"]]]
