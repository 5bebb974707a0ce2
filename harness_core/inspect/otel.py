"""OpenTelemetry spans of turns, requests, tool calls, assemblies and dispatches, where opentelemetry-api is installed.

Turns, requests and tool calls come from the session's events, named as the GenAI conventions name them; assemblies and
dispatches come from traces. Spans are made when a turn is over, with the times that things really took.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs

from harness_core.errors import HarnessError
from harness_core.hooks import hookimpl
from harness_core.host import Harness
from harness_core.inspect.trace import DispatchTrace
from harness_core.inspect.tracer import Trace, Tracer, tracing
from harness_core.models import Finish
from harness_core.session import (
    AssistantChunk,
    AssistantMessageLogged,
    Event,
    HeaderWritten,
    RequestDispatch,
    Session,
    StepEnd,
    StepStart,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnd,
    TurnStart,
)

__all__ = ["SpanRecord", "Telemetry", "session_spans", "telemetry", "trace_span"]

_SLOW_PROVIDER = 1_000_000
"""Nanoseconds from which on a provider has a span of its own: an assembly may have hundreds, and most take none."""
_MS = 1_000_000


@attrs.define(kw_only=True)
class SpanRecord:
    """A span before anybody knows of OpenTelemetry; times are nanoseconds since 1970."""

    name: str
    start: int
    end: int
    attributes: dict[str, Any] = attrs.field(factory=dict)
    children: list[SpanRecord] = attrs.field(factory=list)
    client: bool = False
    error: str | None = None


# --- from events ------------------------------------------------------------------------------------------------------


def session_spans(session_id: str, events: Iterable[Event]) -> list[SpanRecord]:
    """One span for each turn that has ended, with its steps, requests and tool calls inside."""
    turns: list[SpanRecord] = []
    reading = _Reading(session_id)
    for event in events:
        turn = reading.take(event)
        if turn is not None:
            turns.append(turn)
    return turns


class _Reading:
    """Builds the spans of one session event by event."""

    def __init__(self, session_id: str) -> None:
        self._session = session_id
        self._turn: SpanRecord | None = None
        self._step: SpanRecord | None = None
        self._request: SpanRecord | None = None
        self._tools: dict[str, SpanRecord] = {}
        self._settings: dict[str, Any] = {}

    def take(self, event: Event) -> SpanRecord | None:
        """The turn's span where the event ends one."""
        at, data = event.time_ms * _MS, event.data
        match data:
            case TurnStart(turn=turn):
                self._turn = SpanRecord(name=f"invoke_agent {self._session}", start=at, end=at)
                self._turn.attributes = {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.agent.id": self._session,
                    "gen_ai.conversation.id": self._session,
                    "harness.turn": turn,
                }
            case StepStart(step=step) if self._turn is not None:
                self._step = SpanRecord(name=f"step {step}", start=at, end=at, attributes={"harness.step": step})
                self._turn.children.append(self._step)
            case HeaderWritten(header=header):
                self._settings = _settings(header.config)
            case RequestDispatch(attempt=attempt) if self._step is not None:
                self._begin_request(at, attempt, self._step)
            case AssistantChunk(chunk=Finish() as finish) if self._request is not None:
                self._request.end = at
                self._request.attributes["gen_ai.response.finish_reasons"] = [finish.reason]
                if finish.failure is not None:
                    self._request.error = finish.failure.code
            case AssistantMessageLogged() if self._request is not None:
                self._request.end = at
                self._request.attributes |= _usage(data)
                self._request = None
            case ToolCallStarted(call_id=call_id, name=name) if self._step is not None:
                self._begin_tool(at, call_id, name, self._step)
            case ToolResultLogged(message=message, error=error) if message.call_id in self._tools:
                tool = self._tools.pop(message.call_id)
                tool.end, tool.error = at, error
            case StepEnd() if self._step is not None:
                self._step.end, self._step = at, None
            case TurnEnd() if self._turn is not None:
                return self._end_turn(at, data)
            case _:
                pass
        return None

    def _begin_request(self, at: int, attempt: int, step: SpanRecord) -> None:
        model = self._settings.get("gen_ai.request.model", "")
        self._request = SpanRecord(name=f"chat {model}", start=at, end=at, client=True)
        self._request.attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": self._session,
            **self._settings,
            "harness.attempt": attempt,
        }
        step.children.append(self._request)

    def _begin_tool(self, at: int, call_id: str, name: str, step: SpanRecord) -> None:
        tool = SpanRecord(name=f"execute_tool {name}", start=at, end=at)
        tool.attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
        }
        self._tools[call_id] = tool
        step.children.append(tool)

    def _end_turn(self, at: int, end: TurnEnd) -> SpanRecord | None:
        turn, self._turn = self._turn, None
        self._step = self._request = None
        self._tools.clear()
        if turn is not None:
            turn.end = at
            turn.attributes["harness.turn.reason"] = end.reason
            if end.reason == "error":
                turn.error = end.failure.code if end.failure is not None else "error"
        return turn


def _settings(config: Any) -> dict[str, Any]:
    named = {
        "gen_ai.provider.name": config.provider,
        "gen_ai.request.model": config.model,
        "gen_ai.request.temperature": config.temperature,
        "gen_ai.request.top_p": config.top_p,
        "gen_ai.request.max_tokens": config.max_tokens,
        "gen_ai.request.seed": config.seed,
    }
    return {name: value for name, value in named.items() if value is not None}


def _usage(message: AssistantMessageLogged) -> dict[str, Any]:
    usage = message.usage
    if usage is None:
        return {}
    named = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
    }
    return {name: value for name, value in named.items() if value is not None}


# --- from traces ------------------------------------------------------------------------------------------------------


def trace_span(trace: Trace) -> SpanRecord:
    """An assembly or a dispatch as a span, its listeners inside of each other."""
    if isinstance(trace, DispatchTrace):
        return _dispatch_span(trace)
    offset = trace.started_ms * _MS - trace.began
    span = SpanRecord(
        name="harness.assemble", start=trace.began + offset, end=trace.ended + offset, attributes=_subject(trace)
    )
    span.error = trace.failure.kind if trace.failure is not None else None
    span.attributes["harness.providers"] = len(trace.providers)
    for run in trace.providers:
        if run.total >= _SLOW_PROVIDER or run.failure is not None:
            facts = {"harness.plugin.name": run.origin.plugin or "", "harness.entry": run.name}
            span.children.append(
                SpanRecord(
                    name=f"harness.provider {run.kind} {run.name}",
                    start=run.began + offset,
                    end=run.ended + offset,
                    attributes=facts,
                    error=run.failure.kind if run.failure is not None else None,
                )
            )
    if trace.dispatch is not None:
        span.children.append(_dispatch_span(trace.dispatch))
    return span


def _subject(trace: Trace) -> dict[str, Any]:
    return {"harness.scope": trace.scope, **{f"harness.{name}": value for name, value in trace.subject.items()}}


def _dispatch_span(trace: DispatchTrace) -> SpanRecord:
    offset = trace.started_ms * _MS - trace.began
    span = SpanRecord(
        name=f"harness.waterfall {trace.hook}",
        start=trace.began + offset,
        end=trace.ended + offset,
        attributes={**_subject(trace), "harness.hook": trace.hook},
        error=trace.failure.kind if trace.failure is not None else None,
    )
    spans: list[SpanRecord] = []
    for run in trace.runs:
        listener = run.listener
        own = SpanRecord(
            name=f"harness.listener {listener.plugin}",
            start=run.began + offset,
            end=run.ended + offset,
            attributes={
                "harness.plugin.name": listener.plugin,
                "harness.plugin.version": listener.version or "",
                "harness.style": listener.style.value,
                "harness.changes": [str(change) for change in run.changes],
                "harness.answered": run.answered,
                "code.function.name": getattr(listener.function, "__qualname__", ""),
                "code.file.path": listener.file or "",
                "code.line.number": listener.line or 0,
            },
            error=run.raised.kind if run.raised is not None else None,
        )
        (spans[run.parent] if run.parent is not None else span).children.append(own)
        spans.append(own)
    return span


# --- to OpenTelemetry -------------------------------------------------------------------------------------------------


class Telemetry:
    """Hands spans to OpenTelemetry. A plugin (for turns), and a sink of traces: `telemetry` puts it in both places.

    ``provider`` is a TracerProvider; the process's own by default.

    Raises:
        HarnessError: opentelemetry-api is not installed.
    """

    name = "opentelemetry"

    def __init__(self, provider: Any = None) -> None:
        try:
            from opentelemetry import trace as api
        except ImportError:
            raise HarnessError(
                "There are no OpenTelemetry spans without opentelemetry-api.",
                remedy="pip install 'pluggy-harness[otel]'",
            ) from None
        self._api = api
        self._tracer = api.get_tracer("harness_core", tracer_provider=provider)
        self._readings: dict[str, _Reading] = {}
        self._waiting: dict[str, list[SpanRecord]] = {}

    @hookimpl
    def session_event(self, session: Session, event: Event) -> None:
        reading = self._readings.setdefault(session.id, _Reading(session.id))
        turn = reading.take(event)
        if turn is None:
            return
        del self._readings[session.id]
        for span in self._waiting.pop(session.id, ()):
            _place(turn, span)
        self.emit([turn])

    def take(self, trace: Trace) -> None:
        """A trace: part of its agent's turn when there is one, a span of its own otherwise."""
        span = trace_span(trace)
        session = trace.subject.get("session")
        if "agent" in trace.subject and session in self._readings:
            self._waiting.setdefault(session, []).append(span)
        else:
            self.emit([span])

    def emit(self, spans: Sequence[SpanRecord], parent: Any = None) -> None:
        """Make the spans, below ``parent`` or whatever span is current."""
        api = self._api
        for record in spans:
            kind = api.SpanKind.CLIENT if record.client else api.SpanKind.INTERNAL
            attributes = dict(record.attributes)
            if record.error is not None:
                attributes["error.type"] = record.error
            span = self._tracer.start_span(
                record.name, context=parent, kind=kind, attributes=attributes, start_time=record.start
            )
            if record.error is not None:
                span.set_status(api.Status(api.StatusCode.ERROR, record.error))
            self.emit(record.children, api.set_span_in_context(span))
            span.end(end_time=max(record.end, record.start))


_PROPOSING = ("harness.assemble", "harness.waterfall agent_pre_step")
"""What happens before a step begins, and so stands beside it."""


def _place(turn: SpanRecord, span: SpanRecord) -> None:
    """Put a span below the step that it belongs to; proposals below the turn."""
    number = span.attributes.get("harness.step")
    steps = (child for child in turn.children if child.name.startswith("step ") and span.name not in _PROPOSING)
    inside = (step for step in steps if step.attributes["harness.step"] == number)
    next(inside, turn).children.append(span)


@asynccontextmanager
async def telemetry(harness: Harness, provider: Any = None) -> AsyncIterator[Tracer]:
    """Spans of everything that a harness does while the context is open."""
    made = Telemetry(provider)
    async with await harness.install(made):
        with tracing(harness, made.take) as tracer:
            yield tracer
