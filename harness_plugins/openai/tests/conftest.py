"""A server that plays exact bytes, adapters that talk to it, and words for requests and chunks."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.abc
import attrs
import pytest
from harness_openai import OPENAI, ChatCompletions, CompatibleEndpoint, Dialect

from harness_core.models import CallConfig, Chunk, ModelRequest, RequestHeader, ToolSchema, UserMessage

_LONGEST_PLAY = 30.0
"""Seconds after which a test that waits for something that never comes is ended."""


@attrs.frozen
class Received:
    """One request as it arrived."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value


@attrs.define(kw_only=True)
class Play:
    """What is sent for one request, piece by piece, and what happens to the connection then.

    ``then``: ``keep`` it for the next request, ``close`` it properly, ``reset`` it, or ``hang`` until the client goes.
    """

    pieces: Sequence[bytes] = ()
    then: str = "keep"


def head(status: str = "200 OK", *headers: str, kind: str = "text/event-stream", chunked: bool = True) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", *headers]
    lines += ["transfer-encoding: chunked"] if chunked else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def sse(*events: object, done: bool = True) -> bytes:
    """Events as a server writes them: JSON without spaces, one line each."""
    texts = [event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events]
    return "".join(f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])]).encode()


def stream(*pieces: bytes, ended: bool = True, kind: str = "text/event-stream") -> Play:
    """A proper answer whose body comes in these pieces."""
    end = [chunk(b"")] if ended else []
    return Play(pieces=[head(kind=kind), *(chunk(piece) for piece in pieces if piece), *end])


def refusal(status: str, body: str, *headers: str, kind: str = "application/json") -> Play:
    data = body.encode()
    return Play(pieces=[head(status, *headers, f"content-length: {len(data)}", kind=kind, chunked=False) + data])


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One event of a chat completion."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


HELLO = (delta(content="hel"), delta(content="lo"), delta("stop"), {"choices": [], "usage": {"prompt_tokens": 3}})


@attrs.define
class PlayedServer:
    """Plays one answer after another; keeps what it was asked and when clients went."""

    port: int
    plays: list[Play]
    greeting: bytes = b""
    received: list[Received] = attrs.field(factory=list)
    connections: int = 0
    hanging: anyio.Event = attrs.field(factory=anyio.Event)
    gone: anyio.Event = attrs.field(factory=anyio.Event)
    gone_at: float | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, stream: anyio.abc.ByteStream) -> None:
        self.connections += 1
        async with stream:
            try:
                if self.greeting:
                    await stream.send(self.greeting)
                    return
                while (request := await _read(stream)) is not None:
                    self.received.append(request)
                    play = self.plays.pop(0)
                    for piece in play.pieces:
                        await stream.send(piece)
                    if play.then != "keep":
                        await self._end(stream, play.then)
                        return
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                return

    async def _end(self, stream: anyio.abc.ByteStream, then: str) -> None:
        if then == "hang":
            self.hanging.set()
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await stream.receive()
            self.gone_at = anyio.current_time()
            self.gone.set()
        elif then == "reset":
            raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def _read(stream: anyio.abc.ByteStream) -> Received | None:
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            data += await stream.receive()
        except anyio.EndOfStream:
            return None
    top, _, body = data.partition(b"\r\n\r\n")
    line, *lines = top.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += await stream.receive()
    return Received(line, headers, body)


@asynccontextmanager
async def playing(
    *plays: Play, wrap: Callable[..., Any] | None = None, greeting: bytes = b""
) -> AsyncIterator[PlayedServer]:
    """A server on a free port.

    ``wrap`` turns the listener into another one, for TLS say; ``greeting`` is all that is said, and nothing heard.
    """
    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    server = PlayedServer(port, list(plays), greeting)
    with anyio.fail_after(_LONGEST_PLAY):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon((wrap(listener) if wrap else listener).serve, server.serve)
            try:
                yield server
            finally:
                tasks.cancel_scope.cancel()
    await listener.aclose()


def request(
    *messages: Any, tools: Sequence[ToolSchema] = (), system: str = "", config: CallConfig | None = None
) -> ModelRequest:
    """A request; texts stand for user messages."""
    filled = [UserMessage(id=f"m{n}", content=m) if isinstance(m, str) else m for n, m in enumerate(messages or ["hi"])]
    chosen = config if config is not None else CallConfig(provider="test", model="m1")
    header = RequestHeader(config=chosen, system=system, tools=tools)
    return ModelRequest(header=header, messages=filled, session_id="s1")


def adapter_for(
    url: str | None, dialect: Dialect = OPENAI, environ: dict[str, str] | None = None, **settings: Any
) -> ChatCompletions:
    endpoint = CompatibleEndpoint(base_url=url, **settings)
    return ChatCompletions("test", endpoint, dialect, environ=environ or {}, now=lambda: 1_700_000_000.0)


async def ask(adapter: ChatCompletions, asked: ModelRequest | None = None) -> list[Chunk]:
    """All chunks of the answer to one request."""
    async with adapter.stream(asked if asked is not None else request()) as chunks:
        return [each async for each in chunks]


async def answer_of(*plays: Play, **settings: Any) -> list[Chunk]:
    """What the adapter makes of the first play."""
    async with playing(*plays) as server:
        adapter = adapter_for(server.url, **settings)
        try:
            return await ask(adapter)
        finally:
            await adapter.retire()


@attrs.frozen
class Words:
    """What tests of this folder write with."""

    Play = Play
    adapter_for = staticmethod(adapter_for)
    answer_of = staticmethod(answer_of)
    ask = staticmethod(ask)
    chunk = staticmethod(chunk)
    delta = staticmethod(delta)
    head = staticmethod(head)
    playing = staticmethod(playing)
    refusal = staticmethod(refusal)
    request = staticmethod(request)
    sse = staticmethod(sse)
    stream = staticmethod(stream)
    hello: Iterable[dict[str, Any]] = HELLO


@pytest.fixture(scope="session")
def http() -> Words:
    return Words()
