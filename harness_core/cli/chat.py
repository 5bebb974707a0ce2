"""``harness chat``: turn after turn of one agent, and, when asked to, a composition that changes in between."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import click

from harness_core.cli._common import FAILED, Chosen, common_options
from harness_core.cli._conversation import Conversation, conversation_options, interruptible, turn_json
from harness_core.cli._progress import Progress
from harness_core.errors import HarnessError
from harness_core.host import Harness
from harness_core.host.changing import Applied
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
        while (line := await _line()) is not None:
            if not line.strip():
                continue
            if reloader is not None:
                await reloader.look()
            with Progress(agent, quiet=chosen.as_json) as progress:
                async with interruptible(agent):
                    result = await agent.run(line)
                progress.finish(result, None)
            if chosen.as_json:
                click.echo(json.dumps(turn_json(result, agent.id, log), ensure_ascii=False))
            ok = result.ok
        if log is not None and not chosen.as_json:
            click.echo(f"log: {log}", err=True)
    return ok


async def _line() -> str | None:
    """The next line of the input; None at its end."""
    if sys.stdin.isatty():
        click.echo("> ", nl=False, err=True)
    line = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    return line.rstrip("\n") if line else None


class _Reloader:
    """Applies the composition when one of its files has changed since it last looked."""

    def __init__(self, harness: Harness, chosen: Chosen, conversation: Conversation) -> None:
        self._harness = harness
        self._chosen = chosen
        self._conversation = conversation
        self._seen = self._digest()

    def _digest(self) -> list[str]:
        documents = self._chosen.documents
        return [_digest_of(path) for path in _files(documents.files if documents is not None else ())]

    async def look(self) -> None:
        now = self._digest()
        if now == self._seen:
            return
        self._seen = now
        try:
            chosen = self._chosen.again()
            applied = await self._harness.apply(self._conversation.placed(chosen.composition))
        except HarnessError as error:
            click.echo(f"harness: the changed composition is not taken over: {error}", err=True)
            return
        self._chosen = chosen
        self._seen = self._digest()
        click.echo(f"harness: {_told(applied)}", err=True)


def _files(paths: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(paths))


def _digest_of(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"


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
