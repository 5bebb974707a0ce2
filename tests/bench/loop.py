"""What the loop and the log cost: steps at any length of history, appends, loading, verifying, headers, bodies.

``python -m tests.bench.loop`` runs all of it under pyperf; ``-o FILE`` keeps the values, ``--fast`` takes fewer.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pyperf

from harness_core import Harness
from harness_core.host import AgentSettings
from harness_core.models import (
    AssistantMessage,
    CallConfig,
    RequestHeader,
    TextDelta,
    ToolSchema,
    UserMessage,
    encoded_array,
    encoded_object,
)
from harness_core.session import (
    APPEND,
    AssistantChunk,
    AssistantMessageLogged,
    FileStore,
    HeaderWritten,
    PluginRecord,
    RequestDispatch,
    Session,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnStart,
    UserMessageLogged,
    read_log,
    verify,
)
from harness_core.session.header import due
from tests.bench._lean import LeanModel

SECTIONS = TOOLS = 50
HISTORIES = (10, 1_000, 10_000)
STEPS = 200
"""Steps of one measured turn: enough that its beginning and end do not count."""
MANY_TOOLS = MANY_MESSAGES = 1_000
LOG_EVENTS = 100_000


def schema(number: int) -> ToolSchema:
    properties = {"x": {"type": "integer", "description": "A number that says how many of them are wanted."}}
    return ToolSchema(
        f"tool-{number}",
        "Does something that is worth a line or two of description.",
        {"type": "object", "properties": properties},
    )


# --- steps --------------------------------------------------------------------------------------------------------------


async def steps(loops: int, history: int, folder: str) -> float:
    """Seconds of CPU for ``loops`` turns of `STEPS` steps; the log is on disk, without fsync.

    Nothing in such a turn waits, so CPU time is its whole cost, and a busy machine does not count.
    """
    settings = AgentSettings(store=FileStore(folder), durability="never", config=CallConfig(provider="lean", model="m"))
    async with Harness(autoload=False, agents=settings) as harness:
        model = LeanModel()
        harness.root.models.register("lean", model)
        for number in range(SECTIONS):
            harness.root.prompt.section(f"section {number}", f"Section {number} says what it says.", order=number)
        for number in range(TOOLS):
            harness.root.tools.register(schema(number), lambda call: "ok")
        harness.root.prompt.context("now", lambda context: "sunny", order=1)
        agent = await harness.create_agent("bench")
        for number in range(history):
            agent.session.append(UserMessageLogged(message=UserMessage(id=str(number), content="Hello. " * 10)), APPEND)
        model.calls = 3
        await agent.run("warm up")
        taken = 0.0
        for _ in range(loops):
            model.calls = STEPS - 1
            begun = time.process_time()
            result = await agent.run("go")
            taken += time.process_time() - begun
            assert result.ok
        return taken


def measured_steps(loops: int, history: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(steps, loops, history, folder)


# --- the log ------------------------------------------------------------------------------------------------------------


def appends(loops: int, sync: bool) -> float:
    """Seconds for so many events of 512 bytes, written through; with ``sync`` each also to the disk."""
    data = PluginRecord("plugin/bench/note", {"text": "x" * 440})
    with tempfile.TemporaryDirectory() as folder:
        session = Session.create("bench", cwd="/", store=FileStore(folder), durability="event" if sync else "never")
        begun = time.perf_counter()
        for _ in range(loops):
            session.append(data)
        taken = time.perf_counter() - begun
        session.close()
        return taken


def long_log(folder: str) -> FileStore:
    """A log of `LOG_EVENTS` events as turns leave them: twenty a step, two of them messages."""
    store = FileStore(folder)
    session = Session.create("bench", cwd="/", store=store, durability="never")
    header = RequestHeader(config=CallConfig(provider="p", model="m"), tools=[schema(n) for n in range(TOOLS)])
    session.append(HeaderWritten(header=header, reason="initial"))
    turn = 0
    while len(session.events) < LOG_EVENTS - 20:
        turn += 1
        session.append(TurnStart(turn=turn))
        session.append(StepStart(turn=turn, step=1))
        session.append(UserMessageLogged(message=UserMessage(id=str(turn), content="Please. " * 20)), APPEND)
        session.append(RequestDispatch(turn=turn, step=1, attempt=1, digest=session.request_digest()))
        for _ in range(13):
            session.append(AssistantChunk(turn=turn, step=1, chunk=TextDelta("some words of it ")))
        answer = AssistantMessage(content="some words of it " * 13)  # type: ignore[arg-type]
        session.append(AssistantMessageLogged(turn=turn, step=1, message=answer), APPEND)
        session.append(StepEnd(turn=turn, step=1))
        session.append(TurnEnd(turn=turn, reason="completed"))
    session.close()
    return store


def loading(loops: int, with_verify: bool) -> float:
    folder = Path(tempfile.mkdtemp())
    try:
        store = long_log(str(folder))
        taken = 0.0
        for _ in range(loops):
            begun = time.perf_counter()
            contents = read_log(store, "bench")
            if with_verify:
                begun = time.perf_counter()
                assert verify(contents.info, contents.events).ok
            taken += time.perf_counter() - begun
        return taken
    finally:
        shutil.rmtree(folder)


# --- headers and bodies ---------------------------------------------------------------------------------------------------


def unchanged_header(tools: int) -> Callable[[], object]:
    """The check before each request: a header made anew of the same tools, against the last one."""
    config = CallConfig(provider="p", model="m", temperature=0.5)
    schemas = [schema(number) for number in range(tools)]
    last = RequestHeader(config=config, system="x" * 10_000, tools=schemas)
    new = RequestHeader(config=config, system="x" * 10_000, tools=list(schemas))
    assert due(last, new, first_of_loop=False) is None
    return partial(due, last, new, first_of_loop=False)


def wire_message(message: UserMessage) -> str:
    return json.dumps({"role": "user", "content": message.text}, ensure_ascii=False, separators=(",", ":"))


def wire_tool(tool: ToolSchema) -> str:
    return f'{{"type":"function","function":{tool.canonical}}}'


def bodies() -> tuple[Callable[[], bytes], Callable[[], bytes]]:
    """The body of 1,000 tools and 1,000 messages: joined, and written by json."""
    messages = [UserMessage(id=str(number), content="Hello world. " * 15) for number in range(MANY_MESSAGES)]
    tools = [schema(number) for number in range(MANY_TOOLS)]

    def joined() -> bytes:
        return encoded_object(
            {"model": "m", "messages": encoded_array(messages, wire_message), "tools": encoded_array(tools, wire_tool)}
        )

    plain: dict[str, Any] = {
        "model": "m",
        "messages": [json.loads(wire_message(message)) for message in messages],
        "tools": [json.loads(wire_tool(tool)) for tool in tools],
    }

    def written() -> bytes:
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()

    assert joined() == written()
    return joined, written


def main() -> None:
    runner = pyperf.Runner(processes=5, values=3, warmups=1, program_args=("-m", "tests.bench.loop"))
    for history in HISTORIES:
        runner.bench_time_func(f"step_at_{history}_messages", measured_steps, history, inner_loops=STEPS)
    runner.bench_time_func("append_512_bytes", appends, False)
    runner.bench_time_func("append_512_bytes_fsync", appends, True)
    runner.bench_time_func("load_100000_events", loading, False)
    runner.bench_time_func("verify_100000_events", loading, True)
    runner.bench_func("unchanged_header_1000_tools", unchanged_header(MANY_TOOLS))
    joined, written = bodies()
    runner.bench_func("body_1000_tools_1000_messages", joined)
    runner.bench_func("body_1000_tools_1000_messages_json", written)


if __name__ == "__main__":
    main()
