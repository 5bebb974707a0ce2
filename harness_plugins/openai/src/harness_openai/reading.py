"""The body of a response: as events, or as the beginning of whatever came instead of them.

Both leave nothing half-read behind: connections are fit for the next request, or closed, when they return.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress

import anyio
import httpx
from httpx_sse import EventSource

from harness_openai.connection import Abandonable

__all__ = ["beginning", "event_data", "is_event_stream"]

_DONE = "[DONE]"
_DRAIN_SECONDS = 0.25
"""How long the end of the body is waited for after the last event, so that the connection can be used again."""

_LONGEST = 65_536
"""Bytes that are read of a body that is no stream."""

_WHOLE_SECONDS = 10.0
"""How long such a body may take altogether."""


def is_event_stream(response: httpx.Response) -> bool:
    """Does the server say that events follow?"""
    kind = response.headers.get("content-type", "").partition(";")[0]
    return bool(kind.strip().lower() == "text/event-stream")


async def event_data(response: httpx.Response) -> AsyncGenerator[str, None]:
    """The data of each event up to the one that says that it was the last.

    Raises:
        httpx.HTTPError: the connection broke, or the next bytes did not come in time.
    """
    # Event streams are UTF-8, whatever the server says of them; httpx-sse compares the type as it is written.
    response.headers["content-type"] = "text/event-stream; charset=utf-8"
    events = EventSource(response).aiter_sse()
    try:
        async for event in events:
            data = event.data
            if data == _DONE:
                with suppress(httpx.HTTPError), anyio.move_on_after(_DRAIN_SECONDS):
                    async for _ in events:
                        pass
                return
            if data:
                yield data
    finally:
        _abandon(response)
        with suppress(httpx.HTTPError):
            async for _ in events:
                pass


async def beginning(response: httpx.Response) -> str:
    """The body's first part as text; whatever arrived, if the connection breaks."""
    parts: list[bytes] = []
    size = 0
    with suppress(httpx.HTTPError), anyio.move_on_after(_WHOLE_SECONDS):
        async for chunk in response.aiter_bytes():
            parts.append(chunk)
            size += len(chunk)
            if size >= _LONGEST:
                _abandon(response)
    return b"".join(parts)[:_LONGEST].decode("utf-8", "replace")


def _abandon(response: httpx.Response) -> None:
    if isinstance(response.stream, Abandonable):
        response.stream.abandon()
