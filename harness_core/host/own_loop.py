"""The steps of one conversation in somebody else's loop: which turn and step it is, and what has been told already.

Owns no conversation: the session holds only what steps told to append, so that nothing is told twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness_core.agent import PreparedStep
from harness_core.hooks import ToolOutcome
from harness_core.models import UserMessage
from harness_core.session import APPEND, Session, UserMessageLogged, random_id

if TYPE_CHECKING:
    from harness_core.host.harness import Harness
    from harness_core.host.scope import Scope

__all__ = ["OwnLoop"]


class OwnLoop:
    """One conversation that another framework conducts.

    ``await loop.begin(question)`` before the framework's run, ``await loop.proceed()`` before each further model request,
    and ``await loop.call_tool(...)`` for what the model calls. Append the ``messages`` of each step to the framework's
    conversation.

    Args:
        harness: a running one.
        session: remembers what was told; one in memory by default. Where the framework drops messages from its
            conversation, go on with a new one: then everything that still holds is told again.
        scope: whose prompt and tools are meant; the global one by default.
        cwd: the working directory of a session that is made here.
    """

    def __init__(
        self, harness: Harness, session: Session | None = None, *, scope: Scope | None = None, cwd: str = "/"
    ) -> None:
        self.session = session if session is not None else Session.create(random_id(), cwd=cwd)
        self.turn = self.session.nesting.last_turn
        """The number of the turn that was begun last."""
        self.number = 0
        """The number of the step within it."""
        self._harness = harness
        self._scope = scope
        self._step: PreparedStep | None = None
        self._waiting: list[UserMessage] = []

    @property
    def step(self) -> PreparedStep:
        """The step that was prepared last.

        Raises:
            RuntimeError: none was.
        """
        if self._step is None:
            raise RuntimeError("No step was prepared: begin() comes first.")
        return self._step

    async def begin(self, *messages: str | UserMessage) -> PreparedStep:
        """The first step of a turn, with what the user said.

        Raises:
            Exception: see `Harness.prepare_step`; what could not be written into the session.
        """
        self.turn += 1
        self.number = 0
        return await self.proceed(*messages)

    async def proceed(self, *messages: str | UserMessage) -> PreparedStep:
        """The next step of the turn: before the model is asked again, with the results of its calls.

        What tools left for this step comes first. ``step.rejected`` is the reason where a listener refused it.

        Raises:
            Exception: see `begin`.
        """
        claimed, self._waiting = [*self._waiting, *messages], []
        self.number += 1
        step = await self._harness.prepare_step(
            self.session, claimed, scope=self._scope, turn=self.turn, step=self.number
        )
        for message in step.messages:
            self.session.append(UserMessageLogged(message=message), APPEND)
        self._step = step
        return step

    async def call_tool(
        self, name: str, arguments: str | Mapping[str, Any] = "", *, call_id: str | None = None
    ) -> ToolOutcome:
        """Carry out a call that the model asked for in its answer to the last step; see `PreparedStep.call_tool`.

        Raises:
            Exception: see there.
        """
        outcome = await self.step.call_tool(name, arguments, call_id=call_id)
        self._waiting += outcome.messages
        return outcome
