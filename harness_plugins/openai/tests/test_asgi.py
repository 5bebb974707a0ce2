"""Against an ordinary ASGI server in a thread of its own: what a service's framework makes of our requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from harness_core.models import (
    AssistantMessage,
    ChunkAssembler,
    Finish,
    ToolCallBlock,
    ToolResultMessage,
    ToolSchema,
    Usage,
)

pytestmark = pytest.mark.anyio


async def app(scope: Any, receive: Any, send: Any) -> None:
    """A service that answers with what it was asked, a character at a time."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    asked = json.loads(body)
    if scope["path"] != "/v1/chat/completions":
        return await _refuse(send, 404, "no such page")
    if asked["model"] != "echo":
        return await _refuse(send, 404, f"The model `{asked['model']}` does not exist.")
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
        }
    )

    async def event(value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        await send({"type": "http.response.body", "body": f"data: {text}\n\n".encode(), "more_body": True})

    last = asked["messages"][-1]
    if asked.get("tools") and last["role"] == "user":
        function = {"name": asked["tools"][0]["function"]["name"], "arguments": json.dumps({"q": last["content"]})}
        await event(
            {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c1", "function": function}]}}]}
        )
        await event({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    else:
        for letter in last["content"]:
            await event({"choices": [{"index": 0, "delta": {"content": letter}, "finish_reason": None}]})
        await event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    await event({"choices": [], "usage": {"prompt_tokens": len(asked["messages"]), "completion_tokens": 2}})
    await event("[DONE]")
    await send({"type": "http.response.body", "body": b""})
    return None


async def _refuse(send: Any, status: int, message: str) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps({"error": {"message": message}}).encode()})


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """The address of a running service."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", ws="none", lifespan="off", loop="asyncio")
    started = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            started.set()

    server = Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(20)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    server.should_exit = True
    thread.join(20)


async def answer(http: Any, service: str, *messages: Any, model: str = "echo", tools: Any = ()) -> ChunkAssembler:
    from harness_core.models import CallConfig

    adapter = http.adapter_for(service)
    assembler = ChunkAssembler()
    asked = http.request(*messages, tools=tools, system="Be brief.", config=CallConfig(provider="test", model=model))
    for chunk in await http.ask(adapter, asked):
        assembler.add(chunk)
    await adapter.retire()
    return assembler


async def test_text(http: Any, service: str) -> None:
    found = await answer(http, service, "grüße 😀")
    assert (found.message().text, found.finish) == ("grüße 😀", Finish("stop"))
    assert found.usage == Usage(input_tokens=2, output_tokens=2)


async def test_a_call_and_its_result(http: Any, service: str) -> None:
    tool = ToolSchema("look", "Look it up.", {"type": "object", "properties": {"q": {"type": "string"}}})
    first = await answer(http, service, "x", tools=[tool])
    assert first.message() == AssistantMessage(content=(ToolCallBlock("c1", "look", '{"q": "x"}'),))
    result = ToolResultMessage(call_id="c1", name="look", content="found")
    second = await answer(http, service, "x", first.message(), result, tools=[tool])
    assert second.message().text == "found"


async def test_an_unknown_model(http: Any, service: str) -> None:
    found = await answer(http, service, "x", model="none")
    assert found.finish is not None
    assert found.finish.failure is not None
    assert (found.finish.failure.code, found.finish.failure.status) == ("MODEL_NOT_FOUND", 404)
