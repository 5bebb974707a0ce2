"""A proposed step: assemble, render the context snapshot, project the candidate, ask the listeners (PRE-01).

The same for an agent's own loop and for people who bring theirs; nothing here is recorded, and no model is involved.
"""

from __future__ import annotations

import attrs

from harness_core.agent.runtime_context import RuntimeContext
from harness_core.agent.surroundings import Surroundings
from harness_core.hooks import Enter, PreStep, Reject
from harness_core.models import UserMessage
from harness_core.prompt import (
    AssembleContext,
    PromptAssembly,
    assemble,
    render_context_sections,
    render_context_snapshot,
)
from harness_core.scopes import ScopeNode

__all__ = ["Proposal", "propose"]


@attrs.frozen(kw_only=True)
class Proposal:
    """What came of a proposed step: the assembly it was made with, and the listeners' decision."""

    assembly: PromptAssembly
    decision: Enter | Reject
    candidate: UserMessage | None


async def propose(
    surroundings: Surroundings,
    context: AssembleContext,
    scope: ScopeNode,
    claimed: tuple[UserMessage, ...],
    runtime_context: RuntimeContext,
    *,
    with_context: bool = True,
    results_due: bool = False,
    preview: bool = False,
) -> Proposal:
    """Propose a step with the claimed messages; for a preview, one that nobody is going to begin.

    Raises:
        Exception: what assembly, rendering of the contexts, or a listener raised.
    """
    hooks = surroundings.hooks
    assembly = await assemble(surroundings.prompt, hooks.system_prompt_assemble, context)
    candidate = None
    snapshot = render_context_snapshot(assembly)
    if with_context:
        candidate = runtime_context.candidate(snapshot, render_context_sections(assembly), surroundings.new_id)
    step = PreStep(
        messages=claimed if candidate is None else (*claimed, candidate),
        claimed=claimed,
        candidate=candidate,
        turn=context.turn or 1,
        step=context.step or 1,
        results_due=results_due,
        preview=preview,
        scope=scope,
        cwd=context.cwd,
        agent=context.agent,
        session=context.session,
        assembly=assembly,
    )
    decision = await hooks.agent_pre_step.dispatch(scope, step, None, _enter)
    return Proposal(assembly=assembly, decision=decision, candidate=candidate)


def _enter(step: PreStep) -> Enter:
    return Enter(step.messages)
