"""The order of a log: turns and steps nest, their numbers are contiguous, and what belongs to a step stands in it.

Owns the state (idle, in a turn, in a step) and its transitions, nothing else. The same rules guard each append and each
load, so a log that exists is well-formed.
"""

from __future__ import annotations

import attrs

from harness_core.session.errors import LogOrderError
from harness_core.session.events import (
    AssistantChunk,
    AssistantMessageLogged,
    EventData,
    RequestDispatch,
    RequestRetry,
    SessionSeeded,
    StepEnd,
    StepStart,
    ToolCallStarted,
    ToolResultLogged,
    TurnEnd,
    TurnStart,
)

__all__ = ["Nesting"]

_IN_STEP = (
    AssistantChunk,
    AssistantMessageLogged,
    ToolCallStarted,
    ToolResultLogged,
    RequestDispatch,
    RequestRetry,
)
_BOUNDARIES = (TurnStart, TurnEnd, StepStart, StepEnd, SessionSeeded)


@attrs.define
class Nesting:
    """Where the log stands. ``turn`` and ``step`` are the open ones, 0 when none is; ``last_turn`` is the highest ever."""

    turn: int = 0
    step: int = 0
    last_turn: int = 0
    last_step: int = 0

    @property
    def place(self) -> str:
        """In words, for messages."""
        if self.step:
            return f"in step {self.step} of turn {self.turn}"
        return f"in turn {self.turn}, between steps" if self.turn else f"between turns, after turn {self.last_turn}"

    def check(self, data: EventData) -> None:
        """Does the event fit here? Changes nothing.

        Raises:
            LogOrderError: it does not; the message names both.
        """
        kind = type(data)
        if kind in _IN_STEP:
            if not self.step or data.step != self.step or data.turn != self.turn:  # type: ignore[union-attr]
                self._refuse(data)
        elif kind in _BOUNDARIES and not self._admits(data):
            self._refuse(data)

    def _admits(self, data: EventData) -> bool:
        match data:
            case TurnStart(turn=turn):
                return not self.turn and turn == self.last_turn + 1
            case TurnEnd(turn=turn):
                return bool(self.turn) and not self.step and turn == self.turn
            case StepStart(turn=turn, step=step):
                return bool(self.turn) and not self.step and turn == self.turn and step == self.last_step + 1
            case StepEnd(turn=turn, step=step):
                return bool(self.step) and turn == self.turn and step == self.step
            case _:
                return not self.turn

    def apply(self, data: EventData) -> None:
        """Take an event that `check` let through."""
        if type(data) not in _BOUNDARIES:
            return
        match data:
            case TurnStart(turn=turn):
                self.turn = self.last_turn = turn
                self.last_step = 0
            case TurnEnd():
                self.turn = 0
            case StepStart(step=step):
                self.step = self.last_step = step
            case StepEnd():
                self.step = 0
            case _:
                pass

    def _refuse(self, data: EventData) -> None:
        numbers = ", ".join(f"{name} {getattr(data, name)}" for name in ("turn", "step") if hasattr(data, name))
        what = f"{data.type} ({numbers})" if numbers else data.type
        raise LogOrderError(
            f"The event {what} does not fit: the log stands {self.place}.",
            remedy="Turns and steps nest, turns are numbered on through the whole log and steps from 1 in each turn.",
            entry=data.type,
        )
