"""One step for a loop of one's own, and the model that answers from a script."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from harness_core.hooks import PreStep, Reject, hookimpl
from harness_core.models import FailureFacts, ScriptedAnswer, ToolSchema, UserMessage
from harness_core.session import APPEND, Session, UserMessageLogged

pytestmark = pytest.mark.anyio


def setting(harness: Any) -> None:
    harness.root.prompt.section("how", "Be brief.", order=5)
    harness.root.prompt.context("now", "sunny", order=5)
    harness.root.tools.register(ToolSchema("look"), lambda call: "seen")


async def test_a_prepared_step_is_what_an_agent_s_step_would_be_told(open_stage: Any) -> None:
    async with open_stage(prepare=setting) as stage:
        prepared = await stage.harness.prepare_step(None, ["hi"])
        await stage.agent.run("hi")
        (request,) = stage.model.requests
        assert (prepared.system, prepared.tools) == (request.header.system, request.header.tools)
        assert [m.text for m in prepared.messages] == [m.text for m in request.messages]
        assert [part["name"] for part in prepared.provenance["sections"]][-1] == "how"
        assert [part["name"] for part in prepared.provenance["tools"]] == ["look"]


async def test_with_a_session_a_snapshot_is_due_only_when_it_changed(open_stage: Any) -> None:
    async with open_stage(prepare=setting) as stage:
        session = Session.create("mine", cwd="/mine")
        first = await stage.harness.prepare_step(session, ["hi"])
        assert len(first.messages) == 2
        for message in first.messages:
            session.append(UserMessageLogged(message=message), APPEND)
        second = await stage.harness.prepare_step(session, ["again"], turn=2)
        assert [m.text for m in second.messages] == ["again"]
        assert len(session.events) == 2


async def test_it_records_nothing_and_asks_no_model(open_stage: Any) -> None:
    async with open_stage(prepare=setting) as stage:
        before = len(stage.agent.session.events)
        await stage.harness.prepare_step(stage.agent, [UserMessage(id="x", content="hi")])
        assert (len(stage.agent.session.events), stage.model.requests) == (before, [])


async def test_listeners_see_where_they_are_and_may_refuse(open_stage: Any) -> None:
    seen: list[tuple[Any, ...]] = []

    class Refuse:
        @hookimpl
        def agent_pre_step(self, step: PreStep) -> Reject:
            seen.append((step.turn, step.step, step.cwd, step.scope.name, step.session))
            return Reject("not here")

    async with open_stage(Refuse(), prepare=setting) as stage:
        scope = stage.harness.root.child("team")
        prepared = await stage.harness.prepare_step(scope, ["hi"], cwd="/there", turn=3, step=2)
        assert (prepared.rejected, prepared.system, prepared.messages) == ("not here", "", ())
        assert seen == [(3, 2, "/there", "team", None)]


async def test_a_script_gives_its_answers_in_order_and_then_says_that_it_is_used_up(open_stage: Any) -> None:
    answers = ["one", ScriptedAnswer(text="two", reasoning="hm"), lambda request: f"{len(request.messages)} messages"]
    async with open_stage(answers=answers, otherwise=None) as stage:
        said = [(await stage.agent.run("hi")).text for _ in range(3)]
        assert said == ["one", "two", "5 messages"]
        result = await stage.agent.run("hi")
        assert result.failure is not None and result.failure.code == "SCRIPT_USED_UP"
        assert "it had 3" in result.failure.message


async def test_a_script_may_fail_and_wait(open_stage: Any) -> None:
    from harness_core.models import ScriptedModel

    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await anyio.sleep(0)

    down = FailureFacts(code="DOWN", message="down")
    model = ScriptedModel(down, ScriptedAnswer(text="a b", delay=2), sleep=sleep)
    async with open_stage(prepare=lambda h: h.root.models.register("s", model), provider="s") as stage:
        assert (await stage.agent.run("hi")).failure == down
        assert (await stage.agent.run("hi")).text == "a b"
        assert slept == [2, 2, 2]


async def test_listeners_are_told_that_an_agent_s_step_is_only_looked_at(open_stage: Any) -> None:
    seen: list[bool] = []

    class Look:
        @hookimpl
        def agent_pre_step(self, step: PreStep) -> None:
            seen.append(step.preview)

    async with open_stage(Look(), prepare=setting) as stage:
        stage.agent.inject("later")
        waiting = stage.agent.inbox.next_step
        prepared = await stage.harness.prepare_step(stage.agent, ["hi"])
        assert [message.text for message in prepared.messages][0] == "hi"
        assert stage.agent.inbox.next_step == waiting
        await stage.harness.prepare_step(Session.create("mine", cwd="/mine"), ["hi"])
        await stage.harness.prepare_step(None, ["hi"])
        await stage.agent.run("hi")
        assert seen == [True, False, False, False]
