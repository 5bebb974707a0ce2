"""What closes a turn that nobody is left to close (LOG-06): a pure function of the log, the same for everybody.

Used when a log is loaded after a crash, and when a prefix of a running log becomes another session's seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from harness_core.models.messages import ToolCallBlock, ToolResultMessage
from harness_core.session.events import (
    APPEND,
    AssistantMessageLogged,
    Event,
    EventData,
    StepEnd,
    StepStart,
    SurfaceOperation,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnd,
    TurnStart,
)

__all__ = ["NOT_STARTED", "OUTCOME_UNKNOWN", "Closer", "closers"]

NOT_STARTED = "TOOL_NOT_STARTED"
OUTCOME_UNKNOWN = "TOOL_OUTCOME_UNKNOWN"

_TEXTS = {
    NOT_STARTED: "This call was not run: the session was interrupted before it started. Call the tool again if it is still needed.",
    OUTCOME_UNKNOWN: (
        "The session was interrupted while this call was running, so its outcome is unknown. It may have taken effect, fully "
        "or in part. Look at the current state before you decide; do not simply repeat the call."
    ),
}

Closer: TypeAlias = tuple[EventData, SurfaceOperation | None]


def closers(events: Sequence[Event]) -> list[Closer]:
    """The events that balance the log, in order; none when it is balanced. Their time is the last real event's."""
    turn, step, opened = _open_place(events)
    if not turn:
        return []
    closing: list[Closer] = []
    if step:
        closing += [(result, APPEND) for result in _missing_results(events[opened:], turn, step)]
        closing.append((StepEnd(turn=turn, step=step), None))
    closing.append((TurnEnd(turn=turn, reason="interrupted"), None))
    return closing


def _open_place(events: Sequence[Event]) -> tuple[int, int, int]:
    """The open turn and step (0 when none is), and where the last boundary stands."""
    for place in range(len(events) - 1, -1, -1):
        match events[place].data:
            case TurnEnd():
                break
            case TurnStart(turn=turn):
                return turn, 0, place
            case StepEnd(turn=turn):
                return turn, 0, place
            case StepStart(turn=turn, step=step):
                return turn, step, place
            case _:
                pass
    return 0, 0, len(events)


def _missing_results(events: Iterable[Event], turn: int, step: int) -> list[ToolResultLogged]:
    calls: list[ToolCallBlock] = []
    started: set[str] = set()
    finished: set[str] = set()
    for event in events:
        match event.data:
            case AssistantMessageLogged(message=message):
                calls += message.tool_calls
            case ToolCallStarted(call_id=call_id):
                started.add(call_id)
            case ToolResultLogged(message=result):
                finished.add(result.call_id)
            case _:
                pass
    return [
        _result(call, OUTCOME_UNKNOWN if call.id in started else NOT_STARTED, turn, step)
        for call in calls
        if call.id not in finished
    ]


def _result(call: ToolCallBlock, code: str, turn: int, step: int) -> ToolResultLogged:
    message = ToolResultMessage(call_id=call.id, name=call.name, content=_TEXTS[code], is_error=True)
    return ToolResultLogged(turn=turn, step=step, message=message, error=code)
