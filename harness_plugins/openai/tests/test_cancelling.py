"""Cancelling a request closes its connection, as the server sees it."""

from __future__ import annotations

from statistics import median
from typing import Any

import anyio
import pytest

from harness_core.models import Chunk, Finish, TextDelta

pytestmark = [pytest.mark.anyio, pytest.mark.spec("CANCEL-02")]

BOUND = 0.1
"""Seconds. The median of several cancellations is held against it, because this machine may be busy during one."""

TIMES = 5


def hanging(http: Any, where: str) -> Any:
    """A play that hangs before the headers, before the first event, or in the middle of the answer."""
    pieces = {
        "before the headers": [],
        "before the first event": [http.head()],
        "in the middle": [http.head(), http.chunk(http.sse(http.delta(content="so"), done=False))],
        "in the middle of an event": [http.head(), http.chunk(b'data: {"choices"')],
        "after the finish reason": [http.head(), http.chunk(http.sse(http.delta("stop"), done=False))],
        "in the middle of a refusal": [http.head("500 Oops"), http.chunk(b"because")],
    }
    return http.Play(pieces=pieces[where], then="hang")


PLACES = [
    "before the headers",
    "before the first event",
    "in the middle",
    "in the middle of an event",
    "after the finish reason",
    "in the middle of a refusal",
]


@pytest.mark.parametrize("where", PLACES)
async def test_the_server_sees_the_connection_close_within_100_ms(http: Any, where: str) -> None:
    taken: list[float] = []
    for _ in range(TIMES):
        async with http.playing(hanging(http, where)) as server:
            adapter = http.adapter_for(server.url)
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(http.ask, adapter)
                    await server.hanging.wait()
                    await anyio.wait_all_tasks_blocked()
                    canceled_at = anyio.current_time()
                    scope.cancel()
            with anyio.fail_after(5):
                await server.gone.wait()
            assert server.gone_at is not None
            taken.append(server.gone_at - canceled_at)
            await adapter.retire()
    assert median(taken) < BOUND


async def test_cancelling_while_a_chunk_is_worked_on_closes_too(http: Any) -> None:
    """The task is cancelled outside of the adapter: the stream is left at a chunk, not at a wait of its own."""
    seen: list[Chunk] = []
    async with http.playing(hanging(http, "in the middle")) as server:
        adapter = http.adapter_for(server.url)
        with anyio.CancelScope() as scope:
            async with adapter.stream(http.request()) as chunks:
                async for chunk in chunks:
                    seen.append(chunk)
                    scope.cancel()
                    await anyio.sleep_forever()
        assert seen == [TextDelta("so")]
        with anyio.fail_after(5):
            await server.gone.wait()
        await adapter.retire()


async def test_cancelling_one_request_leaves_the_others_alone(http: Any) -> None:
    answers: list[list[Chunk]] = []

    async def collect(adapter: Any) -> None:
        answers.append(await http.ask(adapter))

    async with http.playing(hanging(http, "in the middle"), http.stream(http.sse(*http.hello))) as server:
        adapter = http.adapter_for(server.url)
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as scope:
                async with adapter.stream(http.request()) as chunks:
                    await anext(chunks)
                    tasks.start_soon(collect, adapter)
                    await anyio.wait_all_tasks_blocked()
                    scope.cancel()
                    await anext(chunks)
        await server.gone.wait()
        await adapter.retire()
    assert answers[0][-1] == Finish("stop")


async def test_cancelling_while_connecting(http: Any) -> None:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        adapter = http.adapter_for(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
        with anyio.move_on_after(0.05) as scope:
            await http.ask(adapter)
        assert scope.cancelled_caught
        await adapter.retire()
        for each in waiting:
            each.close()
