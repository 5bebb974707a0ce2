"""The steps of a conversation in somebody else's loop."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core import (
    Harness,
    PreStep,
    PromptSettings,
    Reject,
    Source,
    ToolCall,
    ToolOutcome,
    ToolSchema,
    UserMessage,
)
from harness_core.hooks import hookimpl
from harness_core.host import OwnLoop
from harness_core.session import Session, TurnEnd, TurnStart

pytestmark = pytest.mark.anyio


class Sky:
    def __init__(self) -> None:
        self.text = "sunny"
        self.steps: list[tuple[int, int, bool, str | None]] = []

    @hookimpl
    def harness_setup(self, ctx: Any) -> None:
        ctx.prompt.context("sky", lambda context: self.text, order=5)
        ctx.tools.register(ToolSchema("wait"), self.wait)

    def wait(self, call: ToolCall) -> ToolOutcome:
        self.text = "grey"
        more = UserMessage(id="m", content="It got late.", source=Source("plugin", "notice", "sky", {}))
        return ToolOutcome(content="waited", messages=[more])

    @hookimpl
    def agent_pre_step(self, step: PreStep) -> Reject | None:
        self.steps.append((step.turn, step.step, step.results_due, step.cwd))
        return Reject("enough") if step.turn == 3 else None


def texts(step: Any) -> list[str]:
    return [message.text.rpartition("\n")[2] for message in step.messages]


async def test_what_was_told_is_not_told_again() -> None:
    sky = Sky()
    async with Harness(PromptSettings(identity=False), plugins=[sky], autoload=False) as harness:
        loop = OwnLoop(harness, cwd="/here")
        assert texts(await loop.begin("hi")) == ["hi", "sunny"]
        assert texts(await loop.proceed()) == []
        assert (await loop.call_tool("wait")).text == "waited"
        assert texts(await loop.proceed()) == ["It got late.", "grey"]
        assert texts(await loop.begin("thanks")) == ["thanks"]
        assert sky.steps == [
            (1, 1, False, "/here"),
            (1, 2, True, "/here"),
            (1, 3, True, "/here"),
            (2, 1, False, "/here"),
        ]
        assert [message.text.rpartition("\n")[2] for message in loop.session.messages] == [
            *("hi", "sunny", "It got late.", "grey", "thanks")
        ]


async def test_a_refused_step_leaves_the_session_as_it_was() -> None:
    async with Harness(PromptSettings(identity=False), plugins=[Sky()], autoload=False) as harness:
        session = Session.create("mine", cwd="/")
        for turn in (1, 2):
            session.append(TurnStart(turn=turn))
            session.append(TurnEnd(turn=turn, reason="completed"))
        loop = OwnLoop(harness, session)
        step = await loop.begin("hi")
        assert (step.rejected, loop.turn, loop.number, len(session.messages)) == ("enough", 3, 1, 0)
        assert texts(await loop.begin("hi")) == ["hi", "sunny"]


async def test_a_scope_s_own_is_told_there_only() -> None:
    async with Harness(PromptSettings(identity=False), plugins=[Sky()], autoload=False) as harness:
        team = harness.scope("team")
        team.prompt.section("team", "Be brief.", order=5)
        assert (await OwnLoop(harness, scope=team).begin("hi")).system == "Be brief."
        assert (await OwnLoop(harness).begin("hi")).system == ""


async def test_there_is_no_step_before_the_first() -> None:
    async with Harness(autoload=False) as harness:
        with pytest.raises(RuntimeError, match="begin"):
            await OwnLoop(harness).call_tool("wait")
