"""One model request and its retries: configuration, header, dispatch, stream (HDR-05, HDR-06, STEP-01, STEP-02).

Each request is what the log says: the header is compared and logged first, then the request is taken from the session.
Owns no turn or step boundaries.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from harness_core._text import quoted_list
from harness_core.agent.errors import NoModelError, RequestFailedError
from harness_core.agent.provenance import provenance
from harness_core.hooks import RequestFailure, RequestStep, Retry
from harness_core.models import (
    AdapterEntry,
    AssistantMessage,
    CallConfig,
    ChunkAssembler,
    FailureFacts,
    Finish,
    ModelRequest,
    ReasoningDelta,
    RequestHeader,
    ResolvedCall,
    TextDelta,
    ToolSchema,
    Usage,
)
from harness_core.prompt import PromptAssembly
from harness_core.session import (
    APPEND,
    AssistantChunk,
    AssistantMessageLogged,
    Event,
    HeaderWritten,
    RequestContext,
    RequestDispatch,
    RequestRetry,
    check_request,
)
from harness_core.session.header import due

if TYPE_CHECKING:
    from harness_core.agent.agent import Agent

__all__ = ["Answer", "Requests"]

_NOTHING = CallConfig()
_STREAM_ENDED = "STREAM_ENDED"


@attrs.frozen(kw_only=True)
class Answer:
    """A model's whole answer. ``cut_off``: it ran into the limit of output tokens (TURN-04)."""

    message: AssistantMessage
    usage: Usage | None
    cut_off: bool


class Requests:
    """The requests of one agent: remembers what the next configuration starts from."""

    def __init__(self, agent: Agent, chosen: CallConfig, default: CallConfig) -> None:
        self._agent = agent
        self._chosen = chosen
        self._default = default
        self._default_then = default
        """The default when the last header was logged."""
        self._named = set(_given(chosen))
        """What was ever chosen for this agent: no default replaces it."""
        self._first_of_loop = True
        self._proposed_for: RequestHeader | None = None
        self._proposed = _NOTHING
        self._offered_by: RequestHeader | None = None
        self._offered: dict[str, ToolSchema] = {}

    @property
    def offered(self) -> Mapping[str, ToolSchema]:
        """The tools of the newest request, by name: what the model may call (TOOLX-05)."""
        header = self._agent.session.header
        if header is not self._offered_by and header is not None:
            self._offered_by, self._offered = header, {tool.name: tool for tool in header.tools}
        return self._offered

    def choose(self, config: CallConfig) -> None:
        """Values that the next request starts with, over those of the last header."""
        self._chosen = CallConfig(**{**_given(self._chosen), **_given(config)})
        self._named.update(_given(config))

    def settle(self, default: CallConfig) -> None:
        """Another default: it counts for the next request where the last one had the default's value, and nobody chose it."""
        self._default = default
        self._proposed_for = None

    async def answer(self, turn: int, step: int, assembly: PromptAssembly, system: str) -> Answer:
        """Ask the model until it answers or nobody wants to try again.

        Raises:
            NoModelError: no provider or model is named, or nobody serves the provider.
            RequestFailedError: the request failed.
            Exception: what a listener or an adapter raised.
        """
        attempt = 1
        while True:
            entry = await self._prepare(turn, step, attempt, assembly, system)
            finish, assembler = await self._exchange(entry, turn, step, attempt)
            if finish.reason not in ("error", "aborted"):
                return self._conclude(turn, step, finish, assembler)
            await self._failed(finish, assembler, turn, step, attempt)
            attempt += 1

    # --- before dispatch ----------------------------------------------------------------------------------------------

    def proposed(self) -> CallConfig:
        """The configuration that listeners start from (HDR-05)."""
        header = self._agent.session.header
        if header is None:
            return CallConfig(**{**_given(self._default), **_given(self._chosen)})
        if not self._first_of_loop and self._chosen == _NOTHING and self._proposed_for is header:
            return self._proposed
        merged = self._merged(header)
        if not self._first_of_loop and self._chosen == _NOTHING:
            self._proposed_for, self._proposed = header, merged
        return merged

    def _merged(self, header: RequestHeader) -> CallConfig:
        last = {name: value for name, value in _given(header.config).items() if name not in header.supplied}
        chosen = _given(self._chosen)
        if self._default != self._default_then:
            then, now = _given(self._default_then), _given(self._default)
            free = [f.name for f in attrs.fields(CallConfig) if f.name not in self._named]
            followed = [name for name in free if last.get(name) == then.get(name)]
            last = {name: value for name, value in last.items() if name not in followed}
            chosen = {name: now[name] for name in followed if name in now} | chosen
        merged = CallConfig(**{**last, **chosen})
        if self._first_of_loop and "effort" in last and "effort" not in chosen:
            route = (header.config.provider, header.config.model)
            if (merged.provider or route[0], merged.model or route[1]) != route:
                merged = attrs.evolve(merged, effort=None)
        return merged

    async def _prepare(self, turn: int, step: int, attempt: int, assembly: PromptAssembly, system: str) -> AdapterEntry:
        agent = self._agent
        hooks, scope = agent.surroundings.hooks, agent.scope
        place = RequestStep(turn=turn, step=step, attempt=attempt, scope=scope, agent=agent, session=agent.session)
        config = await hooks.agent_request.dispatch(scope, self.proposed(), place, _as_it_is)
        await agent.go_on()
        entry = self._entry(config)
        resolved = entry.adapter.resolve(config)
        if not resolved.config.provider or not resolved.config.model:
            raise NoModelError(
                f"No model is named for the provider {config.provider!r}, and its adapter names none.",
                remedy="Name one: create_agent(model=...), the composition's [model] table, or an agent_request listener.",
                agent=agent.id,
                entry="model",
            )
        self._log_header(resolved, system, assembly)
        self._log_route(resolved)
        session = agent.session
        session.append(RequestDispatch(turn=turn, step=step, attempt=attempt, digest=session.request_digest()))
        if agent.surroundings.debug:
            check_request(session.info, session.events, session.request())
        await session.sync()
        return entry

    def _entry(self, config: CallConfig) -> AdapterEntry:
        """The adapter's registration, which serves this request to its end (HDR-06)."""
        agent = self._agent
        models = agent.surroundings.models
        if config.provider is not None:
            entry = models.find(agent.scope, config.provider)
            if entry is not None:
                return entry
        known = models.effective(agent.scope)
        raise NoModelError(
            "No model provider is named for this request."
            if config.provider is None
            else f"Nobody serves the model provider {config.provider!r} in scope {agent.scope.name!r}.",
            remedy=f"Name one that is known here: {quoted_list(known)}; or install the plugin that brings it.",
            agent=agent.id,
            entry="provider",
            names=[config.provider] if config.provider is not None else (),
            known=known,
        )

    def _log_header(self, resolved: ResolvedCall, system: str, assembly: PromptAssembly) -> None:
        session = self._agent.session
        header = RequestHeader(config=resolved.config, supplied=resolved.supplied, system=system, tools=assembly.tools)
        reason = due(session.header, header, first_of_loop=self._first_of_loop)
        if reason is not None:
            origins = provenance(self._agent.surroundings, self._agent.scope, assembly)
            session.append(HeaderWritten(header=header, reason=reason, provenance=origins))
        self._first_of_loop = False
        self._chosen = _NOTHING
        self._default_then = self._default

    def _log_route(self, resolved: ResolvedCall) -> None:
        session, config = self._agent.session, resolved.config
        route = RequestContext(
            provider=str(config.provider), model=str(config.model), context_window=resolved.context_window
        )
        if route != session.route:
            session.append(route)

    # --- the stream ---------------------------------------------------------------------------------------------------

    async def _exchange(self, entry: AdapterEntry, turn: int, step: int, attempt: int) -> tuple[Finish, ChunkAssembler]:
        agent = self._agent
        session = agent.session
        request: ModelRequest = session.request()
        assembler = ChunkAssembler()
        try:
            async with entry.adapter.stream(request) as chunks:
                try:
                    async for chunk in chunks:
                        session.append(AssistantChunk(turn=turn, step=step, chunk=chunk))
                        assembler.add(chunk)
                        if assembler.finish is not None:
                            break
                finally:
                    if isinstance(chunks, AsyncGenerator):
                        await chunks.aclose()
            await agent.go_on()
        except BaseException as error:
            if not isinstance(error, Exception):  # cancelled, or interrupted from the keyboard
                self._keep_visible(turn, step)
            raise
        if assembler.finish is None:
            facts = FailureFacts(
                code=_STREAM_ENDED,
                message="The model's stream ended without saying that it was finished.",
                output_started=assembler.has_visible,
                retryable=True,
            )
            return Finish("error", facts), assembler
        return assembler.finish, assembler

    def _keep_visible(self, turn: int, step: int) -> None:
        """What the user saw stays in the conversation (CANCEL-02): what is logged of this attempt, and no more."""
        events: list[Event] = []
        for event in reversed(self._agent.session.events):
            if isinstance(event.data, RequestDispatch):
                break
            events.append(event)
        seen = ChunkAssembler()
        numbers: list[int] = []
        for event in reversed(events):
            if isinstance(event.data, AssistantChunk):
                seen.add(event.data.chunk)
                if isinstance(event.data.chunk, (TextDelta, ReasoningDelta)):
                    numbers.append(event.seq)
        if seen.has_visible:
            message = seen.message(tool_calls=False)
            interrupted = AssistantMessageLogged(
                turn=turn, step=step, message=message, usage=seen.usage, interrupted=True, chunks=numbers
            )
            self._agent.log_while_ending(interrupted, APPEND)

    def _conclude(self, turn: int, step: int, finish: Finish, assembler: ChunkAssembler) -> Answer:
        cut_off = finish.reason == "max-tokens"
        message = assembler.message(tool_calls=not cut_off)
        self._agent.session.append(
            AssistantMessageLogged(turn=turn, step=step, message=message, usage=assembler.usage), APPEND
        )
        return Answer(message=message, usage=assembler.usage, cut_off=cut_off)

    async def _failed(self, finish: Finish, assembler: ChunkAssembler, turn: int, step: int, attempt: int) -> None:
        """Ask whether to try again; returns when it is time to.

        Raises:
            RequestFailedError: nobody wants to.
        """
        agent = self._agent
        facts = finish.failure or FailureFacts(
            code=finish.reason.upper(),
            message=f"The model's stream ended as {finish.reason} and said no more.",
            output_started=assembler.has_visible,
        )
        header = agent.session.header
        assert header is not None
        failure = RequestFailure(
            facts=facts,
            header=header,
            turn=turn,
            step=step,
            attempt=attempt,
            scope=agent.scope,
            agent=agent,
            session=agent.session,
        )
        decision: Retry | None = await agent.surroundings.hooks.agent_request_error.dispatch(
            agent.scope, failure, None, _not_again
        )
        await agent.go_on()
        if decision is None:
            raise RequestFailedError(facts, agent=agent.id, entry=f"turn {turn}, step {step}, attempt {attempt}")
        delay_ms = round(max(decision.delay, 0.0) * 1000)
        agent.session.append(
            RequestRetry(
                turn=turn, step=step, attempt=attempt, delay_ms=delay_ms, failure=facts, reason=decision.reason
            )
        )
        if delay_ms:
            await agent.surroundings.sleep(decision.delay)
        await agent.go_on()


def _given(config: CallConfig) -> dict[str, Any]:
    """The fields that say something."""
    return {
        field.name: value
        for field in attrs.fields(CallConfig)
        if (value := getattr(config, field.name)) is not None and value != {}
    }


def _as_it_is(config: CallConfig) -> CallConfig:
    return config


def _not_again(failure: RequestFailure) -> None:
    return None
