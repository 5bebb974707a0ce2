"""Events in words: one line for each, for people who read a log."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from harness_core._json import canonical
from harness_core.models import AssistantMessage, Finish, ReasoningDelta, TextDelta
from harness_core.session import (
    AssistantChunk,
    AssistantMessageLogged,
    Event,
    HeaderWritten,
    InboxSpliced,
    PluginRecord,
    RequestContext,
    RequestDispatch,
    RequestRetry,
    SessionSeeded,
    StepEnd,
    StepStart,
    SurfaceReplace,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnd,
    TurnStart,
    UserMessageLogged,
)

__all__ = ["event_line", "event_words", "when"]

SHOWN = 100
"""Characters of a text on one line."""


def when(time_ms: int) -> str:
    """A wall-clock time, in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def event_line(event: Event) -> str:
    """Number, time of day, type and what happened."""
    clock = datetime.fromtimestamp(event.time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    return f"{event.seq:>5} {clock} {event.type:<20} {event_words(event)}".rstrip()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"


def event_words(event: Event) -> str:
    """What happened, without type and time."""
    replaced = ""
    if isinstance(event.surface, SurfaceReplace):
        replaced = f" (in place of events {event.surface.start} to {event.surface.end})"
    return _words(event.data) + replaced


def _words(data: Any) -> str:
    match data:
        case TurnStart(turn=turn):
            return f"turn {turn}"
        case TurnEnd(turn=turn):
            why = data.detail or data.cause or (data.failure.message if data.failure is not None else "")
            return f"turn {turn} {data.reason}" + (f": {_short(why)}" if why else "")
        case StepStart(turn=turn, step=step) | StepEnd(turn=turn, step=step):
            return f"turn {turn}, step {step}"
        case UserMessageLogged(message=message):
            return _user(message)
        case AssistantMessageLogged(message=message):
            return _answer(data, message)
        case AssistantChunk(chunk=TextDelta(text=text) | ReasoningDelta(text=text)):
            return repr(text)
        case AssistantChunk(chunk=Finish(reason=reason)):
            return f"finished: {reason}"
        case AssistantChunk(chunk=chunk):
            return _short(canonical(chunk.to_json()))
        case ToolCallStarted(name=name, arguments=arguments):
            return f"{name} {_short(arguments)}"
        case ToolResultLogged(message=message, error=error):
            return f"{message.name}{f' failed ({error})' if error else ''}: {_short(message.text)}"
        case HeaderWritten():
            return _header(data)
        case RequestContext(provider=provider, model=model):
            return f"{provider}, {model}"
        case RequestDispatch(turn=turn, step=step, attempt=attempt, digest=digest):
            again = f", attempt {attempt}" if attempt > 1 else ""
            return f"turn {turn}, step {step}{again}, digest {digest}"
        case RequestRetry(attempt=attempt, delay_ms=delay, failure=failure):
            return f"after attempt {attempt}, in {delay} ms: {_short(failure.message)}"
        case InboxSpliced():
            return _splice(data)
        case SessionSeeded(origin=origin):
            return f"what stands above is from session {origin}" if origin else "what stands above is inherited"
        case PluginRecord():
            return _short(canonical(data.data))
        case _:
            return ""


def _user(message: Any) -> str:
    source = message.source
    who = " ".join(filter(None, (source.plugin or source.kind, source.form)))
    changed = source.data.get("changed")
    if changed:
        owners = {str(part["name"]): part.get("plugin") for part in source.data.get("sections", ())}
        named = (f"{name} ({owners[str(name)]})" if owners.get(str(name)) else str(name) for name in changed)
        who += f", changed: {', '.join(named)}"
    return f"[{who}] {_short(message.text)}"


def _answer(data: AssistantMessageLogged, message: AssistantMessage) -> str:
    usage = ""
    if data.usage is not None:
        usage = " (" + ", ".join(f"{name} {number}" for name, number in data.usage.to_json().items()) + ")"
    calls = ", ".join(call.name for call in message.tool_calls)
    cut = " [interrupted]" if data.interrupted else ""
    return f"{_short(message.text)}{f' calls {calls}' if calls else ''}{cut}{usage}".strip()


def _header(data: HeaderWritten) -> str:
    header = data.header
    route = ", ".join(filter(None, (header.config.provider, header.config.model)))
    return f"{data.reason}: {route}; {len(header.system)} characters of system text, {len(header.tools)} tools"


def _splice(data: InboxSpliced) -> str:
    parts = [
        f"{len(data.inserted)} in" if data.inserted else "",
        f"{data.removed_count} out" if data.removed_count else "",
    ]
    return f"{data.target}: {', '.join(filter(None, parts))}{f' ({data.outcome})' if data.outcome else ''}"
