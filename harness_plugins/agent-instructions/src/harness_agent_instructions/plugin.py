"""The plugin: what it listens to, and how a message that is due gets into a step or waits for one (1.4, 1.5)."""

from __future__ import annotations

import os
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import anyio

from harness_agent_instructions._calls import TOUCHING_TOOLS, OpenCalls
from harness_agent_instructions._compose import compose
from harness_agent_instructions._places import find_project, touched_directories
from harness_agent_instructions._reading import Reader
from harness_agent_instructions._state import payload
from harness_agent_instructions._talk import Talk, ours, put_back, put_in
from harness_agent_instructions.config import Config, Settings
from harness_core import Enter, FileSystem, PluginContext, PreStep, Reject, ToolCall, ToolOutcome, UserMessage, hookimpl
from harness_core.agent import Agent
from harness_core.scopes import ScopeNode
from harness_core.session import Event, Session, StepEnd, ToolResultLogged, TurnEnd

__all__ = ["AgentInstructions"]


class AgentInstructions:
    """Puts what AGENTS.md and CLAUDE.md files say into conversations, and keeps it up with the files.

    Args:
        environ: where the user's folder is looked up.
        user_home: the home directory of the operating system's user.
    """

    name = "agent-instructions"
    Config = Config

    def __init__(self, *, environ: Mapping[str, str] | None = None, user_home: str | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._user_home = user_home
        self._active: tuple[PluginContext, Settings] | None = None
        self._talks: weakref.WeakKeyDictionary[Session, Talk] = weakref.WeakKeyDictionary()
        self._calls = OpenCalls()
        self._projections: set[anyio.CancelScope] = set()

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> Iterator[None]:
        user_home = self._user_home if self._user_home is not None else os.path.expanduser("~")
        self._active = (ctx, Settings.of(ctx.config, self._environ, user_home))
        yield
        self._active = None
        for scope in tuple(self._projections):
            scope.cancel()

    # --- a proposed step ----------------------------------------------------------------------------------------------

    @hookimpl
    async def agent_pre_step(
        self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
    ) -> Enter | Reject:
        """Let the step have what is due, behind the last claimed message; or let it wait for one that begins."""
        decision = await call_next()
        talk = self._talk(step.session)
        async with talk.lock:
            return await self._admit(step, decision, talk)

    async def _admit(self, step: PreStep, decision: Enter | Reject, talk: Talk) -> Enter | Reject:
        inbox = step.agent.inbox if step.agent is not None else None
        # Where nothing begins, a context alone is no reason to ask a model.
        refused = isinstance(decision, Reject) or not (decision.messages or step.results_due)
        claimed = ours(step.claimed) if self._files(step.scope) is not None else []
        if refused and inbox is not None and claimed and not step.preview:
            # What waited goes on waiting, as it is: it is corrected once it has entered.
            put_back(inbox, claimed)
            return decision
        message = await self._desired(step, talk)
        if self._active is None:
            return decision
        if inbox is not None and not step.preview:
            put_in(inbox, message if refused else None)
        if isinstance(decision, Reject) or refused:
            return decision
        if message is None or talk.says(message, step.claimed) or _among(decision.messages, message):
            return decision
        return Enter(_inserted(decision.messages, step.claimed, message))

    async def _desired(self, step: PreStep, talk: Talk) -> UserMessage | None:
        """The message that is due, without regard to whether the step takes it."""
        waiting = ours(step.agent.inbox.next_step) if step.agent is not None else []
        talk.find_lost([*step.claimed, *waiting])
        if self._files(step.scope) is None or step.cwd is None:
            return None
        if waiting and not talk.due and all(payload(each) == payload(waiting[0]) for each in waiting):
            return waiting[0]
        return await self._composed(talk, step.scope, step.cwd, waiting, step.claimed)

    async def _composed(
        self,
        talk: Talk,
        scope: ScopeNode,
        cwd: str,
        waiting: Sequence[UserMessage],
        claimed: Sequence[UserMessage] = (),
    ) -> UserMessage | None:
        """What is due by the files, with what ``waiting`` messages were to tell of."""
        files, active = self._files(scope), self._active
        if files is None or active is None:
            return None
        ctx, settings = active
        for each in waiting:
            talk.take_up(each)
        reader = Reader(files, settings.max_source_bytes, talk.memory)
        project = await find_project(reader, cwd, settings)
        touched = {*talk.touched, *(directory.path for directory in project.nested((), talk.lost))}

        def failed(directory: str, error: Exception) -> None:
            ctx.log.warning("Instructions in %s, where a tool worked, cannot be loaded.", directory, exc_info=error)

        due = await compose(project, reader, talk.view(claimed), touched, failed)
        message = due.draft.message(ctx.harness.agents.surroundings.new_id()) if due.draft is not None else None
        if message is not None:
            message = next((each for each in waiting if payload(each) == payload(message)), message)
        talk.done(touched, due.waiting, message)
        return message

    def _talk(self, session: Session | None) -> Talk:
        if session is None:
            return Talk(None)
        talk = self._talks.get(session)
        if talk is None:
            talk = self._talks[session] = Talk(session)
        return talk

    def _files(self, scope: ScopeNode) -> FileSystem | None:
        """The file system to look at; None where the plugin has nothing to do."""
        if self._active is None or not self._active[1].max_bytes:
            return None
        service: type[Any] = FileSystem
        found: FileSystem | None = self._active[0].services.get(service, scope)
        return found

    # --- what tools touch ---------------------------------------------------------------------------------------------

    @hookimpl(tryfirst=True)
    async def tool_call(self, call: ToolCall, call_next: Callable[..., Awaitable[ToolOutcome]]) -> ToolOutcome:
        """Note where a tool worked once its call, and the calls around it, have come back."""
        own: tuple[str, ...] = ()
        with self._calls.entered(call) as mine:
            try:
                outcome = await call_next()
                if outcome.error is None:
                    own = _touched(mine.call)
                return outcome
            finally:
                if mine.outer is not None:
                    mine.outer.inner += (*mine.inner, *own)
                elif mine.inner or own:
                    self._settled(call, mine.inner, own)

    @hookimpl(trylast=True, specname="tool_call")
    def note_call(self, call: ToolCall) -> None:
        """See the call as it is carried out, whatever listeners made of it."""
        current = self._calls.current
        if current is not None:
            current.call = call

    def _settled(self, call: ToolCall, inner: Sequence[str], own: tuple[str, ...]) -> None:
        """An outermost call is over. Whether it succeeded is final when it is logged: listeners further out may differ."""
        if call.agent is None or call.session is None:
            return
        talk, nesting = self._talk(call.session), call.session.nesting
        talk.agent = weakref.ref(call.agent)
        if nesting.step:
            talk.hold_back(inner)
            talk.unconfirmed[call.id] = own
            return
        talk.touched.update((*inner, *own))
        if not nesting.turn:
            self._begin_projection(talk)

    @hookimpl
    def session_event(self, session: Session, event: Event) -> None:
        """Follow results, the ends of steps, and the ends of turns."""
        data = event.data
        kind = type(data)
        if kind is not ToolResultLogged and kind is not StepEnd and kind is not TurnEnd:
            return
        talk = self._talks.get(session)
        if talk is None:
            return
        if isinstance(data, ToolResultLogged):
            directories = talk.unconfirmed.pop(data.message.call_id, ())
            if data.error is None:
                talk.hold_back(directories)
        elif kind is StepEnd:
            talk.release()
        elif talk.due:
            # No further step of this turn looks after it; what was touched waits in the inbox for the next turn.
            self._begin_projection(talk)

    def _begin_projection(self, talk: Talk) -> None:
        if self._active is not None:
            self._active[0].harness.tasks.start_soon(self._project, talk, name="agent instructions")

    async def _project(self, talk: Talk) -> None:
        """Let what tools touched wait in the inbox. Its life is the plugin's, whatever becomes of the tools' own."""
        active = self._active
        if active is None:
            return
        with anyio.CancelScope() as scope:
            self._projections.add(scope)
            try:
                async with talk.lock:
                    agent = talk.agent() if talk.agent is not None else None
                    if agent is not None and talk.due:
                        await self._project_for(agent, talk)
            except Exception:
                active[0].log.warning("Instructions where tools worked cannot be loaded.", exc_info=True)
            finally:
                self._projections.discard(scope)

    async def _project_for(self, agent: Agent, talk: Talk) -> None:
        if self._files(agent.scope) is None:
            return
        waiting = ours(agent.inbox.next_step)
        if not agent.session.nesting.turn:
            talk.find_lost(waiting)  # within a turn a message may be on its way that only the step knows
        message = await self._composed(talk, agent.scope, agent.session.cwd, waiting)
        if self._active is not None and not agent.disposing:
            put_in(agent.inbox, message)


def _touched(call: ToolCall) -> tuple[str, ...]:
    if call.name not in TOUCHING_TOOLS or call.session is None or not isinstance(call.arguments, Mapping):
        return ()
    return touched_directories(call.session.cwd, call.arguments.get("file_path"))


def _among(messages: Iterable[UserMessage], message: UserMessage) -> bool:
    return any(payload(each) == payload(message) for each in ours(messages))


def _inserted(
    messages: Sequence[UserMessage], claimed: Sequence[UserMessage], message: UserMessage
) -> tuple[UserMessage, ...]:
    """Behind the last claimed message that is still there, told by its id (X-07); in front where none is left."""
    ids = {each.id for each in claimed}
    place = max((index + 1 for index, each in enumerate(messages) if each.id in ids), default=0)
    return (*messages[:place], message, *messages[place:])
