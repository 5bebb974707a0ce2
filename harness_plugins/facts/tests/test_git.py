"""What is told of git: the branch, and whether anything is not committed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from harness_facts._git import QUERY, GitState, state_of
from harness_workspace._services import LocalShell

from harness_core import hookimpl
from harness_core.models import ScriptedAnswer, ToolSchema
from harness_core.tools import ShellResult

pytestmark = pytest.mark.anyio
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

HEADER = "# branch.oid 1\n# branch.head main\n# branch.upstream o/main\n# branch.ab +0 -0\n# stash 3\n"


@pytest.mark.parametrize(
    ("code", "output", "state"),
    [
        (0, HEADER, GitState("main", False)),
        (0, HEADER + "1 .M N... 100644 100644 100644 a b file\n", GitState("main", True)),
        (0, HEADER + "? new\n", GitState("main", True)),
        (0, "# branch.oid 1\n# branch.head (detached)\n", GitState(None, False)),
        (0, "# branch.oid (initial)\n# branch.head main\n", GitState("main", False)),
        (0, f"# branch.head {'b' * 300}\n", GitState("b" * 200, False)),
        (0, "# branch.head a\udc80b\n", GitState("a?b", False)),
        (0, '# branch.head {{x}} "ü"\n', GitState('{{x}} "ü"', False)),
        (0, "", None),
        (0, "? new\n", None),
        (1, HEADER, None),
        (None, HEADER, None),
    ],
)
def test_the_output_is_read_coarsely(code: int | None, output: str, state: GitState | None) -> None:
    assert state_of(code, output) == state


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@x", *arguments], cwd=folder, check=True)


@needs_git
async def test_a_real_repository(stage: Any, repository: Path) -> None:
    async with stage(cwd=repository, with_shell=LocalShell(), git_seconds=60.0) as it:
        await it.agent.run("one")
        await it.agent.run("two")
        (repository / "new").write_text("x")
        await it.agent.run("three")
        git(repository, "add", ".")
        git(repository, "commit", "-q", "-m", "n")
        git(repository, "checkout", "-q", "-b", 'feature/ü{{"')
        await it.agent.run("four")
        git(repository, "checkout", "-q", "--detach")
        await it.agent.run("five")
        assert it.snapshots == [
            ['Git: branch "main", clean.'],
            ['Git: branch "main", with uncommitted changes.'],
            ['Git: branch "feature/ü{{\\"", clean.'],
            ["Git: no branch (detached), clean."],
        ]
        assert [event.type for event in it.session.events].count("request/header") == 1


@needs_git
async def test_looking_changes_nothing_and_runs_nothing_of_the_repository(stage: Any, repository: Path) -> None:
    monitor = repository / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {repository / 'ran'}\n")
    monitor.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(monitor))
    os.utime(repository / "file", (1, 1))  # a writing status would refresh the index
    before = (repository / ".git" / "index").read_bytes()
    async with stage(cwd=repository, with_shell=LocalShell(), git_seconds=60.0) as it:
        await it.agent.run("one")
        assert it.snapshots == [['Git: branch "main", with uncommitted changes.']]
    assert not (repository / "ran").exists()
    assert (repository / ".git" / "index").read_bytes() == before


@needs_git
async def test_many_changes_are_not_read_to_the_end(repository: Path) -> None:
    for number in range(3_000):
        (repository / f"new file with a rather long name, number {number}").touch()
    result = await LocalShell().run(QUERY, cwd=str(repository), timeout=60.0)
    assert len(result.stdout) <= 2_000
    assert state_of(result.exit_code, result.stdout) == GitState("main", True)


@needs_git
async def test_a_folder_that_is_no_repository(stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "plain"
    folder.mkdir()
    async with stage(cwd=folder, with_shell=LocalShell(), git_seconds=60.0) as it:
        await it.agent.run("one")
        assert it.snapshots == []


async def test_git_is_asked_in_the_working_directory_within_its_time(stage: Any) -> None:
    async with stage(cwd="/work/here", git_seconds=3) as it:
        await it.agent.run("one")
        assert it.shell.asked == [(QUERY, "/work/here", 3.0)]


async def test_a_fact_is_told_in_the_step_after_a_tool_changed_it(stage: Any) -> None:
    async with stage() as it:

        def edit(call: Any) -> str:
            it.shell.git("main", "1 .M file")
            return "done"

        it.harness.root.tools.register(ToolSchema("edit"), edit)
        it.model.add(ScriptedAnswer(calls=[("edit", {})]))
        await it.agent.run("one")
        assert it.snapshots == [['Git: branch "main", clean.'], ['Git: branch "main", with uncommitted changes.']]


@pytest.mark.parametrize(
    "result", [ShellResult(exit_code=None, stdout=HEADER, stderr=""), ShellResult(exit_code=0, stdout="", stderr="")]
)
async def test_a_failure_is_nothing(stage: Any, result: Any, caplog: Any) -> None:
    async with stage() as it:
        await it.agent.run("one")
        it.shell.result = result
        await it.agent.run("two")
        assert len(it.snapshots) == 2
        assert it.snapshots[1] == []
        assert caplog.records == []


async def test_a_shell_that_raises_is_reported_once(stage: Any, caplog: Any) -> None:
    async with stage() as it:
        it.shell.result = PermissionError("the policy refuses it")
        await it.agent.run("one")
        await it.agent.run("two")
        assert [record.name for record in caplog.records] == ["harness.plugin.facts"]
        assert "the policy refuses it" in caplog.text
        assert it.ends == ["completed", "completed"]


async def test_a_shell_that_hangs_is_left(stage: Any) -> None:
    async with stage(git_seconds=0.02) as it:
        it.shell.result = anyio.sleep_forever
        await it.agent.run("one")
        assert it.snapshots == []
        assert it.ends == ["completed"]


@pytest.mark.parametrize("options", [{"git": False}, {"with_shell": False}])
async def test_without_switch_or_shell_nothing_is_asked(stage: Any, options: dict[str, bool]) -> None:
    async with stage(**options) as it:
        await it.agent.run("one")
        assert it.shell.asked == []
        assert it.snapshots == []


async def test_what_others_put_in_its_place_stays(stage: Any) -> None:
    class Other:
        @hookimpl
        def harness_setup(self, ctx: Any) -> None:
            ctx.prompt.context("git:state", "Git: none of your business.", order=105)

    async with stage() as it:
        await it.harness.install(Other, scope=it.agent.scope)
        await it.agent.run("one")
        assert it.snapshots == [["Git: none of your business."]]
        assert it.shell.asked == []


async def test_an_assembly_without_contexts_asks_nothing(stage: Any) -> None:
    async with stage() as it:
        it.agent.scope.prompt.suppress_runtime_context()
        await it.agent.run("one")
        await it.harness.assemble()
        assert it.shell.asked == []
