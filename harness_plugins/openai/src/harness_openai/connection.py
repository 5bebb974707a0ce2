"""The connections to one endpoint: opened when the first request needs them, kept between requests, closed at the end.

Owns time limits, the proxy and the certificates. Reads no event and knows no key.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx

from harness_openai import codes
from harness_openai.endpoint import Endpoint

__all__ = ["Abandonable", "Connections", "SilenceError", "UnusableSettingError"]

_KEPT_SECONDS = 30.0
"""An idle connection is kept this long: tools run between two requests, and a new TLS connection costs two round trips."""


class SilenceError(Exception):
    """The server did not begin to answer in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"nothing arrived for {seconds:g} s")
        self.seconds = seconds


class UnusableSettingError(Exception):
    """A proxy or certificates that no client can be made with; ``code`` says which."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Abandonable(httpx.AsyncByteStream):
    """A response's bytes, which can be left half-way without leaving anything behind.

    Iterators that are dropped would leave their clean-up to the garbage collector; cancelled ones do it themselves, at
    once. So whoever wants no more calls `abandon` and goes on iterating: there is an end at once, for all iterators
    around this one as well.
    """

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream
        self._source = aiter(stream)
        self._next = self._source.__anext__

    def abandon(self) -> None:
        self._next = self._leave

    def __aiter__(self) -> Abandonable:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        return self._next()

    async def _leave(self) -> bytes:
        with anyio.CancelScope(shield=True) as leaving:
            leaving.cancel()
            async for _ in self._source:
                pass
        raise StopAsyncIteration

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
            UnusableSettingError: proxy or certificates cannot be used.
            httpx.HTTPError: the request failed.
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
        endpoint = self._endpoint
        limit = endpoint.first_byte_timeout
        # The transport looks a limit up when it begins to need it: headers are read under one, the body under another.
        limits = {"connect": endpoint.connect_timeout, "pool": endpoint.connect_timeout, "read": None, "write": None}
        with anyio.CancelScope() as waiting:

            async def trace(name: str, _: Mapping[str, Any]) -> None:
                if name.endswith("send_request_headers.started"):  # the connection stands: now the server has to answer
                    waiting.deadline = anyio.current_time() + limit

            extensions = {"trace": trace, "timeout": limits}
            request = client.build_request("POST", url, content=body, headers=headers, extensions=extensions)
            response = await client.send(request, stream=True)
            limits["read"] = endpoint.stream_timeout
            assert isinstance(response.stream, httpx.AsyncByteStream)  # what an asynchronous client's responses have
            response.stream = Abandonable(response.stream)
            return response
        raise SilenceError(limit)

    def _made(self) -> httpx.AsyncClient:
        endpoint = self._endpoint
        bundle = endpoint.ca_bundle
        try:
            verify = True if bundle is None else ssl.create_default_context(cafile=str(Path(bundle).expanduser()))
            return httpx.AsyncClient(
                verify=verify,
                proxy=endpoint.proxy,
                timeout=None,  # each request brings its own limits
                limits=httpx.Limits(max_connections=None, keepalive_expiry=_KEPT_SECONDS),
                follow_redirects=False,  # the key must not travel to where a server points
            )
        except OSError as error:
            place = "ca_bundle" if bundle is not None else "SSL_CERT_FILE or SSL_CERT_DIR"
            raise UnusableSettingError(codes.TLS, f"the certificates of {place} cannot be read: {error}") from None
        except (ImportError, ValueError) as error:  # a scheme that httpx does not know, or only with more installed
            raise UnusableSettingError(codes.PROXY, f"the proxy cannot be used: {error}") from None
