"""One step for people who have a loop of their own: what to tell the model, without a model, a turn or an agent.

Uses the same proposal and the same way of calling tools as the agent's loop, and records nothing; what the caller
appends is up to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from harness_core._json import FrozenDict, freeze_object
from harness_core.agent.agent import Agent
from harness_core.agent.proposal import propose
from harness_core.agent.provenance import provenance
from harness_core.agent.runtime_context import RuntimeContext
from harness_core.agent.step_calls import StepCalls
from harness_core.agent.surroundings import Surroundings
from harness_core.hooks import Reject, ToolOutcome
from harness_core.models import ToolSchema, UserMessage
from harness_core.prompt import AssembleContext, render_prompt
from harness_core.scopes import ScopeNode
from harness_core.session import Session

__all__ = ["PreparedStep", "prepare_step"]


@attrs.frozen(kw_only=True)
class PreparedStep:
    """What a step is told. ``rejected`` is the reason where a listener refused the step; then the rest is empty.

    ``messages`` are to be appended to the conversation, in order; ``provenance`` says which plugin contributed what to
    system text and tools. Calls that the model answers with are carried out by `call_tool`.
    """

    _calls: StepCalls = attrs.field(alias="calls", repr=False, eq=False)

    system: str = ""
    tools: tuple[ToolSchema, ...] = ()
    messages: tuple[UserMessage, ...] = ()
    rejected: str | None = None
    provenance: FrozenDict = attrs.field(factory=FrozenDict)

    async def call_tool(
        self, name: str, arguments: str | Mapping[str, Any] = "", *, call_id: str | None = None
    ) -> ToolOutcome:
        """Carry out a call that the model asked for in its answer to this step, through the ``tool_call`` listeners.

        ``arguments`` are the text that the model wrote, or the object that somebody parsed. The same rules as in an
        agent's turn hold: only a tool that the step offers is called, arguments have to fit its schema, what the handler
        raises is an outcome with an ``error``, and the content is cut to the host's limit of characters. Calls may be
        started at once: those that are not safe beside others wait for them. Nothing is recorded; ``outcome.messages``
        are to be handed to the next step.

        Raises:
            JsonValueError: an object of arguments is not lossless JSON.
            Exception: what a listener raised.
        """
        return await self._calls.call(name, arguments, call_id)


async def prepare_step(
    surroundings: Surroundings,
    target: Agent | Session | ScopeNode,
    messages: Iterable[str | UserMessage] = (),
    *,
    scope: ScopeNode | None = None,
    cwd: str | None = None,
    turn: int = 1,
    step: int = 1,
) -> PreparedStep:
    """Assemble and render one step.

    ``target`` is an agent, a session that the caller writes to itself, or a scope. With a session, a runtime-context
    snapshot is among the messages only when it differs from the one that the session still shows. An agent's step is
    only looked at: listeners are told so (``PreStep.preview``), and its inbox and its session stay as they are.

    Raises:
        Exception: what assembly, rendering or a listener raised.
    """
    claimed = tuple(
        UserMessage(id=surroundings.new_id(), content=each) if isinstance(each, str) else each for each in messages
    )
    agent = target if isinstance(target, Agent) else None
    session = target if isinstance(target, Session) else agent.session if agent is not None else None
    if isinstance(target, ScopeNode):
        scope = target
    elif agent is not None:
        scope = agent.scope
    elif scope is None:
        scope = surroundings.prompt.root
    runtime_context = agent.runtime_context if agent is not None else RuntimeContext(session)
    context = AssembleContext(
        scope=scope,
        agent=agent,
        session=session,
        cwd=session.cwd if session is not None else cwd,
        turn=turn,
        step=step,
    )
    proposal = await propose(
        surroundings, context, scope, claimed, runtime_context, results_due=step > 1, preview=agent is not None
    )
    if isinstance(proposal.decision, Reject):
        return PreparedStep(calls=StepCalls(surroundings, context, scope, ()), rejected=proposal.decision.reason)
    assembly = proposal.assembly
    tools = tuple(assembly.tools)
    return PreparedStep(
        calls=StepCalls(surroundings, context, scope, tools),
        system=render_prompt(assembly),
        tools=tools,
        messages=proposal.decision.messages,
        provenance=freeze_object(provenance(surroundings, scope, assembly)),
    )
