"""``harness run``: one turn of an agent in the current folder, shown while it happens."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import click

from harness_core._text import clean
from harness_core.cli._common import FAILED, Chosen, common_options, emit_json
from harness_core.cli._conversation import Conversation, conversation_options, interruptible, turn_json
from harness_core.cli._progress import Progress
from harness_core.inspect.growth import GrowthGuard

__all__ = ["run"]


@click.command()
@click.argument("prompt")
@conversation_options
@common_options
def run(chosen: Chosen, prompt: str, **options: Any) -> None:
    """Run one turn on PROMPT, and show the answer.

    Works in the current folder with the installed plugins. Without a configured model a script answers, which really
    uses the tools. Ctrl-C ends the turn as aborted; the session's log stays whole.
    """
    conversation = Conversation(**options)
    chosen.composition = conversation.placed(chosen.composition)
    sys.exit(0 if anyio.run(_run, chosen, conversation, prompt) else FAILED)


async def _run(chosen: Chosen, conversation: Conversation, prompt: str) -> bool:
    async with chosen.harness() as harness:
        await harness.install(GrowthGuard())
        agent, log = await conversation.begun(harness)
        with Progress(agent, quiet=chosen.as_json) as progress:
            async with interruptible(lambda: agent.cancel("user")):
                result = await agent.run(clean(prompt))
            progress.finish(result, log)
        if chosen.as_json:
            emit_json(turn_json(result, agent.id, log))
        return result.ok
