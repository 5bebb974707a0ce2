"""A project in memory, a project on disk, and an agent that works in one of them."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from harness_agent_instructions import AgentInstructions
from hypothesis import HealthCheck, settings

from harness_core import (
    AssembleContext,
    Enter,
    FileSystem,
    Harness,
    Reject,
    ToolOutcome,
    ToolSchema,
    UserMessage,
    hookimpl,
)
from harness_core.agent import Agent
from harness_core.agent.proposal import propose
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedAnswer, ScriptedModel
from harness_core.session import MemoryStore, Session, SurfaceReplace, UserMessageLogged
from harness_core.tools import FileInfo

settings.register_profile("default", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")

KIND = "agent-instructions"


class MemoryFiles:
    """A file system in memory that counts what is asked of it and fails where it is told to."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes | str] = {}
        """Bytes for a file, or the kind of anything else."""
        self.versions: dict[str, int] = {}
        self.unavailable: set[str] = set()
        self.unreadable: set[str] = set()
        self.unsized: set[str] = set()
        self.probes: list[str] = []
        self.reads: list[str] = []
        self.limits: list[int] = []
        self.gate: anyio.Event | None = None

    def put(self, path: str, text: str | bytes) -> None:
        self.entries[path] = text if isinstance(text, bytes) else text.encode()
        self.versions[path] = self.versions.get(path, 0) + 1

    def swap(self, path: str, text: str) -> None:
        """Other bytes under the same version."""
        self.entries[path] = text.encode()

    def remove(self, path: str) -> None:
        del self.entries[path]

    def directory(self, path: str) -> None:
        self.entries[path] = "directory"

    async def info(self, path: str) -> FileInfo | None:
        self.probes.append(path)
        if self.gate is not None:
            await self.gate.wait()
        if path in self.unavailable:
            raise PermissionError(path)
        entry = self.entries.get(path)
        if entry is None:
            return None
        if isinstance(entry, str):
            return FileInfo(kind=entry, size=None, version="-")
        size = None if path in self.unsized else len(entry)
        return FileInfo(kind="file", size=size, version=str(self.versions[path]))

    async def read(self, path: str, limit: int) -> bytes:
        self.reads.append(path)
        self.limits.append(limit)
        entry = self.entries.get(path)
        if path in self.unreadable or not isinstance(entry, bytes):
            raise OSError(path)
        return entry[:limit]

    async def children(self, path: str) -> list[str]:
        raise NotImplementedError


class BatchFiles(MemoryFiles):
    """The same, but able to look at many paths at once."""

    async def infos(self, paths: Sequence[str]) -> list[FileInfo | OSError | None]:
        found: list[FileInfo | OSError | None] = []
        for path in paths:
            try:
                found.append(await self.info(path))
            except OSError as error:
                found.append(error)
        return found


class DiskFiles:
    """The file system of the machine, read without threads."""

    async def info(self, path: str) -> FileInfo | None:
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        kind = "file" if stat.S_ISREG(found.st_mode) else "directory" if stat.S_ISDIR(found.st_mode) else "other"
        return FileInfo(kind=kind, size=found.st_size, version=f"{found.st_ino}:{found.st_mtime_ns}:{found.st_size}")

    async def read(self, path: str, limit: int) -> bytes:
        with open(path, "rb") as file:
            return file.read(limit)

    async def children(self, path: str) -> list[str]:
        return sorted(os.listdir(path))


@attrs.define
class Gatekeeper:
    """A listener further in, through which a test decides about steps."""

    decide: Callable[[Any], Any] | None = None

    @hookimpl(trylast=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        decision = await call_next()
        return decision if self.decide is None else self.decide(decision)


@attrs.define
class Stage:
    """What a test works with."""

    harness: Harness
    agent: Agent
    model: ScriptedModel
    gate: Gatekeeper
    plugin: Any
    """The activation, where the plugin is installed."""

    @property
    def session(self) -> Session:
        return self.agent.session

    async def turn(self, text: str = "hello", *calls: tuple[str, str]) -> None:
        """One turn; with calls, a first answer that asks for them: tool names and file paths."""
        if calls:
            self.model.add(ScriptedAnswer(calls=[(name, {"file_path": path}) for name, path in calls]))
        await self.agent.run(text)
        await anyio.wait_all_tasks_blocked()

    async def propose(self, text: str) -> Enter | Reject:
        """A turn's proposal that took ``text`` before what waits now came into the inbox; nothing begins."""
        context = AssembleContext.of(self.agent, turn=self.session.nesting.last_turn + 1, step=1)
        claimed = (UserMessage(id=f"claimed-{text}", content=text),)
        agent = self.agent
        return (await propose(agent.surroundings, context, agent.scope, claimed, agent.runtime_context)).decision

    async def touch(self, *paths: str) -> None:
        """Read files with a tool outside of any turn."""
        for path in paths:
            await self.call("read", path)
        await anyio.wait_all_tasks_blocked()

    async def call(self, name: str, path: Any, outcome: ToolOutcome | None = None, *, inside: Any = None) -> None:
        from harness_core import ToolCall

        call = ToolCall(
            id=f"outside-{name}-{path}",
            name=name,
            arguments={"file_path": path},
            turn=0,
            step=0,
            scope=self.agent.scope,
            cwd=self.session.cwd,
            agent=self.agent,
            session=self.session,
        )

        async def end(call: Any) -> ToolOutcome:
            if inside is not None:
                await inside()
            return outcome or ToolOutcome(content="done")

        await self.harness.hooks.tool_call.dispatch(self.agent.scope, call, None, end)

    def forget(self) -> None:
        """A compaction: everything on the surface gives way to one summary."""
        entries = list(self.session.surface.entries)
        summary = UserMessage(id=f"summary{len(self.session.events)}", content="summary")
        replace = SurfaceReplace(start=entries[0], end=entries[-1], sources=entries)
        self.session.append(UserMessageLogged(message=summary), replace)

    @property
    def told(self) -> list[UserMessage]:
        """Our messages in the log."""
        return [
            event.data.message
            for event in self.session.events
            if isinstance(event.data, UserMessageLogged) and event.data.message.source.kind == KIND
        ]

    @property
    def waiting(self) -> list[UserMessage]:
        """Our messages in the inbox."""
        return [message for message in self.agent.inbox.next_step if message.source.kind == KIND]

    def entered(self, turn: int = -1) -> list[list[str]]:
        """For each step of a turn, what entered: "context" for ours, "facts" for the runtime context, else the text."""
        turns: list[list[list[str]]] = []
        for event in self.session.events:
            if event.type == "turn/start":
                turns.append([])
            elif event.type == "step/start":
                turns[-1].append([])
            elif isinstance(event.data, UserMessageLogged) and turns and turns[-1]:
                source = event.data.message.source
                own = "context" if source.kind == KIND else "facts" if source.plugin == "harness" else None
                turns[-1][-1].append(own or event.data.message.text)
        return turns[turn]


@pytest.fixture(params=[MemoryFiles, BatchFiles], ids=["single", "batch"])
def files(request: pytest.FixtureRequest) -> MemoryFiles:
    found: MemoryFiles = request.param()
    found.directory("/p/.git")
    return found


@pytest.fixture
def disk() -> DiskFiles:
    return DiskFiles()


@pytest.fixture
def stage(files: MemoryFiles) -> Callable[..., Any]:
    """``async with stage() as it``: an agent in /p/w of the memory's project; keywords are settings of the plugin."""

    @asynccontextmanager
    async def opened(
        *,
        cwd: str | Path = "/p/w",
        service: Any = files,
        store: Any = None,
        resume: bool = False,
        environ: dict[str, str] | None = None,
        facts: bool = True,
        install: bool = True,
        answers: Any = (),
        **config: Any,
    ) -> AsyncIterator[Stage]:
        ids = count(1)
        agents = AgentSettings(
            store=store if store is not None else MemoryStore(),
            config=CallConfig(provider="script", model="m"),
            new_id=lambda: f"{'r' if resume else 'id'}{next(ids)}",
            debug=True,
        )
        async with Harness(autoload=False, agents=agents) as harness:
            model = ScriptedModel(*answers, otherwise="fine")
            harness.root.models.register("script", model)
            if service is not None:
                harness.root.services.provide(FileSystem, service)
            for name in ("read", "write", "edit", "shell"):
                harness.root.tools.register(ToolSchema(name), lambda call: "done")
            if facts:
                harness.root.prompt.context("facts", "It rains.", order=0)
            gate = Gatekeeper()
            await harness.install(gate)
            plugin = None
            if install:
                instance = AgentInstructions(environ=environ or {}, user_home="/home/u")
                plugin = await harness.install(instance, config={"max_bytes": 10_000, **config})
            bring_up = harness.resume_agent if resume else harness.create_agent
            options = {} if resume else {"cwd": cwd}
            yield Stage(harness, await bring_up("a", **options), model, gate, plugin)

    return opened


@pytest.fixture
def refuse() -> Callable[[Any], Any]:
    return lambda decision: Reject("no")
