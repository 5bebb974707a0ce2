"""How fast an answer is streamed: the adapter against bare httpx-sse with json.loads, in one interleaved run.

``python -m tests.bench.streaming`` prints medians and the ratio, and fails below half the bare speed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import httpx
from harness_openai import OPENAI, ChatCompletions, CompatibleEndpoint, OpenAICompatible
from httpx_sse import EventSource

from harness_core import Harness
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, Finish, ModelRequest, RequestHeader, TextDelta, UserMessage

EVENTS = 50_000
ROUNDS = 5
FLOOR = 0.5
"""The share of the bare speed that the adapter must reach."""


async def bare(url: str, events: int) -> int:
    """What nobody can do with less: httpx-sse and json.loads."""
    count = 0
    async with httpx.AsyncClient(timeout=None) as client:
        async with client.stream("POST", f"{url}/chat/completions", json={}) as response:
            async for event in EventSource(response).aiter_sse():
                if event.data != "[DONE]":
                    count += bool(json.loads(event.data)["choices"][0]["delta"].get("content"))
    return count


async def adapter(url: str, events: int) -> int:
    """The adapter: neutral chunks, limits of time, tool calls, failures."""
    made = ChatCompletions("bench", CompatibleEndpoint(base_url=url), OPENAI)
    header = RequestHeader(config=CallConfig(provider="bench", model="m"))
    request = ModelRequest(header=header, messages=[UserMessage(id="1", content="hi")], session_id="s")
    count = 0
    async with made.stream(request) as chunks:
        async for chunk in chunks:
            count += type(chunk) is TextDelta
    assert chunk == Finish("stop")
    await made.retire()
    return count


async def loop(url: str, events: int) -> int:
    """The whole loop: every chunk is an event of the session's log (in memory)."""
    settings = AgentSettings(config=CallConfig(provider="openai-compatible", model="m"))
    async with Harness(autoload=False, agents=settings) as harness:
        await harness.install(OpenAICompatible, config={"base_url": url})
        agent = await harness.create_agent("bench")
        await agent.run("hi")
        return sum(
            event.type == "assistant/chunk" and isinstance(event.data.chunk, TextDelta)
            for event in agent.session.events
        )


WAYS: dict[str, Callable[[str, int], Awaitable[int]]] = {"bare": bare, "adapter": adapter, "loop": loop}


def measure(events: int, rounds: int) -> dict[str, Any]:
    """Medians in microseconds for each event, and the ratios to bare."""
    command = [sys.executable, str(Path(__file__).with_name("_stream_server.py")), str(events)]
    taken: dict[str, list[float]] = {name: [] for name in WAYS}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        try:
            for _ in range(rounds):
                for name, way in WAYS.items():
                    begun = time.perf_counter()
                    count = anyio.run(way, url, events)
                    taken[name].append(time.perf_counter() - begun)
                    assert count == events, f"{name} saw {count} of {events} events"
        finally:
            server.terminate()
    medians = {name: median(times) / events * 1e6 for name, times in taken.items()}
    return {
        "events": events,
        "rounds": rounds,
        "us_per_event": {name: round(value, 2) for name, value in medians.items()},
        "speed_against_bare": {name: round(medians["bare"] / value, 3) for name, value in medians.items()},
        "floor": FLOOR,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--output", type=Path, default=None, help="also write the result here")
    options = parser.parse_args()
    result = measure(options.events, options.rounds)
    text = json.dumps(result, indent=2)
    print(text)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text + "\n")
    return 0 if result["speed_against_bare"]["adapter"] >= FLOOR else 1


if __name__ == "__main__":
    raise SystemExit(main())
