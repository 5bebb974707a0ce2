"""An agent with the tmux plugin, over a shell that answers what a test wants it to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import attrs
import pytest
from harness_tmux import TmuxContext

from harness_core import Harness, Shell, Source, ToolSchema, UserMessage, hookimpl
from harness_core.agent import Agent
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedAnswer, ScriptedModel
from harness_core.session import APPEND, MemoryStore, Session, SurfaceReplace, UserMessageLogged
from harness_core.tools import ShellResult

HERE = ("work", "2", "editor", "1", "%7", "1", "0", "b25d,80x24,0,0,7")


def answer(*fields: str, code: int | None = 0) -> ShellResult:
    return ShellResult(exit_code=code, stdout="\\t".join(fields) + "\nmore\n", stderr="")


@attrs.define
class FakeShell:
    """Answers with ``result``, or raises it, and notes what it is asked."""

    result: Any = attrs.field(factory=lambda: answer(*HERE))
    asked: list[tuple[str, float]] = attrs.field(factory=list)

    def moved(self, **fields: str) -> None:
        names = ("session", "window_index", "window", "pane_index", "pane_id", "window_active", "pane_active", "layout")
        self.result = answer(*(fields.get(name, value) for name, value in zip(names, HERE, strict=True)))

    async def run(self, command: str, *, cwd: str | None = None, timeout: float = 10.0) -> ShellResult:
        self.asked.append((command, timeout))
        result = self.result() if callable(self.result) else self.result
        if hasattr(result, "__await__"):
            result = await result
        if isinstance(result, Exception):
            raise result
        return result


@attrs.define
class Listener:
    """What it does is the test's business."""

    decide: Callable[[Any, Any], Any] | None = None

    @hookimpl(trylast=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        decision = await call_next()
        return decision if self.decide is None else self.decide(step, decision)


class Outer(Listener):
    @hookimpl(tryfirst=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        decision = await call_next()
        return decision if self.decide is None else self.decide(step, decision)


@attrs.define
class Hand:
    """A clock that moves only when it is moved."""

    now: int = 1_784_077_261_000

    def __call__(self) -> int:
        return self.now

    def pass_by(self, milliseconds: int) -> None:
        self.now += milliseconds


@attrs.define
class Stage:
    harness: Harness
    agent: Agent
    model: ScriptedModel
    shell: FakeShell
    clock: Hand
    inner: Listener
    outer: Outer
    plugin: Any

    @property
    def session(self) -> Session:
        return self.agent.session

    async def turn(self, text: str = "hello", *, calls: int = 0) -> None:
        for _ in range(calls):
            self.model.add(ScriptedAnswer(calls=[("look", {})]))
        await self.agent.run(text)

    def log(self, *blocks: str) -> None:
        """A message of the plugin that says something else than its readings do."""
        content: Any = [UserMessage(id="x", content=block).content[0] for block in blocks]
        message = UserMessage(
            id=f"x{len(self.session.events)}", content=content, source=Source("plugin", "snapshot", "tmux-context")
        )
        self.session.append(UserMessageLogged(message=message), APPEND)

    def hide(self) -> None:
        entries = list(self.session.surface.entries)
        summary = UserMessage(id=f"s{len(self.session.events)}", content="summary", source=Source("plugin", "recall"))
        replace = SurfaceReplace(start=entries[0], end=entries[-1], sources=entries)
        self.session.append(UserMessageLogged(message=summary), replace)

    @property
    def readings(self) -> list[str]:
        return [
            event.data.message.text
            for event in self.session.events
            if isinstance(event.data, UserMessageLogged) and event.data.message.source.plugin == "tmux-context"
        ]

    @property
    def ends(self) -> list[str]:
        return [event.data.reason for event in self.session.events if event.type == "turn/end"]  # type: ignore[union-attr]


@pytest.fixture
def stage() -> Callable[..., Any]:
    """``async with stage() as it``; keywords that it does not name are settings of the plugin."""

    @asynccontextmanager
    async def opened(
        *,
        store: Any = None,
        resume: bool = False,
        with_shell: bool = True,
        seconds: float = 2.0,
        **config: Any,
    ) -> AsyncIterator[Stage]:
        ids, clock, shell = count(1), Hand(), FakeShell()
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
            harness.root.tools.register(ToolSchema("look"), lambda call: "seen")
            if with_shell:
                harness.root.services.provide(Shell, shell)
            inner, outer = Listener(), Outer()
            await harness.install(inner, name="inner")
            plugin = await harness.install(TmuxContext(pid=4711, seconds=seconds), config=config)
            await harness.install(outer, name="outer")
            bring_up = harness.resume_agent if resume else harness.create_agent
            yield Stage(harness, await bring_up("a"), model, shell, clock, inner, outer, plugin)

    return opened
