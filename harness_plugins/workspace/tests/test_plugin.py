"""The plugin in a harness: which tools there are, and whole turns in which an agent calls them."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from harness_workspace import Workspace, _searching
from harness_workspace._paths import Place
from harness_workspace._reading import Text

from harness_core import FileSystem, Harness, PromptSettings, Shell, render_prompt
from harness_core.errors import PluginConfigError
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedModel
from harness_core.models.scripted import ScriptedAnswer
from harness_core.session import ToolResultLogged

pytestmark = pytest.mark.anyio


async def results(
    cwd: Path, config: dict[str, Any], *calls: tuple[str, dict[str, Any]]
) -> list[tuple[str | None, str]]:
    """Error and text of each result in a turn with these calls."""
    settings = AgentSettings(config=CallConfig(provider="scripted", model="m"))
    async with Harness(autoload=False, agents=settings) as harness:
        await harness.install(Workspace, config=config)
        harness.root.models.register("scripted", ScriptedModel(ScriptedAnswer(calls=list(calls)), "Done."))
        agent = await harness.create_agent("a", cwd=cwd)
        result = await agent.run("Go.")
        assert result.text == "Done."
        logged = [event.data for event in agent.session.events if isinstance(event.data, ToolResultLogged)]
        return [(each.error, each.message.text) for each in logged]


async def test_tools_follow_the_configuration() -> None:
    async with Harness(autoload=False) as harness:
        activation = await harness.install(Workspace)
        assert [tool.name for tool in (await harness.assemble()).tools] == ["list", "read", "search"]
        assert harness.services.find(harness.root, FileSystem) is not None  # type: ignore[type-abstract]
        assert harness.services.find(harness.root, Shell) is None  # type: ignore[type-abstract]
        await activation.aclose()
        await harness.install(Workspace, config={"write": True, "shell": True})
        names = [tool.name for tool in (await harness.assemble()).tools]
        assert names == ["edit", "list", "read", "search", "shell", "write"]
        assert harness.services.find(harness.root, Shell) is not None  # type: ignore[type-abstract]


async def test_services_can_be_left_to_the_deployment() -> None:
    async with Harness(autoload=False) as harness:
        await harness.install(Workspace, config={"services": False, "shell": True})
        assert harness.services.find(harness.root, FileSystem) is None  # type: ignore[type-abstract]
        assert harness.services.find(harness.root, Shell) is None  # type: ignore[type-abstract]


async def test_it_leaves_nothing_behind() -> None:
    async with Harness(PromptSettings(identity=False), autoload=False) as harness:
        before = await harness.assemble()
        activation = await harness.install(Workspace, config={"write": True, "shell": True})
        assert "tools before you answer" in render_prompt(await harness.assemble())
        await activation.aclose()
        assert await harness.assemble() == before
        assert harness.services.find(harness.root, FileSystem) is None  # type: ignore[type-abstract]


async def test_a_bad_configuration_is_refused() -> None:
    async with Harness(autoload=False) as harness:
        for config in ({"max_result_bytes": 1}, {"write": "yes"}, {"rooot": "."}):
            with pytest.raises(PluginConfigError):
                await harness.install(Workspace, config=config)


async def test_an_agent_reads_its_own_folder(root: Path) -> None:
    answers = await results(
        root,
        {},
        ("list", {"path": "src"}),
        ("read", {"file_path": "README.md", "limit": 1}),
        ("search", {"pattern": "needle", "glob": "*.py"}),
    )
    assert answers == [
        (None, "a.py"),
        (None, "    1  # Title\n[1 more lines; read on with offset 2]"),
        (None, "src/a.py:2: needle = 1"),
    ]


async def test_a_root_may_lie_below_the_agent_s_folder(root: Path) -> None:
    answers = await results(root, {"root": "src"}, ("list", {}), ("read", {"file_path": "../README.md"}))
    assert answers == [(None, "a.py"), ("refused", "'../README.md' lies outside the workspace.")]


async def test_refusals_and_failures_reach_the_model_as_errors(root: Path) -> None:
    answers = await results(
        root,
        {"write": True},
        ("read", {"file_path": "leak"}),
        ("read", {"file_path": "absent"}),
        ("write", {"file_path": ".git/config", "content": "x"}),
        ("edit", {"file_path": "README.md", "old": "absent", "new": "x"}),
        ("read", {"path": "README.md"}),
    )
    assert [error for error, _ in answers] == ["refused", "io", "refused", "refused", "INVALID_ARGUMENTS"]
    assert answers[1][1] == "read failed for 'absent': No such file or directory."


async def test_an_agent_writes_and_edits(root: Path) -> None:
    answers = await results(
        root,
        {"write": True},
        ("write", {"file_path": "new/file", "content": "one two"}),
        ("edit", {"file_path": "new/file", "old": "two", "new": "three"}),
    )
    assert [error for error, _ in answers] == [None, None]
    assert (root / "new" / "file").read_text() == "one three"


async def test_an_agent_runs_commands_in_its_folder(root: Path) -> None:
    answers = await results(
        root,
        {"shell": True},
        ("shell", {"command": "cat README.md; echo oops >&2; exit 2"}),
        ("shell", {"command": "sleep 600", "timeout": 0.2}),
        ("shell", {"command": "kill -9 $$"}),
        ("shell", {"command": "true"}),
    )
    assert answers == [
        ("exit", "# Title\nneedle here\n[stderr]\noops\n[the command ended with exit code 2]"),
        ("timeout", "[the command was stopped after 0.2 seconds]"),
        ("signal", "[the command was ended by SIGKILL]"),
        (None, "[the command ended with exit code 0]"),
    ]


async def test_results_fit_into_what_was_asked_for(root: Path) -> None:
    (root / "long").write_text("word " * 5000)
    answers = await results(
        root,
        {"shell": True, "max_result_bytes": 1000},
        ("read", {"file_path": "long"}),
        ("shell", {"command": "cat long; echo; echo the end"}),
    )
    assert all(len(text.encode()) <= 1000 for _, text in answers)
    assert "bytes are left out here" in answers[1][1]
    assert answers[1][1].endswith("the end\n[the command ended with exit code 0]")


async def test_cancelling_stops_a_search(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = threading.Event()
    real = _searching.text_of

    def slow(place: Place) -> Text:
        started.set()
        return real(place)

    # Endless: the same file again and again, as in a workspace without end.
    monkeypatch.setattr(_searching, "_files_below", lambda place: itertools.repeat(place.child("README.md")))
    monkeypatch.setattr(_searching, "MAX_FILES", 10**9)
    monkeypatch.setattr(_searching, "text_of", slow)
    settings = AgentSettings(config=CallConfig(provider="scripted", model="m"))
    async with Harness(autoload=False, agents=settings) as harness:
        await harness.install(Workspace)
        model = ScriptedModel(ScriptedAnswer(calls=[("search", {"pattern": "absent"})]), "Done.")
        harness.root.models.register("scripted", model)
        agent = await harness.create_agent("a", cwd=root)
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def cancel() -> None:
                    await anyio.to_thread.run_sync(started.wait)
                    agent.cancel("user")

                tasks.start_soon(cancel)
                result = await agent.run("Go.")
        assert (result.reason, result.cause) == ("aborted", "user")
