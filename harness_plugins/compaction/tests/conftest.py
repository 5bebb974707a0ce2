"""Both event loops, and an agent on a harness with the plugin and a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import attrs
import pytest
from harness_compaction import Compaction

from harness_core.agent import Agent
from harness_core.host import AgentSettings, Harness
from harness_core.models import CallConfig, ScriptedModel


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@attrs.define
class Stage:
    harness: Harness
    agent: Agent
    model: ScriptedModel

    def data(self, kind: type) -> list[Any]:
        return [event.data for event in self.agent.session.events if isinstance(event.data, kind)]

    @property
    def shown(self) -> list[str]:
        return [message.text for message in self.agent.session.messages]


@pytest.fixture
def stage() -> Callable[..., Any]:
    """``async with stage(*answers, at_tokens=100) as it``: settings of the plugin by name."""

    @asynccontextmanager
    async def opened(
        *answers: Any, window: int | None = None, others: Any = (), prepare: Any = None, **config: Any
    ) -> AsyncIterator[Stage]:
        ids = count(1)
        agents = AgentSettings(config=CallConfig(provider="script", model="m"), debug=True)
        model = ScriptedModel(*answers, otherwise="fine", context_window=window)
        async with Harness(autoload=False, agents=agents, plugins=others) as harness:
            harness.root.models.register("script", model)
            if prepare is not None:
                prepare(harness)
            await harness.install(Compaction(new_id=lambda: f"summary {next(ids)}"), config=config)
            yield Stage(harness, await harness.create_agent("a"), model)

    return opened
