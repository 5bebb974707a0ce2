"""An agent on a harness with the plugin, a model that fails as scripted, and a sleep that takes no time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
from harness_retry import RetryRequests

from harness_core.agent import Agent
from harness_core.host import AgentSettings, Harness
from harness_core.models import CallConfig, ScriptedModel


@attrs.define
class Stage:
    harness: Harness
    agent: Agent
    slept: list[float]

    def data(self, kind: type) -> list[Any]:
        return [event.data for event in self.agent.session.events if isinstance(event.data, kind)]


@pytest.fixture
def stage() -> Callable[..., Any]:
    """``async with stage(*answers, attempts=3) as it``: settings of the plugin by name."""

    @asynccontextmanager
    async def opened(
        *answers: Any,
        model: Any = None,
        plugin: Any = None,
        others: Any = (),
        sleep: Any = None,
        **config: Any,
    ) -> AsyncIterator[Stage]:
        slept: list[float] = []

        async def no_time(seconds: float) -> None:
            slept.append(seconds)

        agents = AgentSettings(config=CallConfig(provider="script", model="m"), sleep=sleep or no_time, debug=True)
        async with Harness(autoload=False, agents=agents, plugins=others) as harness:
            harness.root.models.register("script", model if model is not None else ScriptedModel(*answers))
            await harness.install(plugin or RetryRequests(chance=lambda: 0.0), config=config)
            yield Stage(harness, await harness.create_agent("a"), slept)

    return opened
