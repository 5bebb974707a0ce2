"""One open step: messages enter, the system text is rendered once, the model answers, tools run (STEP-01 to STEP-04).

Everything before it opens is proposal.py's; what follows from its result is turn.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from harness_core.agent.tool_calls import ToolPhase
from harness_core.models import UserMessage
from harness_core.prompt import PromptAssembly, render_prompt
from harness_core.session import APPEND, StepEnd, StepStart, UserMessageLogged

if TYPE_CHECKING:
    from harness_core.agent.agent import Agent

__all__ = ["StepResult", "run_step"]


@attrs.frozen(kw_only=True)
class StepResult:
    """What a finished step means for its turn.

    ``called``: tools ran, so the model has results to answer; ``concluded``: one of them ended the turn; ``cut_off``:
    the answer ran into the limit of output tokens.
    """

    called: bool
    concluded: bool
    cut_off: bool


async def run_step(
    agent: Agent, turn: int, step: int, messages: tuple[UserMessage, ...], assembly: PromptAssembly
) -> StepResult:
    """Open the step, carry it out and close it. When it raises, the step is still open: whoever ends the turn closes it.

    Raises:
        RenderError: a section cannot be rendered; no request was made.
        Exception: what requests, tools or listeners raised.
    """
    session = agent.session
    session.append(StepStart(turn=turn, step=step))
    for message in messages:
        session.append(UserMessageLogged(message=message), APPEND)
    system = render_prompt(assembly)
    answer = await agent.requests.answer(turn, step, assembly, system)
    calls = answer.message.tool_calls
    concluded = False
    if calls:
        concluded = await ToolPhase(agent, turn, step, calls).run()
    session.append(StepEnd(turn=turn, step=step))
    return StepResult(called=bool(calls), concluded=concluded, cut_off=answer.cut_off)
