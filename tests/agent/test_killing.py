"""Killed at random points of a tool turn, two hundred times: nothing acknowledged is lost, and the session goes on."""

from __future__ import annotations

import multiprocessing
import random
import runpy
from pathlib import Path
from typing import Any

import pytest

from harness_core.models import AssistantMessage, ToolResultMessage
from harness_core.session import FileStore, Session, read_log, verify

PROGRAM = Path(__file__).with_name("_killed.py")
ROUNDS = 200
EVENTS_OF_A_TURN = 40


def run_until_killed(context: Any, folder: Path, after: int) -> list[Any]:
    """Let the program log so many events, kill it, and give back all that it acknowledged."""
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=runpy.run_path, args=(str(PROGRAM), {"folder": str(folder), "acknowledge": theirs}, "__main__")
    )
    process.start()
    theirs.close()
    said = [ours.recv() for _ in range(after + 1)]
    process.kill()
    process.join()
    try:
        while True:
            said.append(ours.recv())
    except (EOFError, OSError):  # the last one may be half of one
        ours.close()
    process.close()
    return said


@pytest.mark.spec("LOG-03", "LOG-06", "LOG-07")
def test_a_killed_agent_loses_nothing_acknowledged_and_goes_on(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["anyio._backends._asyncio", "harness_core.host", "jsonschema"])
    dice = random.Random(20)
    store = FileStore(tmp_path)
    kept: list[Any] = []
    ends: set[str] = set()
    for _ in range(ROUNDS):
        began, *acknowledged = run_until_killed(context, tmp_path, dice.randrange(EVENTS_OF_A_TURN))
        before = list(read_log(store, "a").events)
        assert before[: len(kept)] == kept
        assert began >= len(kept)
        found = [(event.seq, event.type) for event in before]
        assert found[began : began + len(acknowledged)] == acknowledged
        session = Session.resume("a", store=store)
        ends.add(before[-1].type)
        assert list(session.events)[: len(before)] == before
        assert (session.nesting.turn, session.nesting.step) == (0, 0)
        every_call_has_its_result(list(session.messages))
        kept = list(session.events)
        session.close()
    contents = read_log(store, "a")
    assert verify(contents.info, contents.events).ok
    assert {"tool/call", "tool/result", "assistant/chunk", "request/dispatch"} <= ends
    assert any(event.type == "turn/end" and event.data.reason == "completed" for event in contents.events)  # type: ignore[union-attr]


def every_call_has_its_result(messages: list[Any]) -> None:
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            ids = [call.id for call in message.tool_calls]
            behind = messages[place + 1 : place + 1 + len(ids)]
            assert [each.call_id for each in behind if isinstance(each, ToolResultMessage)] == ids
