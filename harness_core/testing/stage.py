"""The stage for a test or check of a plugin: a harness of its own with a clock, ids and a model that a test controls.

Nothing that is installed on the machine is loaded unless asked for, and nothing is written outside the folder given. Owns
no event loop: what it hands out is entered by the test, in whatever loop that runs.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import attrs

from harness_core.agent import Agent
from harness_core.errors import HarnessError
from harness_core.hooks import hookimpl
from harness_core.host import AgentSettings, Harness, PluginContext, PluginUse
from harness_core.models import ScriptedModel
from harness_core.prompt import PromptSettings
from harness_core.session import FileStore, Session
from harness_core.testing.clock import FakeClock

__all__ = ["SCRIPTED", "AgentFactory", "HarnessFactory", "Stage", "numbered_ids", "scripted_plugin"]

SCRIPTED = "scripted"
"""The provider name under which a stage's model is registered."""


class HarnessFactory(Protocol):
    """What the fixture ``harness`` is."""

    def __call__(
        self, *plugins: Any, config: Mapping[str, Any] | Any = None, model: ScriptedModel | None = None, **options: Any
    ) -> Harness: ...


class AgentFactory(Protocol):
    """What the fixture ``agent`` is."""

    def __call__(
        self, *plugins: Any, config: Mapping[str, Any] | Any = None, model: ScriptedModel | None = None, **options: Any
    ) -> AbstractAsyncContextManager[Agent]: ...


def numbered_ids(prefix: str = "id") -> Callable[[], str]:
    """Ids that are the same in every run."""
    numbers = itertools.count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def scripted_plugin(model: ScriptedModel) -> PluginUse:
    """The plugin that registers a stage's model."""

    class ScriptedProvider:
        @hookimpl
        def harness_setup(self, ctx: PluginContext) -> None:
            ctx.models.register(SCRIPTED, model)

    return PluginUse(plugin=ScriptedProvider, name="scripted-model")


@attrs.define
class Stage:
    """What the fixtures share. ``folder`` holds the session logs and is the agents' working directory."""

    folder: Path
    clock: FakeClock
    model: ScriptedModel
    _ids: Callable[[], str] = attrs.field(factory=numbered_ids)
    _agents: Callable[[], str] = attrs.field(factory=lambda: numbered_ids("agent"))

    @property
    def store(self) -> FileStore:
        """Keeps the sessions of all harnesses of this stage."""
        return FileStore(self.folder / "sessions")

    def harness(
        self, *plugins: Any, config: Mapping[str, Any] | Any = None, model: ScriptedModel | None = None, **options: Any
    ) -> Harness:
        """A harness with these plugins and no others, to be entered with ``async with``.

        ``config`` is the one plugin's; several plugins take theirs in `PluginUse` records. ``options`` are `Harness`'s.

        Raises:
            HarnessError: ``config`` for more than one plugin.
        """
        uses = list(plugins)
        if config is not None:
            if len(uses) != 1 or isinstance(uses[0], PluginUse):
                raise HarnessError(
                    f"config= is for one plugin, not for {len(uses)}.", remedy="Use PluginUse(plugin=..., config=...)."
                )
            uses = [PluginUse(plugin=uses[0], config=config)]
        settings = options.pop("settings", PromptSettings(identity=False))
        agents = AgentSettings(store=self.store, clock=self.clock, sleep=self.clock.sleep, new_id=self._ids, debug=True)
        chosen = {"autoload": False, "agents": agents, **options}
        return Harness(settings, plugins=[scripted_plugin(model or self.model), *uses], **chosen)

    @asynccontextmanager
    async def agent(
        self, *plugins: Any, config: Mapping[str, Any] | Any = None, model: ScriptedModel | None = None, **options: Any
    ) -> AsyncIterator[Agent]:
        """A new agent in a harness of its own (``agent.scope.harness``), as an async context manager.

        ``config`` and ``model`` as for `harness`; ``options`` are those of `Harness.create_agent`.
        """
        async with self.harness(*plugins, config=config, model=model) as harness:
            chosen = {"provider": SCRIPTED, "cwd": self.folder, **options}
            yield await harness.create_agent(chosen.pop("agent_id", None) or self._agents(), **chosen)

    def session(self, session_id: str = "session") -> Session:
        """A new session that a test or a loop of your own writes; whoever asks for it closes it."""
        return Session.create(session_id, cwd=str(self.folder), store=self.store, clock=self.clock)
