"""A turn: the state machine of the loop, all of it.

A turn is *open* once its start is logged. At each boundary it is *proposing*: what waits in the inbox is claimed, the
prompt assembled, the listeners asked. If they agree it is *stepping*: one model request with its tools. A step that
leaves results to answer leads to the next proposal; one that does not leads to *stopping*, where plugins may steer the
turn on. It is *ended* when its end is logged, which happens whatever else happens: completed, max-tokens, blocked,
aborted or error. Nothing is logged for a turn after that. The table below holds every move there is.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import anyio
import attrs
from anyio.lowlevel import checkpoint

from harness_core.agent.errors import AgentError
from harness_core.agent.failures import failure_of
from harness_core.agent.proposal import Proposal, propose
from harness_core.agent.step import StepResult, run_step
from harness_core.agent.surroundings import log
from harness_core.hooks import Reject
from harness_core.models import UserMessage
from harness_core.prompt import AssembleContext
from harness_core.session import AbortCause, TurnEnd, TurnStart, closers

if TYPE_CHECKING:
    from harness_core.agent.agent import Agent

__all__ = ["Turn", "TurnState"]


class TurnState(Enum):
    """Where a turn stands."""

    OPEN = "open"
    PROPOSING = "proposing"
    STEPPING = "stepping"
    STOPPING = "stopping"
    ENDED = "ended"


_MOVES: dict[TurnState, frozenset[TurnState]] = {
    TurnState.OPEN: frozenset({TurnState.PROPOSING, TurnState.ENDED}),
    TurnState.PROPOSING: frozenset({TurnState.STEPPING, TurnState.ENDED}),
    TurnState.STEPPING: frozenset({TurnState.PROPOSING, TurnState.STOPPING, TurnState.ENDED}),
    TurnState.STOPPING: frozenset({TurnState.PROPOSING, TurnState.ENDED}),
    TurnState.ENDED: frozenset(),
}


@attrs.frozen
class _Cancellation:
    cause: AbortCause
    reason: str | None


class Turn:
    """One turn of one agent, from its start in the log to its end."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.number = agent.session.nesting.last_turn + 1
        self.step = 0
        self.state = TurnState.OPEN
        self.claimed: list[str] = []
        """The ids of the messages that this turn took from the inbox."""
        self._scope = anyio.CancelScope()
        self._cancellation: _Cancellation | None = None
        self._cut_off = False

    def cancel(self, cause: AbortCause, reason: str | None = None) -> None:
        """Stop at the next await; the first cause stands (CANCEL-01)."""
        if self._cancellation is None:
            self._cancellation = _Cancellation(cause, reason)
            self._scope.cancel()

    @property
    def canceled(self) -> bool:
        return self._cancellation is not None

    async def go_on(self) -> None:
        """Called after everything that plugins were waited for: whoever ignored being cancelled stops here."""
        if self._cancellation is not None:
            await checkpoint()

    async def run(self) -> TurnEnd:
        """Conduct the turn; returns its logged end. Raises nothing but a cancellation from outside."""
        self.agent.session.append(TurnStart(turn=self.number))
        end: TurnEnd | None = None
        try:
            with self._scope:
                end = await self._conduct()
        except Exception as error:
            end = TurnEnd(turn=self.number, reason="error", failure=failure_of(error))
            self._report(error)
        except BaseException as error:
            self.cancel(self._cause_outside(error))
            self._end(None)
            raise
        return self._end(end)

    def _cause_outside(self, error: BaseException) -> AbortCause:
        """Nobody asked this turn to stop: the keyboard did, or whatever is around the harness."""
        if isinstance(error, KeyboardInterrupt):
            return "user"
        return "disposed" if self.agent.disposing else "parent"

    def _report(self, error: Exception) -> None:
        if self._cancellation is None:
            log.error("Turn %d of agent %r failed.", self.number, self.agent.id, exc_info=error)

    # --- the way through a turn ---------------------------------------------------------------------------------------

    async def _conduct(self) -> TurnEnd:
        while True:
            await checkpoint()  # others run too, however fast a model and its tools are
            self._move(TurnState.PROPOSING)
            answer_due = self.step > 0 and self._results_due
            proposal = await self._propose(answer_due)
            await self.go_on()
            decision = proposal.decision
            if isinstance(decision, Reject):
                return TurnEnd(turn=self.number, reason="blocked", detail=decision.reason)
            if not decision.messages and not answer_due:
                return self._completed()
            self._move(TurnState.STEPPING)
            self.step += 1
            result = await run_step(self.agent, self.number, self.step, decision.messages, proposal.assembly)
            await self.go_on()
            self._cut_off = self._cut_off or result.cut_off
            if not self._goes_on(result):
                self._move(TurnState.STOPPING)
                await self.agent.surroundings.hooks.agent_turn_stopping.notify_async(
                    self.agent.scope, self.agent, self.number
                )
                await self.go_on()
                if not (self.agent.inbox.steered if result.concluded else self.agent.inbox.next_step):
                    return self._completed()

    _results_due = False

    def _goes_on(self, result: StepResult) -> bool:
        """Is there another step without anybody having to ask for it (TURN-02, TURN-03)?"""
        self._results_due = result.called and not result.concluded
        if result.concluded:
            return self.agent.inbox.steered
        return self._results_due or bool(self.agent.inbox.next_step)

    async def _propose(self, answer_due: bool) -> Proposal:
        agent, first = self.agent, self.step == 0
        claimed: tuple[UserMessage, ...] = agent.inbox.claim(first=first)
        self.claimed += [message.id for message in claimed]
        context = AssembleContext.of(agent, turn=self.number, step=self.step + 1)
        # A boundary that nothing was claimed at is no reason to tell a model about its surroundings (INBOX-04).
        with_context = bool(claimed) or not first
        return await propose(
            agent.surroundings,
            context,
            agent.scope,
            claimed,
            agent.runtime_context,
            with_context=with_context,
            results_due=answer_due,
        )

    def _completed(self) -> TurnEnd:
        return TurnEnd(turn=self.number, reason="max-tokens" if self._cut_off else "completed")

    # --- the end ------------------------------------------------------------------------------------------------------

    def _end(self, end: TurnEnd | None) -> TurnEnd:
        """Close what is open and log the end. Synchronous: nothing can come between (PRE-03)."""
        cancellation = self._cancellation
        if cancellation is not None:
            end = TurnEnd(turn=self.number, reason="aborted", cause=cancellation.cause, detail=cancellation.reason)
        assert end is not None
        self._move(TurnState.ENDED)
        session = self.agent.session
        for data, surface in closers(session.events):
            if not self.agent.log_while_ending(end if isinstance(data, TurnEnd) else data, surface):
                break
        return end

    def _move(self, to: TurnState) -> None:
        if to not in _MOVES[self.state]:
            raise AgentError(
                f"Turn {self.number} cannot move from {self.state.value} to {to.value}.", agent=self.agent.id
            )
        self.state = to
