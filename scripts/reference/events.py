"""The page of the session log: each event type with its fields, and a line of it as the codec writes it."""

from __future__ import annotations

import inspect
from typing import Any

from harness_core.models import (
    CallConfig,
    FailureFacts,
    RequestHeader,
    Source,
    TextBlock,
    TextDelta,
    ToolSchema,
    Usage,
    UserMessage,
)
from harness_core.models.messages import AssistantMessage, ToolCallBlock, ToolResultMessage
from harness_core.session import APPEND, SessionInfo, events as log
from harness_core.session.codec import LogCodec, encode_info
from reference.fields import fields, prose

INTRODUCTION = """\
# The session log

This page is written by `python scripts/write_reference.py`, from the event classes and the codec.

A log is a file of lines, each a JSON object. The first line tells of the session; each other one is an event: `seq`
(its number, from 0), `time` (milliseconds since 1970), `type`, `data`, and, for a message, `surface`: how it joins what
the model sees. `"append"` puts it at the end; `{"replace": [start, end], "sources": [...]}` puts it in the place of the
entries between two event numbers, as a compaction does. Fields that have their default are left out. A reader refuses a
log of another `version`, and types that it does not know are records of plugins: it keeps them.
"""

_FAILURE = FailureFacts(code="RATE_LIMIT", message="Too many requests.", retryable=True, status=429)
_QUESTION = UserMessage(id="m1", content="What is the weather in Paris?")
_SNAPSHOT = UserMessage(
    id="m2",
    content="Paris: sunny.",
    source=Source("plugin", "snapshot", "weather", {"sections": [{"name": "weather:now", "text": "Paris: sunny."}]}),
)
_TOOL = ToolSchema("forecast", "The forecast for a city.", {"type": "object"})
_CONFIG = CallConfig(provider="deepseek", model="deepseek-chat")

SAMPLES: dict[type[Any], Any] = {
    log.TurnStart: log.TurnStart(turn=1),
    log.TurnEnd: log.TurnEnd(turn=1, reason="error", failure=_FAILURE),
    log.StepStart: log.StepStart(turn=1, step=1),
    log.StepEnd: log.StepEnd(turn=1, step=1),
    log.UserMessageLogged: log.UserMessageLogged(message=_SNAPSHOT),
    log.AssistantChunk: log.AssistantChunk(turn=1, step=1, chunk=TextDelta("It is ")),
    log.AssistantMessageLogged: log.AssistantMessageLogged(
        turn=1,
        step=1,
        message=AssistantMessage(content=(TextBlock("I ask."), ToolCallBlock("c1", "forecast", '{"city": "Paris"}'))),
        usage=Usage(input_tokens=812, output_tokens=16, cached_tokens=768),
    ),
    log.ToolCallStarted: log.ToolCallStarted(
        turn=1, step=1, call_id="c1", name="forecast", arguments='{"city": "Paris"}'
    ),
    log.ToolResultLogged: log.ToolResultLogged(
        turn=1, step=1, message=ToolResultMessage(call_id="c1", name="forecast", content="Sunny.")
    ),
    log.HeaderWritten: log.HeaderWritten(
        header=RequestHeader(config=_CONFIG, system="Be brief.", tools=(_TOOL,)), reason="initial"
    ),
    log.RequestContext: log.RequestContext(provider="deepseek", model="deepseek-chat", context_window=128_000),
    log.RequestDispatch: log.RequestDispatch(turn=1, step=1, attempt=1, digest="f2ca1bb6c7e907d0"),
    log.RequestRetry: log.RequestRetry(
        turn=1, step=1, attempt=1, delay_ms=1000, failure=_FAILURE, reason="it may pass"
    ),
    log.InboxSpliced: log.InboxSpliced(target="next-turn", start=0, inserted=(_QUESTION,)),
    log.SessionSeeded: log.SessionSeeded(origin="s1"),
    log.PluginRecord: log.PluginRecord("plugin/weather/asked", {"city": "Paris"}),
}
"""One event of each type; a type without one cannot be written about, and the script fails."""


def page() -> str:
    info = SessionInfo(id="s2", created_at_ms=1_767_225_600_000, cwd="/home/ann/trip", parent="s1", seed_length=12)
    parts = [INTRODUCTION, "## The first line\n", f"{prose(inspect.getdoc(SessionInfo))}\n"]
    parts += [_table(SessionInfo), _block(encode_info(info)), "## Events\n"]
    for kind in (*log.EVENT_TYPES.values(), log.PluginRecord):
        title = kind.type if kind is not log.PluginRecord else "plugin/NAME/WHAT"
        text = prose((inspect.getdoc(kind) or "").partition("\n\n")[0])
        parts += [f"### {title}\n", f"`{kind.__name__}`: {text}\n", _table(kind), _block(_line(SAMPLES[kind]))]
    return "\n".join(parts)


def _line(data: Any) -> bytes:
    surface = APPEND if type(data) in log.SURFACE_TYPES else None
    return LogCodec().encode(42, 1_767_225_600_000, data, surface)


def _block(line: bytes) -> str:
    return f"```json\n{line.decode().rstrip()}\n```\n"


def _table(kind: type) -> str:
    if kind is log.PluginRecord:
        return "`data` is whatever JSON object the plugin wrote.\n"
    rows = [
        f"| `{field.name}` | {field.type} | {'required' if field.default is None else field.default or 'absent'} |"
        for field in fields(kind)
    ]
    return "\n".join(["| field | type | default |", "|---|---|---|", *rows, ""])
