"""An agent whose clock a test holds in its hand, with the time plugin and listeners around and inside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import attrs
import pytest
from harness_time import TimeContext, ZoneTable

from harness_core import Harness, Source, ToolSchema, UserMessage, hookimpl
from harness_core.agent import Agent
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedAnswer, ScriptedModel
from harness_core.session import Event, MemoryStore, Session, SurfaceReplace, UserMessageLogged

EPOCH = 1_784_077_261_000
"""2026-07-15 01:01:01 UTC."""


@attrs.define
class Hand:
    """A clock that moves only when it is moved."""

    now: int = EPOCH

    def __call__(self) -> int:
        return self.now

    def pass_by(self, milliseconds: int) -> None:
        self.now += milliseconds


@attrs.define
class Inner:
    """A listener further in: what it does is the test's business."""

    decide: Callable[[Any, Any], Any] | None = None

    @hookimpl(trylast=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        decision = await call_next()
        return decision if self.decide is None else self.decide(step, decision)


class Outer(Inner):
    """The same around everything."""

    @hookimpl(tryfirst=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        decision = await call_next()
        return decision if self.decide is None else self.decide(step, decision)


def is_ours(source: Source) -> bool:
    return source.plugin == "time-context"


@attrs.define
class Stage:
    """What a test works with."""

    harness: Harness
    agent: Agent
    model: ScriptedModel
    clock: Hand
    inner: Inner
    outer: Outer
    plugin: Any

    @property
    def session(self) -> Session:
        return self.agent.session

    async def turn(self, text: str = "hello", *, zone: Any = None, calls: int = 0, **source: Any) -> None:
        """One turn, in which the model asks for so many calls, one after another, before it answers."""
        for _ in range(calls):
            self.model.add(ScriptedAnswer(calls=[("look", {})]))
        data = source or ({"rpc_id": "r1", "client_time_zone": zone} if zone is not None else {})
        await self.agent.run(UserMessage(id=f"u{len(self.session.events)}", content=text, source=Source(data=data)))

    def hide(self) -> None:
        """A compaction: everything on the surface gives way to one summary."""
        entries = list(self.session.surface.entries)
        summary = UserMessage(id=f"s{len(self.session.events)}", content="summary", source=Source("plugin", "recall"))
        replace = SurfaceReplace(start=entries[0], end=entries[-1], sources=entries)
        self.session.append(UserMessageLogged(message=summary), replace)

    @property
    def logged(self) -> list[Event]:
        """The events of the readings."""
        return [
            event
            for event in self.session.events
            if isinstance(event.data, UserMessageLogged) and is_ours(event.data.message.source)
        ]

    @property
    def readings(self) -> list[list[str]]:
        """The lines of each reading."""
        return [event.data.message.text.split("\n") for event in self.logged]  # type: ignore[union-attr]

    @property
    def elapsed(self) -> list[str]:
        return [lines[2].rpartition(": ")[2] for lines in self.readings]

    @property
    def ends(self) -> list[str]:
        return [event.data.reason for event in self.session.events if event.type == "turn/end"]  # type: ignore[union-attr]


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture(scope="session")
def table() -> ZoneTable:
    return ZoneTable.packaged()


@pytest.fixture
def stage(clock: Hand) -> Callable[..., Any]:
    """``async with stage() as it``; keywords that it does not name are settings of the plugin."""

    @asynccontextmanager
    async def opened(
        *,
        store: Any = None,
        agent: str = "a",
        resume: bool = False,
        local: Callable[[], str] = lambda: "Etc/UTC",
        look: Callable[[Any], Any] = lambda call: "seen",
        **config: Any,
    ) -> AsyncIterator[Stage]:
        ids = count(1)
        agents = AgentSettings(
            store=store if store is not None else MemoryStore(),
            config=CallConfig(provider="script", model="m"),
            clock=clock,
            new_id=lambda: f"{'r' if resume else 'id'}{next(ids)}",
            debug=True,
        )
        async with Harness(autoload=False, agents=agents) as harness:
            model = ScriptedModel(otherwise="fine")
            harness.root.models.register("script", model)
            harness.root.tools.register(ToolSchema("look"), look)
            inner, outer = Inner(), Outer()
            await harness.install(inner, name="inner")
            plugin = await harness.install(TimeContext(local_zone=local), config=config)
            await harness.install(outer, name="outer")
            bring_up = harness.resume_agent if resume else harness.create_agent
            yield Stage(harness, await bring_up(agent), model, clock, inner, outer, plugin)

    return opened
