"""A running harness with a scripted model, sequential ids and a counting clock, and words for what a log holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import attrs
import pytest

from harness_core.agent import Agent, Limits
from harness_core.host import AgentSettings, Harness
from harness_core.models import CallConfig, ScriptedModel
from harness_core.session import Event, MemoryStore, SessionStore


@attrs.define
class Stage:
    """What a test works with."""

    harness: Harness
    model: ScriptedModel
    agent: Agent

    @property
    def types(self) -> list[str]:
        """The log's event types in order; runs of chunks count once."""
        return kinds(self.agent.session.events)

    def data(self, kind: type) -> list[Any]:
        return [event.data for event in self.agent.session.events if isinstance(event.data, kind)]

    @property
    def ends(self) -> list[str]:
        return [event.data.reason for event in self.agent.session.events if event.type == "turn/end"]  # type: ignore[union-attr]


def kinds(events: Any) -> list[str]:
    found: list[str] = []
    for event in events:
        if not (event.type == "assistant/chunk" and found and found[-1] == "assistant/chunk"):
            found.append(event.type)
    return found


OpenStage = Callable[..., Any]


@pytest.fixture
def open_stage() -> OpenStage:
    """``async with open_stage(*plugins, answers=[...]) as stage``: one agent on a harness with these plugins."""

    @asynccontextmanager
    async def opened(
        *plugins: Any,
        answers: Any = (),
        store: SessionStore | None = None,
        resume: bool = False,
        prepare: Callable[[Harness], Any] | None = None,
        sleep: Any = None,
        tool_result: int = 50_000,
        agent_id: str = "a1",
        otherwise: Any = "fine",
        **options: Any,
    ) -> AsyncIterator[Stage]:
        ids = count(1)
        extra = {} if sleep is None else {"sleep": sleep}
        settings = AgentSettings(
            store=store if store is not None else MemoryStore(),
            config=CallConfig(provider="script", model="m1"),
            clock=count(1_000).__next__,
            new_id=lambda: f"id{next(ids)}" if not resume else f"r{next(ids)}",
            debug=True,
            limits=Limits(tool_result=tool_result),
            **extra,
        )
        model = ScriptedModel(*answers, otherwise=otherwise)
        async with Harness(plugins=plugins, autoload=False, agents=settings) as harness:
            harness.root.models.register("script", model)
            if prepare is not None:
                prepare(harness)
            bring_up = harness.resume_agent if resume else harness.create_agent
            agent = await bring_up(agent_id, **options)
            yield Stage(harness, model, agent)

    return opened


@pytest.fixture
def events_of() -> Callable[[Any], list[Event]]:
    return lambda agent: list(agent.session.events)
