"""Skills in memory and on disk, and an agent that works beside them."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import attrs
import pytest
from harness_skills import Skills
from hypothesis import HealthCheck, settings

from harness_core import FileSystem, Harness, Reject, UserMessage, hookimpl
from harness_core.agent import Agent
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedAnswer, ScriptedModel, ToolResultMessage
from harness_core.session import MemoryStore, Session, SurfaceReplace, UserMessageLogged
from harness_core.tools import FileInfo

settings.register_profile("default", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")

FOLDER = "/w/.agents/skills"


class MemoryFiles:
    """A file system in memory that counts what is asked of it and fails where it is told to."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes | str] = {}
        self.versions: dict[str, int] = {}
        self.unavailable: set[str] = set()
        self.unreadable: set[str] = set()
        self.unsized = False
        self.reads: list[str] = []
        self.asked = 0

    def put(self, path: str, text: str | bytes) -> None:
        self.entries[path] = text if isinstance(text, bytes) else text.encode()
        self.versions[path] = self.versions.get(path, 0) + 1
        while (path := os.path.dirname(path)) != "/":
            self.entries.setdefault(path, "directory")

    def skill(self, name: str, description: str = "Does {}.", body: str = "Body of {}.", folder: str = FOLDER) -> None:
        front = f"name: {name}\ndescription: {description.format(name)}"
        self.put(f"{folder}/{name}/SKILL.md", f"---\n{front}\n---\n{body.format(name)}\n")

    def remove(self, name: str, folder: str = FOLDER) -> None:
        for path in (f"{folder}/{name}/SKILL.md", f"{folder}/{name}"):
            del self.entries[path]

    async def info(self, path: str) -> FileInfo | None:
        self.asked += 1
        if path in self.unavailable:
            raise PermissionError(path)
        entry = self.entries.get(path)
        if entry is None:
            return None
        if isinstance(entry, str):
            return FileInfo(kind=entry, size=None, version="-")
        return FileInfo(kind="file", size=None if self.unsized else len(entry), version=str(self.versions[path]))

    async def read(self, path: str, limit: int) -> bytes:
        self.reads.append(path)
        entry = self.entries.get(path)
        if path in self.unreadable or not isinstance(entry, bytes):
            raise OSError(path)
        return entry[:limit]

    async def children(self, path: str) -> list[str]:
        if path in self.unreadable:
            raise OSError(path)
        names = {each[len(path) + 1 :].split("/")[0] for each in self.entries if each.startswith(f"{path}/")}
        return sorted(names)


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
    decide: Callable[[Any], Any] | None = None

    @hookimpl(trylast=True)
    async def agent_pre_step(self, step: Any, call_next: Any) -> Any:
        decision = await call_next()
        return decision if self.decide is None else self.decide(decision)


@attrs.define
class Stage:
    harness: Harness
    agent: Agent
    model: ScriptedModel
    gate: Gatekeeper
    plugin: Any

    @property
    def session(self) -> Session:
        return self.agent.session

    async def turn(self, text: str = "hello", *, load: str | None = None) -> None:
        if load is not None:
            self.model.add(ScriptedAnswer(calls=[("skill", {"name": load})]))
        await self.agent.run(text)

    def of_kind(self, kind: str) -> list[UserMessage]:
        return [
            event.data.message
            for event in self.session.events
            if isinstance(event.data, UserMessageLogged) and event.data.message.source.kind == kind
        ]

    @property
    def lists(self) -> list[UserMessage]:
        return self.of_kind("skill-catalog")

    @property
    def listed(self) -> list[list[str]]:
        """The names in each list that was sent."""
        return [[entry["name"] for entry in message.source.data["entries"]] for message in self.lists]

    @property
    def invoked(self) -> list[UserMessage]:
        return self.of_kind("skill-invocation")

    @property
    def results(self) -> list[ToolResultMessage]:
        return [message for message in self.session.messages if isinstance(message, ToolResultMessage)]

    def forget(self) -> None:
        """A compaction: everything on the surface gives way to one summary."""
        entries = list(self.session.surface.entries)
        summary = UserMessage(id=f"summary{len(self.session.events)}", content="summary")
        replace = SurfaceReplace(start=entries[0], end=entries[-1], sources=entries)
        self.session.append(UserMessageLogged(message=summary), replace)


@pytest.fixture(params=[MemoryFiles, BatchFiles], ids=["single", "batch"])
def files(request: pytest.FixtureRequest) -> MemoryFiles:
    made: MemoryFiles = request.param()
    return made


@pytest.fixture
def disk() -> DiskFiles:
    return DiskFiles()


@pytest.fixture
def stage(files: MemoryFiles) -> Callable[..., Any]:
    """``async with stage() as it``: an agent in /w; keywords are settings of the plugin."""

    @asynccontextmanager
    async def opened(
        *,
        cwd: Any = "/w",
        service: Any = files,
        store: Any = None,
        resume: bool = False,
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
            model = ScriptedModel(otherwise="fine")
            harness.root.models.register("script", model)
            if service is not None:
                harness.root.services.provide(FileSystem, service)
            gate = Gatekeeper()
            await harness.install(gate)
            plugin = await harness.install(Skills(user_home="/home/u"), config=config)
            bring_up = harness.resume_agent if resume else harness.create_agent
            options = {} if resume else {"cwd": cwd}
            yield Stage(harness, await bring_up("a", **options), model, gate, plugin)

    return opened


@pytest.fixture
def refuse() -> Callable[[Any], Any]:
    return lambda decision: Reject("no")
