"""The connections to one endpoint: opened when the first request needs them, kept between requests, closed at the end.

Owns time limits, the proxy and the certificates. Reads no event and knows no key.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx

from harness_openai.endpoint import Endpoint

__all__ = ["Connections", "Paced", "SilenceError"]

_KEPT_SECONDS = 30.0
"""An idle connection is kept this long: tools run between two requests, and a new TLS connection costs two round trips."""


class SilenceError(Exception):
    """The server sent nothing for too long; ``first``: nothing at all yet."""

    def __init__(self, seconds: float, *, first: bool) -> None:
        super().__init__(f"nothing arrived for {seconds:g} s")
        self.seconds = seconds
        self.first = first


class Paced(httpx.AsyncByteStream):
    """A response's bytes, with a limit on how long each of them may take to arrive."""

    def __init__(self, stream: Any, *, first: float, until_first: float, between: float) -> None:
        self._stream = stream
        self._first = first
        self._until_first = until_first
        self._between = between
        self._abandoned = False

    def abandon(self) -> None:
        """Read no further: whoever iterates next gets to the end at once, and the connection is closed."""
        self._abandoned = True

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        source = aiter(self._stream)
        first = True
        chunk = b""
        while not self._abandoned:
            with anyio.move_on_after(self._until_first if first else self._between) as waiting:
                try:
                    chunk = await anext(source)
                except StopAsyncIteration:
                    return
            if waiting.cancelled_caught:
                raise SilenceError(self._first if first else self._between, first=first)
            first = False
            yield chunk
        # Iterators that are dropped half-way would leave their clean-up to the garbage collector; cancelled ones do it
        # themselves, at once.
        with anyio.CancelScope(shield=True) as leaving:
            leaving.cancel()
            async for _ in source:
                pass

    async def aclose(self) -> None:
        await self._stream.aclose()


class Connections:
    """An httpx client that lives as long as somebody uses it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: httpx.AsyncClient | None = None
        self._users = 0
        self._retired = False

    @asynccontextmanager
    async def opened(self, url: str, body: bytes, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """Send a request; gives the response as soon as its headers are there, its body still to be read.

        Raises:
            SilenceError: no answer began in time.
            httpx.HTTPError: the request failed.
            OSError: the CA bundle cannot be read.
        """
        self._users += 1
        response: httpx.Response | None = None
        try:
            if self._client is None:
                self._client = self._made()
            response = await self._sent(self._client, url, body, headers)
            yield response
        finally:
            self._users -= 1
            with anyio.CancelScope(shield=True):
                if response is not None:
                    await response.aclose()
                await self._close_if_unused()

    async def retire(self) -> None:
        """Close as soon as nobody uses a connection any more; requests under way are not disturbed (HDR-06)."""
        self._retired = True
        with anyio.CancelScope(shield=True):
            await self._close_if_unused()

    async def _close_if_unused(self) -> None:
        if self._retired and not self._users and self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _sent(
        self, client: httpx.AsyncClient, url: str, body: bytes, headers: Mapping[str, str]
    ) -> httpx.Response:
        limit = self._endpoint.first_byte_timeout
        with anyio.CancelScope() as waiting:

            async def trace(name: str, _: Mapping[str, Any]) -> None:
                if name.endswith("send_request_headers.started"):  # the connection stands: now the server has to answer
                    waiting.deadline = anyio.current_time() + limit

            request = client.build_request("POST", url, content=body, headers=headers, extensions={"trace": trace})
            response = await client.send(request, stream=True)
            response.stream = Paced(
                response.stream,
                first=limit,
                until_first=max(waiting.deadline - anyio.current_time(), 0.0),
                between=self._endpoint.stream_timeout,
            )
            return response
        raise SilenceError(limit, first=True)

    def _made(self) -> httpx.AsyncClient:
        endpoint = self._endpoint
        verify: ssl.SSLContext | bool = True
        if endpoint.ca_bundle is not None:
            verify = ssl.create_default_context(cafile=str(Path(endpoint.ca_bundle).expanduser()))
        return httpx.AsyncClient(
            verify=verify,
            proxy=endpoint.proxy,
            # Reading has limits of its own, which tell the first byte from the later ones.
            timeout=httpx.Timeout(None, connect=endpoint.connect_timeout, pool=endpoint.connect_timeout),
            limits=httpx.Limits(max_connections=None, keepalive_expiry=_KEPT_SECONDS),
            follow_redirects=False,  # the key must not travel to where a server points
        )
