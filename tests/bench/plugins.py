"""What the context plugins cost before a step in which nothing changed, at any length of history.

``python -m tests.bench.plugins`` runs all of it under pyperf. Files come from memory, so that what is measured is the
plugins' own time; ``prestep_on_disk`` has the workspace plugin's file system instead, with its worker threads.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
import pyperf
from harness_agent_instructions import AgentInstructions
from harness_facts import Facts
from harness_session_reference import SessionReference
from harness_skills import Skills
from harness_time import TimeContext
from harness_tmux import TmuxContext
from harness_workspace import Workspace

from harness_core import Enter, FileSystem, Harness, PreStep, Shell, UserMessage
from harness_core.agent import Agent
from harness_core.host import AgentSettings
from harness_core.models import CallConfig
from harness_core.session import APPEND, UserMessageLogged
from harness_core.tools import FileInfo, ShellResult
from tests.bench._lean import LeanModel

HISTORIES = (10, 1_000, 10_000)
LEVELS = 5
"""Directories from the root down to the working directory, each with an AGENTS.md."""
SKILLS = 20
STEPS = 200
SLOW = 20
"""Steps of one measurement where files come from the disk."""


class MemoryFiles:
    """A file system that answers at once."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = {path: (FileInfo(kind="file", size=len(data), version="1"), data) for path, data in files.items()}
        self._folders: dict[str, set[str]] = {}
        for path in files:
            child = Path(path)
            for folder in child.parents:
                self._folders.setdefault(str(folder), set()).add(child.name)
                child = folder
        self._folder = FileInfo(kind="directory", size=None, version="1")

    async def info(self, path: str) -> FileInfo | None:
        found = self._files.get(path)
        if found is not None:
            return found[0]
        return self._folder if path in self._folders else None

    async def read(self, path: str, limit: int) -> bytes:
        return self._files[path][1][:limit]

    async def children(self, path: str) -> list[str]:
        return sorted(self._folders[path])


class PaneShell:
    """A shell that answers at once: to everything that this is a pane of tmux, which git does not say of itself."""

    async def run(self, command: str, *, cwd: str | None = None, timeout: float = 10.0) -> ShellResult:
        return ShellResult(exit_code=0, stdout="work\\t1\\teditor\\t0\\t%3\\t1\\t1\\tlayout\n", stderr="")


def project(root: str) -> tuple[str, dict[str, bytes]]:
    """A working directory some levels deep, and the files around it."""
    files = {f"{root}/.git/HEAD": b"ref"}
    folder = root
    for level in range(LEVELS):
        files[f"{folder}/AGENTS.md"] = f"Level {level}. ".encode() * 20
        folder = f"{folder}/level{level}"
    for number in range(SKILLS):
        text = f"---\nname: skill-{number}\ndescription: Does things of kind {number}.\n---\nBody."
        files[f"{folder}/.agents/skills/skill-{number}/SKILL.md"] = text.encode()
    return folder, files


async def proposed(agent: Agent, harness: Harness, steps: int, *, first: bool, added: int) -> float:
    """CPU seconds of the pre-step chain for so many steps to which plugins add so many messages: none, mostly."""
    assembly = await harness.assemble(agent.scope)
    prompts = (UserMessage(id="p", content="Go on."),) if first else ()
    step = PreStep(
        messages=prompts,
        claimed=prompts,
        turn=2,
        step=1 if first else 2,
        results_due=True,
        scope=agent.scope,
        cwd=agent.session.cwd,
        agent=agent,
        session=agent.session,
        assembly=assembly,
    )
    chain = harness.hooks.agent_pre_step
    begun = time.process_time()
    for _ in range(steps):
        decision = await chain.dispatch(agent.scope, step, None, lambda step: Enter(step.messages))
        assert len(decision.messages) == len(prompts) + added
    return time.process_time() - begun


async def presteps(loops: int, history: int, plugins: tuple[str, ...], disk: str | None, first: bool) -> float:
    cwd, files = project(disk or "/project")
    made: dict[str, tuple[Any, Any]] = {
        "instructions": (AgentInstructions(environ={}, user_home="/nowhere"), {"max_bytes": 50_000}),
        "skills": (Skills(user_home="/nowhere"), None),
        # A reading that is due in an hour: nothing changes. `every-step` has one that is always due.
        "time": (TimeContext(local_zone=lambda: "UTC"), {"refresh_interval_ms": 3_600_000}),
        "every-step": (TimeContext(local_zone=lambda: "UTC"), None),
        "tmux": (TmuxContext(), None),
        "reference": (SessionReference(), {"mentions": True}),
        "facts": (Facts(environ={}), {"file_access": "read-only"}),
    }
    settings = AgentSettings(durability="never", config=CallConfig(provider="lean", model="m"))
    async with Harness(autoload=False, agents=settings) as harness:
        harness.root.models.register("lean", LeanModel())
        if disk is None:
            service: Any = MemoryFiles(files)
            harness.root.services.provide(FileSystem, service)
            harness.root.services.provide(Shell, PaneShell())
        else:
            for path, data in files.items():
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_bytes(data)
            await harness.install(Workspace)
        for name in plugins:
            plugin, config = made[name]
            await harness.install(plugin, config=config)
        agent = await harness.create_agent("bench", cwd=cwd)
        for number in range(history):
            agent.session.append(UserMessageLogged(message=UserMessage(id=str(number), content="Hello. " * 10)), APPEND)
        await agent.run("warm up")
        kinds = [message.source.kind for message in agent.session.messages if isinstance(message, UserMessage)]
        assert kinds.count("agent-instructions") == ("instructions" in plugins)
        assert kinds.count("skill-catalog") == ("skills" in plugins)
        sources = [message.source.plugin for message in agent.session.messages if isinstance(message, UserMessage)]
        assert ("tmux-context" in sources) == ("tmux" in plugins and disk is None)
        assert ("time-context" in sources) == bool({"time", "every-step"} & set(plugins))
        added = plugins.count("every-step")
        steps = SLOW if disk else STEPS
        return sum([await proposed(agent, harness, steps, first=first, added=added) for _ in range(loops)])


def measured(loops: int, history: int, plugins: tuple[str, ...], on_disk: bool, first: bool = False) -> float:
    if not on_disk:
        return anyio.run(presteps, loops, history, plugins, None, first)
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(presteps, loops, history, plugins, folder, first)


def main() -> None:
    runner = pyperf.Runner(processes=5, values=3, warmups=1, program_args=("-m", "tests.bench.plugins"))
    every = ("instructions", "skills", "time", "tmux", "reference", "facts")
    for history in HISTORIES:
        runner.bench_time_func(f"prestep_at_{history}_messages", measured, history, every, False, inner_loops=STEPS)
    for history in HISTORIES:
        name = f"first_prestep_at_{history}_messages"
        runner.bench_time_func(name, measured, history, every, False, True, inner_loops=STEPS)
    for name in (*every, "every-step"):
        runner.bench_time_func(f"prestep_{name}_alone", measured, 1_000, (name,), False, inner_loops=STEPS)
    runner.bench_time_func("first_prestep_tmux_alone", measured, 1_000, ("tmux",), False, True, inner_loops=STEPS)
    runner.bench_time_func("prestep_on_disk", measured, 1_000, every, True, inner_loops=SLOW)


if __name__ == "__main__":
    main()
