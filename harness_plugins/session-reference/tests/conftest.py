"""Sessions to refer to, and an agent that refers to them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import attrs
import pytest
from harness_session_reference import SessionReference, SessionReferences

from harness_core import Harness, Source, UserMessage, hookimpl
from harness_core.agent import Agent
from harness_core.host import AgentSettings
from harness_core.models import AssistantMessage, CallConfig, ScriptedModel
from harness_core.session import (
    APPEND,
    AssistantMessageLogged,
    MemoryStore,
    Session,
    SessionStore,
    StepEnd,
    StepStart,
    SurfaceReplace,
    TurnEnd,
    TurnStart,
    UserMessageLogged,
)


@attrs.define
class Past:
    """A session that is written by hand."""

    session: Session
    turn: int = 0

    def user(self, *texts: str, source: Source | None = None) -> int:
        message = UserMessage(id=f"m{len(self.session.events)}", content="", source=source or Source())
        message = attrs.evolve(message, content=[attrs.evolve(message.content[0], text=text) for text in texts])
        return self.session.append(UserMessageLogged(message=message), APPEND).seq

    def assistant(self, *blocks: Any, interrupted: bool = False) -> int:
        self.turn += 1
        self.session.append(TurnStart(turn=self.turn))
        self.session.append(StepStart(turn=self.turn, step=1))
        content: Any = blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else blocks
        data = AssistantMessageLogged(
            turn=self.turn, step=1, message=AssistantMessage(content=content), interrupted=interrupted
        )
        seq = self.session.append(data, APPEND).seq
        self.session.append(StepEnd(turn=self.turn, step=1))
        self.session.append(TurnEnd(turn=self.turn, reason="completed"))
        return seq

    def compact(self, text: str, first: int, last: int, source: Source | None = None) -> None:
        covered = [seq for seq in self.session.surface.entries if first <= seq <= last]
        message = UserMessage(
            id=f"c{len(self.session.events)}",
            content=text,
            source=source or Source("plugin", "recall", "compaction", {"replaced": len(covered)}),
        )
        replace = SurfaceReplace(start=first, end=last, sources=covered)
        self.session.append(UserMessageLogged(message=message), replace)


@attrs.define
class Stage:
    harness: Harness
    agent: Agent
    model: ScriptedModel
    store: SessionStore
    service: SessionReferences
    inner: Any

    @property
    def session(self) -> Session:
        return self.agent.session

    def past(self, session_id: str, cwd: str = "/there") -> Past:
        return Past(Session.create(session_id, cwd=cwd, store=self.store))

    @property
    def ends(self) -> list[str]:
        return [event.data.reason for event in self.session.events if event.type == "turn/end"]  # type: ignore[union-attr]


class Inner:
    """What it does is the test's business."""

    def __init__(self) -> None:
        self.decide: Callable[[Any, Any], Any] | None = None

    @hookimpl(trylast=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        decision = await call_next()
        return decision if self.decide is None else self.decide(step, decision)


def data_of(message: UserMessage) -> Any:
    """What a recall tells of the sessions, read as a model would: between the tags, as JSON."""
    text = message.text
    assert text.count("<session-recall>") == text.count("</session-recall>") == 1
    return json.loads(text.partition("<session-recall>\n")[2].partition("\n</session-recall>")[0])


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def recalled() -> Callable[[UserMessage], Any]:
    return data_of


@pytest.fixture
def past(store: MemoryStore) -> Callable[..., Past]:
    return lambda session_id, cwd="/there": Past(Session.create(session_id, cwd=cwd, store=store))


@pytest.fixture
def stage(store: MemoryStore) -> Callable[..., Any]:
    """``async with stage() as it``; keywords that it does not name are settings of the plugin."""

    @asynccontextmanager
    async def opened(
        *, store: SessionStore = store, agent: str = "here", resume: bool = False, cwd: str = "/here", **config: Any
    ) -> AsyncIterator[Stage]:
        ids = count(1)
        agents = AgentSettings(
            store=store,
            config=CallConfig(provider="script", model="m"),
            new_id=lambda: f"{'r' if resume else 'id'}{next(ids)}",
            debug=True,
        )
        async with Harness(autoload=False, agents=agents) as harness:
            model = ScriptedModel(otherwise="fine")
            harness.root.models.register("script", model)
            inner = Inner()
            await harness.install(inner, name="inner")
            await harness.install(SessionReference, config=config)
            service = harness.root.services.get(SessionReferences)
            assert service is not None
            made = await (harness.resume_agent(agent) if resume else harness.create_agent(agent, cwd=cwd))
            yield Stage(harness, made, model, store, service, inner)

    return opened
