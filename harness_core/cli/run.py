"""``harness run``: one turn of an agent in the current folder, shown while it happens."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import click

from harness_core.agent import Agent, TurnResult
from harness_core.cli._common import FAILED, Chosen, common_options, emit_json
from harness_core.cli._progress import Progress
from harness_core.host.composition import PluginTable
from harness_core.inspect.growth import GrowthGuard
from harness_core.session import FileStore, random_id

__all__ = ["run"]


@click.command()
@click.argument("prompt")
@click.option("--provider", help="The model provider, such as deepseek or openai-compatible.")
@click.option("--model", help="The model's name.")
@click.option("--base-url", help="Where an openai-compatible server listens.")
@click.option("--session", "session_id", help="The session's id; an existing one is gone on with.")
@common_options
def run(
    chosen: Chosen,
    prompt: str,
    provider: str | None,
    model: str | None,
    base_url: str | None,
    session_id: str | None,
) -> None:
    """Run one turn on PROMPT, and show the answer.

    Works in the current folder with the installed plugins. Without a configured model a script answers, which really
    uses the tools. Ctrl-C ends the turn as aborted; the session's log stays whole.
    """
    if base_url is not None:
        provider = provider or "openai-compatible"
        table = chosen.composition.plugins.setdefault(provider, PluginTable())
        table.config["base_url"] = base_url
    result, log = anyio.run(_run, chosen, prompt, provider, model, session_id)
    if chosen.as_json:
        emit_json(
            {
                "session": log[0],
                "log": log[1],
                "turn": result.number,
                "reason": result.reason,
                "text": result.text,
                "cause": result.cause,
                "failure": result.failure.to_json() if result.failure is not None else None,
            }
        )
    sys.exit(0 if result.ok else FAILED)


async def _run(
    chosen: Chosen, prompt: str, provider: str | None, model: str | None, session_id: str | None
) -> tuple[TurnResult, tuple[str, str | None]]:
    async with chosen.harness() as harness:
        await harness.install(GrowthGuard())
        store = harness.agents.settings.store
        where = session_id or random_id()
        options: dict[str, Any] = {"provider": provider, "model": model}
        exists = session_id is not None and isinstance(store, FileStore) and store.path(session_id).exists()
        if exists:
            agent = await harness.resume_agent(where, **options)
        else:
            agent = await harness.create_agent(where, cwd=Path.cwd(), **options)
        log = str(store.path(where)) if isinstance(store, FileStore) else None
        with Progress(agent, quiet=chosen.as_json) as progress:
            async with _interruptible(agent):
                result = await agent.run(prompt)
            progress.finish(result, log)
        return result, (where, log)


@contextlib.asynccontextmanager
async def _interruptible(agent: Agent) -> AsyncIterator[None]:
    """Ctrl-C cancels the turn; the log gets its end before the program does."""

    async def watch() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                agent.cancel("user")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        yield
        tasks.cancel_scope.cancel()
