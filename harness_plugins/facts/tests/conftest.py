"""An agent in a folder, with the facts plugin."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import pytest
from harness_facts import Facts, Permissions

from harness_core import Harness, Shell, UserMessage
from harness_core.agent import Agent
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedModel
from harness_core.session import MemoryStore, Session
from harness_core.tools import ShellResult


@attrs.define
class FakeShell:
    """Answers with ``result``, or raises it, and notes what it is asked."""

    result: Any = None
    asked: list[tuple[str, str | None, float]] = attrs.field(factory=list)

    def git(self, branch: str = "main", *changes: str, code: int | None = 0) -> None:
        lines = ["# branch.oid 1234", f"# branch.head {branch}", *changes]
        self.result = ShellResult(exit_code=code, stdout="".join(f"{line}\n" for line in lines), stderr="")

    async def run(self, command: str, *, cwd: str | None = None, timeout: float = 10.0) -> ShellResult:
        self.asked.append((command, cwd, timeout))
        result = self.result() if callable(self.result) else self.result
        if hasattr(result, "__await__"):
            result = await result
        if isinstance(result, Exception):
            raise result
        return result


@attrs.define
class Stage:
    harness: Harness
    agent: Agent
    model: ScriptedModel
    shell: FakeShell
    plugin: Any

    @property
    def session(self) -> Session:
        return self.agent.session

    @property
    def permissions(self) -> Permissions:
        found = self.harness.root.services.get(Permissions)
        assert found is not None
        return found

    @property
    def snapshots(self) -> list[list[str]]:
        """The facts of each runtime-context message that the model got."""
        return [
            [section["text"] for section in message.source.data.get("sections", ())]
            for message in self.session.messages
            if isinstance(message, UserMessage) and message.source.plugin == "harness"
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
        cwd: str | Path = "/work",
        depth: int = 0,
        with_shell: Any = True,
        environ: dict[str, str] | None = None,
        install: bool = True,
        **config: Any,
    ) -> AsyncIterator[Stage]:
        ids, shell = count(1), FakeShell()
        shell.git()
        agents = AgentSettings(
            store=store if store is not None else MemoryStore(),
            config=CallConfig(provider="script", model="m"),
            new_id=lambda: f"{'r' if resume else 'id'}{next(ids)}",
            debug=True,
        )
        async with Harness(autoload=False, agents=agents) as harness:
            model = ScriptedModel(otherwise="fine")
            harness.root.models.register("script", model)
            if with_shell:
                harness.root.services.provide(Shell, shell if with_shell is True else with_shell)
            plugin = None
            if install:
                plugin = await harness.install(Facts(environ=environ or {}, system="Linux"), config=config)
            if resume:
                agent = await harness.resume_agent("a")
            else:
                agent = await harness.create_agent("a", cwd=cwd, depth=depth, parent="boss" if depth else None)
            yield Stage(harness, agent, model, shell, plugin)

    return opened


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one commit, on the branch ``main``."""
    (tmp_path / "file").write_text("one\n")
    for arguments in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "-m", "m"],
    ):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    return tmp_path
