"""One step for people who have a loop of their own: what to tell the model, without a model, a turn or an agent.

Uses the same proposal as the agent's loop and records nothing; what the caller appends is up to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness_core._json import FrozenDict, freeze_object
from harness_core.agent.agent import Agent
from harness_core.agent.proposal import propose
from harness_core.agent.provenance import provenance
from harness_core.agent.runtime_context import RuntimeContext
from harness_core.agent.surroundings import Surroundings
from harness_core.hooks import Reject
from harness_core.models import ToolSchema, UserMessage
from harness_core.prompt import AssembleContext, render_prompt
from harness_core.scopes import ScopeNode
from harness_core.session import Session

__all__ = ["PreparedStep", "prepare_step"]


@attrs.frozen(kw_only=True)
class PreparedStep:
    """What a step is told. ``rejected`` is the reason where a listener refused the step; then the rest is empty.

    ``messages`` are to be appended to the conversation, in order; ``provenance`` says which plugin contributed what to
    system text and tools.
    """

    system: str = ""
    tools: tuple[ToolSchema, ...] = ()
    messages: tuple[UserMessage, ...] = ()
    rejected: str | None = None
    provenance: FrozenDict = attrs.field(factory=FrozenDict)


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
    snapshot is among the messages only when it differs from the one that the session still shows.

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
    proposal = await propose(surroundings, context, scope, claimed, runtime_context, results_due=step > 1)
    if isinstance(proposal.decision, Reject):
        return PreparedStep(rejected=proposal.decision.reason)
    assembly = proposal.assembly
    return PreparedStep(
        system=render_prompt(assembly),
        tools=tuple(assembly.tools),
        messages=proposal.decision.messages,
        provenance=freeze_object(provenance(surroundings, scope, assembly)),
    )
