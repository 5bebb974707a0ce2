"""The tool calls of one step: order, parallelism, policy, validation, and what becomes of them when the turn is cut short.

Calls start in the model's order and their results are logged in that order, whatever finishes first (TOOLX-02). Every
call of a step has exactly one ``tool/call`` and one ``tool/result`` when this module is left, however it is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import attrs

from harness_core.agent.arguments import parsed
from harness_core.agent.offered import OfferedTools, bounded
from harness_core.hooks import ToolCall, ToolOutcome
from harness_core.models import ToolCallBlock, ToolResultMessage
from harness_core.session import APPEND, ToolCallStarted, ToolResultLogged

if TYPE_CHECKING:
    from harness_core.agent.agent import Agent

__all__ = ["ToolPhase"]

NOT_DISPATCHED = "ABORTED_BEFORE_DISPATCH"
ABORTED = "ABORTED_WHILE_RUNNING"

_TEXTS = {
    NOT_DISPATCHED: "This call was not run: the turn was stopped before it started.",
    ABORTED: "The turn was stopped while this call was running. It may have taken effect, fully or in part.",
}


@attrs.define(eq=False)
class _Slot:
    """One call on its way: ``announced`` once its ``tool/call`` is logged, ``settled`` once its result is."""

    block: ToolCallBlock
    call: ToolCall
    outcome: ToolOutcome | None = None
    announced: bool = False
    settled: bool = False
    reached: anyio.Event | None = None
    """Policy has let the call through, or has answered it: the next one may start."""


class ToolPhase:
    """Carries out the calls of one answer."""

    def __init__(self, agent: Agent, turn: int, step: int, calls: tuple[ToolCallBlock, ...]) -> None:
        self._agent = agent
        self._turn = turn
        self._step = step
        self._offered = OfferedTools(agent.surroundings, agent.scope, agent.requests.offered)
        self._slots = [_Slot(block, self._call(block)) for block in calls]
        self._failures: list[Exception] = []

    def _call(self, block: ToolCallBlock) -> ToolCall:
        agent = self._agent
        return ToolCall(
            id=block.id,
            name=block.name,
            arguments=parsed(block.arguments),
            turn=self._turn,
            step=self._step,
            scope=agent.scope,
            schema=self._offered.schemas.get(block.name),
            cwd=agent.session.cwd,
            agent=agent,
            session=agent.session,
        )

    async def run(self) -> bool:
        """Carry out all calls; True when one of them concludes the turn (TURN-03).

        Raises:
            Exception: what a listener raised. The calls that were left have error results.
        """
        place = 0
        try:
            while place < len(self._slots):
                await self._agent.go_on()
                if self._parallel(place):
                    place = await self._run_together(place)
                else:
                    await self._run_one(self._slots[place])
                    place += 1
            await self._agent.go_on()
        except BaseException:
            self._settle_all()
            raise
        outcomes = [slot.outcome for slot in self._slots if slot.outcome is not None]
        for outcome in outcomes:
            for message in outcome.messages:
                self._agent.inbox.add("next-step", message)
        return any(outcome.conclude for outcome in outcomes)

    def _parallel(self, place: int) -> bool:
        """Is the call safe beside others, as of now (TOOLX-02)?"""
        return self._offered.parallel_safe(self._slots[place].call)

    async def _run_together(self, place: int) -> int:
        pool = anyio.Semaphore(self._agent.surroundings.limits.tool_pool)
        async with anyio.create_task_group() as group:
            while True:
                slot = self._slots[place]
                await pool.acquire()
                reached = slot.reached = anyio.Event()
                group.start_soon(self._run_pooled, slot, pool, group.cancel_scope)
                await reached.wait()
                place += 1
                if self._failures or place == len(self._slots) or not self._parallel(place):
                    break
        if self._failures:
            raise self._failures[0]
        return place

    async def _run_pooled(self, slot: _Slot, pool: anyio.Semaphore, others: anyio.CancelScope) -> None:
        try:
            await self._run_one(slot)
        except Exception as error:
            self._failures.append(error)  # raised when the pool is empty; a group would wrap it
            others.cancel()
        finally:
            _pass_on(slot)
            pool.release()

    async def _run_one(self, slot: _Slot) -> None:
        async def carry_out(call: ToolCall) -> ToolOutcome:
            self._announce(slot)
            _pass_on(slot)
            return await self._offered.carry_out(call)

        agent = self._agent
        slot.outcome = await agent.surroundings.hooks.tool_call.dispatch(agent.scope, slot.call, None, carry_out)
        self._announce(slot)
        self._settle_finished()

    # --- logging ------------------------------------------------------------------------------------------------------

    def _announce(self, slot: _Slot) -> None:
        if not slot.announced:
            self._agent.session.append(self._started(slot))
            slot.announced = True

    def _settle_finished(self) -> None:
        """Log the results that are due: in the model's order, each once all before it are logged."""
        for slot in self._slots:
            if slot.outcome is None:
                return
            if not slot.settled:
                self._agent.session.append(self._result(slot, slot.outcome), APPEND)
                slot.settled = True

    def _settle_all(self) -> None:
        """The turn is cut short: what started has its result, or the word that it was stopped; the others never ran."""
        for slot in self._slots:
            if not slot.settled and not self._settle(slot):
                return

    def _settle(self, slot: _Slot) -> bool:
        code = ABORTED if slot.announced else NOT_DISPATCHED
        outcome = slot.outcome or ToolOutcome(content=_TEXTS[code], error=code)
        agent = self._agent
        if not slot.announced and not agent.log_while_ending(self._started(slot)):
            return False
        return agent.log_while_ending(self._result(slot, outcome), APPEND)

    def _started(self, slot: _Slot) -> ToolCallStarted:
        block = slot.block
        return ToolCallStarted(
            turn=self._turn, step=self._step, call_id=block.id, name=block.name, arguments=block.arguments
        )

    def _result(self, slot: _Slot, outcome: ToolOutcome) -> ToolResultLogged:
        """Under the model's call id, whatever a listener made of the call (TOOLX-06)."""
        message = ToolResultMessage(
            call_id=slot.block.id,
            name=slot.block.name,
            content=bounded(outcome.content, self._agent.surroundings.limits.tool_result),
            is_error=outcome.error is not None,
        )
        return ToolResultLogged(
            turn=self._turn, step=self._step, message=message, error=outcome.error, meta=outcome.meta
        )


def _pass_on(slot: _Slot) -> None:
    if slot.reached is not None:
        slot.reached.set()
