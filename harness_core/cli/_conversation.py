"""What the commands that talk to a model share: their options, and the agent that they go on with."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.abc
import attrs
import click

from harness_core.agent import Agent, TurnResult
from harness_core.host import Harness
from harness_core.host.composition import Composition, PluginTable
from harness_core.session import FileStore, random_id

__all__ = ["Conversation", "conversation_options", "interruptible", "turn_json"]

F = TypeVar("F", bound=Callable[..., Any])


@attrs.frozen(kw_only=True)
class Conversation:
    """Which model is talked to, in which session, by which agent of the composition."""

    provider: str | None
    model: str | None
    base_url: str | None
    session: str | None
    agent: str | None

    def placed(self, composition: Composition) -> Composition:
        """The composition with the server that was named on the command line."""
        if self.base_url is None:
            return composition
        name = self.provider or "openai-compatible"
        table = composition.plugins.get(name, PluginTable())
        served = attrs.evolve(table, config={**table.config, "base_url": self.base_url})
        return attrs.evolve(composition, plugins={**composition.plugins, name: served})

    async def begun(self, harness: Harness) -> tuple[Agent, str | None]:
        """The agent, with the path of its log where that is a file; an existing session is gone on with.

        Raises:
            HarnessError: there is no such agent in the composition, or the session cannot be gone on with.
        """
        store = harness.agents.settings.store
        where = self.session or random_id()
        provider = self.provider or ("openai-compatible" if self.base_url is not None else None)
        options: dict[str, Any] = {"provider": provider, "model": self.model, "scope": self.agent}
        if self.session is not None and isinstance(store, FileStore) and store.path(self.session).exists():
            agent = await harness.resume_agent(where, **options)
        else:
            agent = await harness.create_agent(where, cwd=Path.cwd(), **options)
        return agent, str(store.path(where)) if isinstance(store, FileStore) else None


def conversation_options(function: F) -> F:
    """Adds ``--provider``, ``--model``, ``--base-url``, ``--session`` and ``--agent``."""
    for option in (
        click.option("--agent", help="An agent of the composition, by name."),
        click.option("--session", "session", help="The session's id; an existing one is gone on with."),
        click.option("--base-url", help="Where an openai-compatible server listens."),
        click.option("--model", help="The model's name."),
        click.option("--provider", help="The model provider, such as deepseek or openai-compatible."),
    ):
        function = option(function)
    return function


@contextlib.asynccontextmanager
async def interruptible(stop: Callable[[], object]) -> AsyncIterator[None]:
    """Ctrl-C calls ``stop``, which ends what runs: the log gets its end before the program does."""

    async def watch(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for _ in signals:
                stop()

    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        await tasks.start(watch)
        try:
            yield
        except Exception as error:  # as it is, and not in a group
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def turn_json(result: TurnResult, session: str, log: str | None) -> dict[str, Any]:
    """A turn's outcome for programs."""
    return {
        "session": session,
        "log": log,
        "turn": result.number,
        "reason": result.reason,
        "text": result.text,
        "cause": result.cause,
        "failure": result.failure.to_json() if result.failure is not None else None,
    }
