"""A process that answers every request with the same streamed chat completion; prints its port first."""

from __future__ import annotations

import asyncio
import json
import sys

PER_WRITE = 20
"""Events that are written at once: what a busy service's socket holds when a client comes back to it."""


def answer(events: int) -> list[bytes]:
    """The pieces of the answer, every event an HTTP chunk of its own."""
    pieces = [b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"]
    texts = [
        json.dumps(
            {
                "id": "chatcmpl-7f3a9c1e5b2d4f60",
                "object": "chat.completion.chunk",
                "created": 1_700_000_000,
                "model": "bench",
                "choices": [{"index": 0, "delta": {"content": f" word{number % 97}"}, "finish_reason": None}],
            }
        )
        for number in range(events)
    ]
    texts.append(json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    texts.append("[DONE]")
    chunks = [f"data: {text}\n\n".encode() for text in texts]
    framed = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    pieces += [b"".join(framed[at : at + PER_WRITE]) for at in range(0, len(framed), PER_WRITE)]
    return [*pieces, b"0\r\n\r\n"]


async def main(events: int) -> None:
    pieces = answer(events)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.partition(b":")[2]))
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
