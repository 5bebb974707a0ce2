"""Tool calls for a loop of one's own: under the same policy and rules as an agent's, but recorded by nobody.

Calls that may not run beside others wait for them, in the order in which they were asked for: most loops start all
calls of an answer at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs

from harness_core._json import freeze_object
from harness_core.agent.arguments import parsed
from harness_core.agent.offered import OfferedTools, bounded
from harness_core.agent.surroundings import Surroundings
from harness_core.hooks import ToolCall, ToolOutcome
from harness_core.models import ToolSchema
from harness_core.prompt import AssembleContext
from harness_core.scopes import ScopeNode

__all__ = ["StepCalls"]


class _Gate:
    """Lets calls in one after another; one that must be alone waits for those inside, and holds up those behind it."""

    def __init__(self) -> None:
        self._entry = anyio.Lock()  # fair: first come, first served
        self._inside = 0
        self._left = anyio.Event()

    @asynccontextmanager
    async def passed(self, *, alone: bool) -> AsyncIterator[None]:
        if alone:
            async with self._entry:
                while self._inside:
                    await self._left.wait()
                yield
            return
        async with self._entry:
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            left, self._left = self._left, anyio.Event()
            left.set()


class StepCalls:
    """Carries out calls of the tools that one prepared step offers."""

    def __init__(
        self, surroundings: Surroundings, context: AssembleContext, scope: ScopeNode, schemas: tuple[ToolSchema, ...]
    ) -> None:
        self._surroundings = surroundings
        self._context = context
        self._scope = scope
        self._offered = OfferedTools(surroundings, scope, {schema.name: schema for schema in schemas})
        self._gate = _Gate()

    async def call(self, name: str, arguments: str | Mapping[str, Any], call_id: str | None) -> ToolOutcome:
        """What the call comes to, cut to the limit of a tool result."""
        surroundings, context = self._surroundings, self._context
        call = ToolCall(
            id=call_id if call_id is not None else surroundings.new_id(),
            name=name,
            arguments=parsed(arguments)
            if isinstance(arguments, str)
            else freeze_object(arguments, what="The arguments of a tool call"),
            turn=context.turn or 1,
            step=context.step or 1,
            scope=self._scope,
            schema=self._offered.schemas.get(name),
            cwd=context.cwd,
            agent=context.agent,
            session=context.session,
        )
        async with self._gate.passed(alone=not self._offered.parallel_safe(call)):
            outcome: ToolOutcome = await surroundings.hooks.tool_call.dispatch(
                self._scope, call, None, self._offered.carry_out
            )
        return attrs.evolve(outcome, content=bounded(outcome.content, surroundings.limits.tool_result))
