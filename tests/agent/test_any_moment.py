"""A turn stopped after any number of rounds of the event loop, and a process stopped by Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest

from harness_core.hooks import Retry, hookimpl
from harness_core.models import AssistantMessage, FailureFacts, ScriptedAnswer, ToolResultMessage, ToolSchema
from harness_core.session import FileStore, Session, read_log, verify

ROUNDS = 60


class Waiting:
    """Waits a little in every hook that may wait."""

    @hookimpl
    async def system_prompt_assemble(self, assembly: Any) -> None:
        await anyio.lowlevel.checkpoint()

    @hookimpl
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        decision = await call_next()
        await anyio.lowlevel.checkpoint()
        return decision

    @hookimpl
    async def agent_request_error(self, failure: Any) -> Retry:
        await anyio.lowlevel.checkpoint()
        return Retry()

    @hookimpl
    async def tool_call(self, call: Any, call_next: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return await call_next()


async def handler(call: Any) -> str:
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    return "seen"


def tools(harness: Any) -> None:
    harness.root.tools.register(ToolSchema("safe"), handler, parallel_safe=True)
    harness.root.tools.register(ToolSchema("alone"), handler)


@pytest.mark.anyio
@pytest.mark.spec("CANCEL-01", "PRE-03")
@pytest.mark.parametrize("how", ["cancel", "aclose"])
async def test_a_turn_can_be_stopped_at_any_moment(open_stage: Any, how: str) -> None:
    calls = ScriptedAnswer(text="on it", calls=[("safe", {}), ("safe", {}), ("alone", {})])
    down = FailureFacts(code="DOWN", message="down")
    reasons: list[str] = []
    for rounds in range(ROUNDS):
        async with open_stage(Waiting(), answers=[down, calls, "done"], prepare=tools) as stage:
            agent = stage.agent
            agent.followup("hi")
            for _ in range(rounds):
                await anyio.lowlevel.checkpoint()
            if how == "cancel":
                agent.cancel()
                await agent.when_idle()
            else:
                await agent.aclose()
            session = agent.session
            count, asked = len(session.events), len(stage.model.requests)
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            assert (len(session.events), len(stage.model.requests)) == (count, asked)
            assert (session.nesting.turn, session.nesting.step) == (0, 0)
            assert verify(session.info, session.events).ok
            messages = list(session.messages)
            for place, message in enumerate(messages):
                if isinstance(message, AssistantMessage) and message.tool_calls:
                    ids = [call.id for call in message.tool_calls]
                    behind = messages[place + 1 : place + 1 + len(ids)]
                    assert [each.call_id for each in behind if isinstance(each, ToolResultMessage)] == ids
            reasons += stage.ends
    assert set(reasons) == {"aborted", "completed"}
    assert reasons.count("aborted") > 10


PROGRAM = """
import sys, anyio
from harness_core.host import AgentSettings, Harness
from harness_core.models import CallConfig, ScriptedModel, ScriptedAnswer
from harness_core.session import FileStore

async def main():
    settings = AgentSettings(store=FileStore(sys.argv[1]), config=CallConfig(provider="p", model="m"))
    async with Harness(autoload=False, agents=settings) as harness:
        harness.root.models.register("p", ScriptedModel(ScriptedAnswer(text="some words that come slowly", delay=0.2)))
        agent = await harness.create_agent("a")
        agent.session.observe(lambda event: print(event.type, flush=True))
        await agent.run("hi")

anyio.run(main, backend=sys.argv[2])
"""


@pytest.mark.spec("CANCEL-01", "CANCEL-02")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_control_c_ends_the_turn_and_keeps_what_was_seen(tmp_path: Path, backend: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path), backend],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        if line.strip() == "assistant/chunk":
            process.send_signal(signal.SIGINT)
            break
    _, complaints = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in complaints
    types = [event.type for event in read_log(FileStore(tmp_path), "a").events]
    assert types[-3:] == ["assistant/message", "step/end", "turn/end"]
    session = Session.resume("a", store=FileStore(tmp_path))
    assert session.repaired == ()
    end = session.events[-1].data
    assert (end.reason, end.cause) == ("aborted", "user")  # type: ignore[union-attr]
    assert session.messages[-1].text.startswith("some")
    session.close()
