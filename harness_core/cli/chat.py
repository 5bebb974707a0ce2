"""``harness chat``: turn after turn of one agent, and, when asked to, a composition that changes in between."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import click

from harness_core.agent import Agent
from harness_core.cli._common import FAILED, Chosen, common_options
from harness_core.cli._conversation import Conversation, conversation_options, interruptible, turn_json
from harness_core.cli._input import Lines
from harness_core.cli._progress import Progress
from harness_core.errors import CompositionError, HarnessError
from harness_core.host import Harness
from harness_core.host.changing import Applied
from harness_core.host.documents import Documents
from harness_core.inspect.growth import GrowthGuard

__all__ = ["chat"]


@click.command()
@conversation_options
@click.option("--reload", "reloads", is_flag=True, help="Before each turn, take over what changed in the composition.")
@common_options
def chat(chosen: Chosen, reloads: bool, **options: Any) -> None:
    """Talk to an agent: each line is a turn, until the end of the input.

    With --reload, a composition file that has changed is applied before the next turn; if it cannot be, the old one stays
    in force and the reason is shown. Ctrl-C ends a running turn; at the prompt, it ends the command. With --json, each
    turn's outcome is one line.
    """
    conversation = Conversation(**options)
    chosen.composition = conversation.placed(chosen.composition)
    sys.exit(0 if anyio.run(_chat, chosen, conversation, reloads) else FAILED)


async def _chat(chosen: Chosen, conversation: Conversation, reloads: bool) -> bool:
    ok = True
    async with chosen.harness() as harness:
        await harness.install(GrowthGuard())
        agent, log = await conversation.begun(harness)
        reloader = _Reloader(harness, chosen, conversation) if reloads else None
        lines, leaving = Lines(), anyio.CancelScope()
        async with interruptible(lambda: agent.cancel("user") if agent.turn is not None else leaving.cancel()):
            while True:
                line = None
                with leaving:
                    line = await _line(lines)
                    if line and reloader is not None:
                        await reloader.look()
                if line is None or leaving.cancel_called:
                    break
                if line:
                    ok = await _turn(chosen, agent, line, log)
                leaving = anyio.CancelScope()
        if leaving.cancel_called:
            click.echo(err=True)  # the prompt's line ends
        if log is not None and not chosen.as_json:
            click.echo(f"log: {log}", err=True)
    if leaving.cancel_called:
        raise click.Abort
    return ok


async def _turn(chosen: Chosen, agent: Agent, line: str, log: str | None) -> bool:
    with Progress(agent, quiet=chosen.as_json) as progress:
        result = await agent.run(line)
        progress.finish(result, None)
    if chosen.as_json:
        click.echo(json.dumps(turn_json(result, agent.id, log), ensure_ascii=False))
    return result.ok


async def _line(lines: Lines) -> str | None:
    """The next line; the empty one where there is nothing in it, None at the end of the input."""
    if sys.stdin is not None and sys.stdin.isatty():
        click.echo("> ", nl=False, err=True)
    line = await lines.next()
    return line if line is None or line.strip() else ""


class _Reloader:
    """Applies the composition when it reads otherwise than when it was last looked at."""

    def __init__(self, harness: Harness, chosen: Chosen, conversation: Conversation) -> None:
        self._harness = harness
        self._chosen = chosen
        self._conversation = conversation
        self._seen = _reading(chosen)

    async def look(self) -> None:
        chosen = self._chosen.again()
        now = _reading(chosen)
        if now == self._seen:
            return
        was, self._seen = self._seen, now
        try:
            if now is None and was is not None:
                raise CompositionError("There is no composition file any more.", remedy="Put it back, or end the chat.")
            applied = await self._harness.apply(self._conversation.placed(chosen.composition))
        except Exception as error:  # also what an observer objects with
            reason = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
            click.echo(f"harness: the changed composition is not taken over: {reason}", err=True)
        else:
            click.echo(f"harness: {_told(applied)}", err=True)


def _reading(chosen: Chosen) -> Documents | str | None:
    """What the composition is read from now, with what it extends; or why it cannot be."""
    try:
        return chosen.documents
    except HarnessError as error:
        return str(error)


def _told(applied: Applied) -> str:
    parts = [
        f"{what} {', '.join(names)}"
        for what, names in (
            ("installed", applied.installed),
            ("removed", applied.removed),
            ("set up anew", applied.reconfigured),
        )
        if names
    ]
    if applied.settings:
        parts.append("settings changed")
    parts += [f"left out {failure.name}: {failure.error}" for failure in applied.failures]
    return f"the composition was taken over: {'; '.join(parts) or 'nothing changed'}"
