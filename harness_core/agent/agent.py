"""An agent: one session, one scope, one inbox, and the driver that conducts its turns one after another.

Owns waking, cancelling and the end. There is a task only while there is work; it belongs to the host's task group, and
nothing of a turn is left when it is gone.
"""

from __future__ import annotations

from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING

import anyio
import attrs

from harness_core.agent.errors import AgentDisposedError, AgentError, InputCanceledError
from harness_core.agent.inbox import Inbox
from harness_core.agent.requests import Requests
from harness_core.agent.runtime_context import RuntimeContext
from harness_core.agent.surroundings import Surroundings, log
from harness_core.agent.turn import Turn
from harness_core.errors import HarnessError
from harness_core.models import AssistantMessage, CallConfig, FailureFacts, UserMessage
from harness_core.session import (
    AbortCause,
    Event,
    EventData,
    Session,
    SurfaceOperation,
    TurnEnd,
    TurnReason,
    UserMessageLogged,
    closers,
)

if TYPE_CHECKING:
    from harness_core.host import Scope

__all__ = ["Agent", "AgentStatus", "TurnResult"]

_inside: ContextVar[tuple[Agent, ...]] = ContextVar("harness_agents_at_work", default=())
"""The agents in whose turns the current task runs: they cannot be waited for."""


class AgentStatus(Enum):
    """What an agent is doing."""

    IDLE = "idle"
    RUNNING = "running"
    DISPOSED = "disposed"


@attrs.frozen(kw_only=True)
class TurnResult:
    """What came of a turn. ``text`` is the model's last visible answer in it; see `TurnEnd` for the rest."""

    number: int
    reason: TurnReason
    text: str = ""
    cause: AbortCause | None = None
    detail: str | None = None
    failure: FailureFacts | None = None

    @property
    def ok(self) -> bool:
        """Did the turn come to an end of its own?"""
        return self.reason in ("completed", "max-tokens")


@attrs.define(eq=False)
class _Waiter:
    done: anyio.Event = attrs.field(factory=anyio.Event)
    result: TurnResult | None = None
    error: Exception | None = None


class Agent:
    """A conversation that goes on. Made by the host: ``await harness.create_agent(...)``."""

    def __init__(
        self,
        session: Session,
        scope: Scope,
        surroundings: Surroundings,
        config: CallConfig | None = None,
        default: CallConfig | None = None,
    ) -> None:
        self.session = session
        self.scope = scope
        self.surroundings = surroundings
        self.inbox = Inbox(session)
        self.runtime_context = RuntimeContext(session)
        self.requests = Requests(self, config or CallConfig(), default or CallConfig())
        self.status = AgentStatus.IDLE
        self.disposing = False
        self._turn: Turn | None = None
        self._waiters: dict[str, _Waiter] = {}
        self._quiet = anyio.Event()
        self._quiet.set()
        self.inbox.dropped = self._drop
        self._observation = session.observe(self._follow)
        scope.effects.add(self._leave, "the agent's session")
        scope.effects.before_undoing = self._stop

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def turn(self) -> int | None:
        """The number of the turn that is running."""
        return self._turn.number if self._turn is not None else None

    async def go_on(self) -> None:
        """Return at once, or be cancelled if the running turn is to stop (see `Turn.go_on`)."""
        if self._turn is not None:
            await self._turn.go_on()

    def _follow(self, event: Event) -> None:
        if type(event.data) is UserMessageLogged:
            self.runtime_context.follow(event)
        self.surroundings.hooks.session_event.notify(self.scope, self.session, event)

    # --- input --------------------------------------------------------------------------------------------------------

    def followup(self, message: str | UserMessage) -> UserMessage:
        """Queue a message for a turn of its own, and wake the agent (INBOX-01).

        Raises:
            AgentDisposedError, InboxError, StoreError: nothing was queued.
        """
        return self._queue("next-turn", message, wake=True)

    def steer(self, message: str | UserMessage) -> UserMessage:
        """Queue a message for the next step, and wake the agent: it redirects the running turn, or begins one."""
        return self._queue("next-step", message, wake=True)

    def inject(self, message: str | UserMessage) -> UserMessage:
        """Queue a message for the next step, whenever that comes."""
        return self._queue("next-step", message, wake=False)

    def _queue(self, target: str, message: str | UserMessage, *, wake: bool) -> UserMessage:
        if self.disposing:
            raise AgentDisposedError(f"The agent {self.id!r} is disposed and takes no messages.", agent=self.id)
        if isinstance(message, str):
            message = UserMessage(id=self.surroundings.new_id(), content=message)
        self.inbox.add(target, message, waking=wake)  # type: ignore[arg-type]
        if wake:
            self._wake()
        return message

    async def run(self, message: str | UserMessage) -> TurnResult:
        """Queue a message and wait for the end of the turn that takes it. Cancelling the wait cancels the turn.

        Raises:
            InputCanceledError: the message was taken out of the inbox before a turn took it.
            AgentDisposedError: the agent is disposed, or was before a turn took the message.
            AgentError: called from inside a turn of this agent, which would wait for itself.
        """
        self._refuse_inside("run")
        waiter = _Waiter()
        message = self.followup(message)
        self._waiters[message.id] = waiter
        try:
            await waiter.done.wait()
        except BaseException:  # cancelled, or interrupted from the keyboard
            if not (self.disposing or self.inbox.remove(message.id)):
                self.cancel(keep_queue=True)
            raise
        finally:
            self._waiters.pop(message.id, None)
        if waiter.error is not None:
            raise waiter.error
        if waiter.result is None:
            kind = AgentDisposedError if self.disposing else InputCanceledError
            raise kind(f"The message {message.id!r} left the inbox before a turn took it.", agent=self.id)
        return waiter.result

    def _drop(self, message: UserMessage) -> None:
        waiter = self._waiters.pop(message.id, None)
        if waiter is not None:
            waiter.done.set()

    def configure(self, **values: object) -> None:
        """Values of `CallConfig` that the next request starts with; they stay until changed again (HDR-05)."""
        self.requests.choose(CallConfig(**values))  # type: ignore[arg-type]

    # --- stopping -----------------------------------------------------------------------------------------------------

    def cancel(self, cause: AbortCause = "user", reason: str | None = None, *, keep_queue: bool = False) -> None:
        """Stop the running turn, and clear the inbox unless told to keep it (INBOX-05, CANCEL-01).

        What arrives from now on is worked off once the turn has wound down.
        """
        if keep_queue:
            self.inbox.sleep()
        else:
            self.inbox.clear()
        if self._turn is not None:
            self._turn.cancel(cause, reason)

    async def when_idle(self) -> None:
        """Return once nothing runs and nothing is about to.

        Raises:
            AgentError: called from inside a turn of this agent.
        """
        self._refuse_inside("when_idle")
        while not self._quiet.is_set():
            await self._quiet.wait()

    async def aclose(self) -> None:
        """Dispose the agent: stop, wait until it is quiet, undo its scope, close its session (CANCEL-03).

        A second call waits for the same end. From inside one of its own turns it only asks for the end, and returns.

        Raises:
            TeardownError: clean-ups of plugins failed; all others ran.
        """
        if self in _inside.get():
            self._ask_for_the_end()
            self.surroundings.tasks().start_soon(self._close_quietly)
            return
        await self.scope.aclose()

    async def _close_quietly(self) -> None:
        _inside.set(())  # this task is outside of the turn that it was started from, and can wait for it
        with anyio.CancelScope(shield=True):
            try:
                await self.scope.aclose()
            except Exception:
                log.exception("Disposing the agent %r from inside its own turn failed in part.", self.id)

    def _ask_for_the_end(self) -> None:
        self.disposing = True
        if self._turn is not None:
            self._turn.cancel("disposed")

    async def _stop(self) -> None:
        """What the scope waits for before it is taken apart: the driver is quiet, even where it ignores cancelling."""
        self._ask_for_the_end()
        if self not in _inside.get():
            while not self._quiet.is_set():
                await self._quiet.wait()
        for waiter in list(self._waiters.values()):
            waiter.done.set()
        self._show(AgentStatus.DISPOSED)

    def _leave(self) -> None:
        self._observation.dispose()
        self.session.close()

    def _refuse_inside(self, what: str) -> None:
        if self in _inside.get():
            raise AgentError(
                f"{what}() was called from inside a turn of agent {self.id!r}: it would wait for itself.",
                remedy="Use followup(), steer() or inject() there.",
                agent=self.id,
            )

    # --- the driver ---------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._quiet.is_set():
            tasks = self.surroundings.tasks()
            self._quiet = anyio.Event()
            tasks.start_soon(self._drive, name=f"agent {self.id}")

    async def _drive(self) -> None:
        token = _inside.set((*_inside.get(), self))
        try:
            self._show(AgentStatus.RUNNING)
            while not self.disposing and await self._conduct_turn():
                pass
        finally:
            _inside.reset(token)
            self._quiet.set()
            if self.status is AgentStatus.RUNNING:
                self._show(AgentStatus.IDLE)

    async def _conduct_turn(self) -> bool:
        """Conduct one turn; True when the next one is due at once (INBOX-04).

        A turn that ended blocked or in error leaves the rest of the queue to the next wake, unless somebody waits for it.
        """
        try:
            self._mend()
            turn = self._turn = Turn(self)
            first = len(self.session.events)
            try:
                end = await turn.run()
            finally:
                self._turn = None
        except Exception as error:  # reported: whatever it is, it must not end the other agents' tasks
            log.error("Agent %r could not begin a turn.", self.id, exc_info=error)
            self._fail_waiters(error)
            return False
        self._answer_waiters(turn, end, first)
        if end.reason in ("error", "blocked"):
            if not turn.claimed and end.failure is not None:
                self._fail_waiters(AgentError(f"No turn could begin: {end.failure.message}", agent=self.id))
            return bool(self._waiters) and self.inbox.wants_turn
        return self.inbox.wants_turn

    def _fail_waiters(self, error: Exception) -> None:
        for waiter in self._waiters.values():
            waiter.error = error
            waiter.done.set()
        self._waiters.clear()

    def _mend(self) -> None:
        """Close what an earlier turn could not, because the store had failed by then."""
        for data, surface in closers(self.session.events):
            self.session.append(data, surface)

    def _answer_waiters(self, turn: Turn, end: TurnEnd, first: int) -> None:
        waiting = [waiter for each in turn.claimed if (waiter := self._waiters.pop(each, None)) is not None]
        if waiting:
            result = TurnResult(
                number=end.turn,
                reason=end.reason,
                text=self._last_text(first),
                cause=end.cause,
                detail=end.detail,
                failure=end.failure,
            )
            for waiter in waiting:
                waiter.result = result
                waiter.done.set()

    def _last_text(self, first: int) -> str:
        events = self.session.events
        for place in range(len(events) - 1, first - 1, -1):
            message = getattr(events[place].data, "message", None)
            if isinstance(message, AssistantMessage):
                return message.text
        return ""

    def _show(self, status: AgentStatus) -> None:
        if self.status is not status:
            self.status = status
            self.surroundings.hooks.agent_status.notify(self.scope, self, status.value)

    def log_while_ending(self, data: EventData, surface: SurfaceOperation | None = None) -> bool:
        """Log on the way out, where the first error is the one to be raised; a further one is reported.

        False when it could not be logged. What would have followed must not be logged then: the turn stays open in the
        log, and the next one, or the next process, closes it in the right order.
        """
        try:
            self.session.append(data, surface)
        except HarnessError:
            log.exception("Agent %r could not log %s while its turn was ending.", self.id, data.type)
            return False
        return True

    def __repr__(self) -> str:
        return f"<Agent {self.id!r} {self.status.value}>"
