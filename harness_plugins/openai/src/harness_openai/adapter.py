"""The adapter: one neutral request becomes one HTTP request, and its answer a stream of neutral chunks.

Owns the course of an exchange from the key to the last chunk. Retries nothing; keeps no key longer than a request.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    aclosing,
    asynccontextmanager,
    nullcontext,
)

import anyio
import attrs
import httpx

from harness_core.models import (
    AssistantMessage,
    CallConfig,
    Chunk,
    FailureFacts,
    ModelInfo,
    ModelRequest,
    ResolvedCall,
    WireRequest,
)
from harness_openai import codes
from harness_openai.answer import Answer, MalformedEventError, ServiceError
from harness_openai.connection import Connections, SilenceError, UnusableSettingError
from harness_openai.dialect import Dialect
from harness_openai.encoding import RESERVED, request_body
from harness_openai.endpoint import Endpoint, ModelRouteError
from harness_openai.failures import Reporter
from harness_openai.keys import KeySource, hidden_in_logs
from harness_openai.reading import beginning, event_data, is_event_stream

__all__ = ["ChatCompletions"]

_BREAKDOWNS = (
    MalformedEventError,
    ServiceError,
    SilenceError,
    UnusableSettingError,
    httpx.HTTPError,
    httpx.InvalidURL,
    OSError,
)
_REST_SECONDS = 5.0
"""How long the token counts are waited for after the finish reason: most servers send them at once, some never."""

_FIXED_HEADERS = {
    "content-type": "application/json",
    "accept": "text/event-stream",
    "accept-encoding": "identity",  # compressed streams arrive late, because compressors wait for more
    "cache-control": "no-store",
    "user-agent": "pluggy-harness-openai",
}


class _ExchangeError(Exception):
    """The exchange failed, and these are the facts."""

    def __init__(self, facts: FailureFacts) -> None:
        super().__init__(facts.code)
        self.facts = facts


class ChatCompletions:
    """A `ModelAdapter` for one endpoint that speaks chat completions.

    Args:
        provider: the name that it is registered under.
        endpoint: where it is and how it is used.
        dialect: what servers of its family want to read.
        environ: where keys named by a variable are looked up.
        now: the wall clock.
    """

    def __init__(
        self,
        provider: str,
        endpoint: Endpoint,
        dialect: Dialect,
        *,
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.provider = provider
        self.endpoint = endpoint
        self._dialect = dialect
        self._environ = environ
        self._now = now
        self._keys = KeySource.of(endpoint)
        self._connections = Connections(endpoint)

    def __repr__(self) -> str:
        return f"<ChatCompletions {self.provider!r} at {self.endpoint.base_url}>"

    # --- before a request ---------------------------------------------------------------------------------------------

    def resolve(self, config: CallConfig) -> ResolvedCall:
        """Fill in the endpoint's own values.

        Raises:
            ModelRouteError: the endpoint lacks its address or its key, or ``extra`` holds a field that is not for it.
        """
        problems = self._problems()
        if problems:
            raise ModelRouteError(
                f"The model endpoint {self.provider!r} cannot be used: {'; '.join(problems.values())}.",
                remedy="Set it in the configuration of its plugin, or in the environment.",
                entry=next(iter(problems)),
                names=problems,
            )
        reserved = sorted(RESERVED.intersection(config.extra))
        if reserved:
            raise ModelRouteError(
                f"extra holds {', '.join(reserved)}, which the adapter for {self.provider!r} sets itself.",
                remedy="Use the configuration's own fields (temperature, max_tokens, ...); the rest cannot be chosen.",
                entry=f"extra.{reserved[0]}",
                names=reserved,
            )
        own = {
            name: value
            for name in ("model", "temperature", "max_tokens", "effort")
            if getattr(config, name) is None and (value := getattr(self.endpoint, name)) is not None
        }
        return ResolvedCall(
            config=attrs.evolve(config, **own) if own else config,
            supplied=own,
            context_window=self.endpoint.context_window,
        )

    def describe(self) -> list[ModelInfo]:
        """The endpoint, and what it lacks."""
        return [
            ModelInfo(
                provider=self.provider,
                model=self.endpoint.model,
                base_url=self.endpoint.base_url,
                missing=tuple(self._problems().values()),
            )
        ]

    def _problems(self) -> dict[str, str]:
        """What keeps the endpoint from being used, by the name of the setting."""
        problems: dict[str, str] = {}
        if self.endpoint.base_url is None:
            problems["base_url"] = "base_url is not set"
        if no_key := self._keys.problem(self._environ):
            problems["api_key_file" if self._keys.file is not None else "api_key_env"] = no_key
        bundle = self.endpoint.ca_bundle
        if bundle is not None and not os.path.isfile(os.path.expanduser(bundle)):
            problems["ca_bundle"] = f"there is no file {bundle!r}, which ca_bundle names"
        return problems

    def body(self, request: ModelRequest) -> bytes:
        """Exactly what would be sent for a request (LLM-05)."""
        return request_body(request, self._dialect.encode, self._dialect.effort, self._dialect.max_tokens_field)

    def preview(self, request: ModelRequest) -> WireRequest:
        """The request without its key, and without what the configuration's own headers hold."""
        own = {name: f"${name.upper().replace('-', '_')}" for name in self.endpoint.headers}
        variable = self._keys.variable or ("API_KEY" if self._keys.file is not None else None)
        if variable is not None:
            own["authorization"] = f"Bearer ${variable}"
        base_url = self.endpoint.base_url or ""
        return WireRequest(
            url=f"{base_url.rstrip('/')}/chat/completions",
            headers=_FIXED_HEADERS,
            secrets=own,
            body=self.body(request),
        )

    async def retire(self) -> None:
        """Close the connections once no request uses them."""
        await self._connections.retire()

    # --- a request ----------------------------------------------------------------------------------------------------

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Chunk]]:
        return self._streaming(request)

    @asynccontextmanager
    async def _streaming(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[Chunk]]:
        chunks = self._chunks(request)
        try:
            yield chunks
        finally:
            await chunks.aclose()

    async def _chunks(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        answer = Answer(lambda call: _free_id(request, call))
        failure: FailureFacts | None = None
        try:
            async with aclosing(self._exchange(request, answer)) as exchange:
                async for chunk in exchange:
                    yield chunk
        except _ExchangeError as failed:
            failure = failed.facts
        for chunk in answer.end(failure):
            yield chunk

    async def _exchange(self, request: ModelRequest, answer: Answer) -> AsyncGenerator[Chunk, None]:
        """The chunks of an exchange, but for those that can only be said at its end.

        Raises:
            _ExchangeError: no whole answer came of it.
        """
        base_url = self.endpoint.base_url or ""
        reporter = Reporter(
            provider=self.provider,
            address=base_url,
            key_label=self._keys.label,
            stream_timeout=self.endpoint.stream_timeout,
            now=self._now,
        )
        headers = {**_FIXED_HEADERS, **self.endpoint.headers}
        try:
            key = self._keys.read(self._environ)
        except ModelRouteError as error:  # it was there when the request was resolved
            raise _ExchangeError(reporter.facts(codes.NO_KEY, error.message)) from None
        quiet: AbstractContextManager[None] = nullcontext()
        if key is not None:
            reporter = attrs.evolve(reporter, key=key)
            headers["authorization"] = key.authorization()
            quiet = hidden_in_logs(key)
        response: httpx.Response | None = None
        url = f"{base_url.rstrip('/')}/chat/completions"
        try:
            with quiet:
                async with self._connections.opened(url, self.body(request), headers) as response:
                    await _require_stream(response, reporter)
                    async with aclosing(event_data(response)) as events:
                        async for data in events:
                            for chunk in answer.read(data):
                                yield chunk
                            if answer.finished:
                                break
                        rest: list[Chunk] = []
                        with anyio.move_on_after(_REST_SECONDS):
                            async for data in events:
                                rest += answer.read(data)
                        for chunk in rest:
                            yield chunk
        except _BREAKDOWNS as error:
            if not answer.finished:  # what breaks after that takes token counts away at most
                raise _ExchangeError(reporter.exception(error, response)) from None
        if problem := answer.problem():
            raise _ExchangeError(reporter.facts(*problem, response=response))


def _free_id(request: ModelRequest, number: int) -> str:
    """An id for call ``number`` of the answer that no call in the conversation has."""
    taken = {
        call.id for message in request.messages if isinstance(message, AssistantMessage) for call in message.tool_calls
    }
    free = (name for count in itertools.count(len(taken)) if (name := f"call_{count}_{number}") not in taken)
    return next(free)


async def _require_stream(response: httpx.Response, reporter: Reporter) -> None:
    """Go on only where events follow.

    Raises:
        _ExchangeError: the server refused, or answered with something else.
    """
    if response.status_code != httpx.codes.OK:
        raise _ExchangeError(reporter.refusal(response, await beginning(response)))
    if not is_event_stream(response):
        raise _ExchangeError(reporter.other(response, await beginning(response)))
