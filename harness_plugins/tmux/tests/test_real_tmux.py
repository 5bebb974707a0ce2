"""With a real tmux server, and with programs of its name that do not answer."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness_tmux import TmuxContext
from harness_workspace import Workspace

from harness_core import Harness
from harness_core.host import AgentSettings
from harness_core.models import CallConfig, ScriptedModel

IN_A_PANE = Path(__file__).with_name("_in_a_pane.py")
needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None or shutil.which("ps") is None, reason="tmux or ps is not installed"
)


@pytest.fixture
def in_a_pane(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Runs ``_in_a_pane.py`` in the only pane of a window of a server of its own, and gives what it wrote."""
    folder = tempfile.mkdtemp(prefix="tmux")  # a socket's path must be short
    env = {name: value for name, value in os.environ.items() if not name.startswith("TMUX")}
    env |= {"LC_ALL": "C.UTF-8", "TERM": "xterm", "TMUX_TMPDIR": folder}

    def tmux(*arguments: str) -> None:
        command = ["tmux", "-f", "/dev/null", *arguments]
        subprocess.run(command, env=env, cwd=tmp_path, check=True, timeout=120)

    def run(how: str) -> Any:
        result = tmp_path / "result.json"
        script = shlex.join([sys.executable, str(IN_A_PANE), how, str(result)])
        tmux("new-session", "-d", "-s", "keep", "sleep 1000")
        tmux("new-session", "-d", "-x", "80", "-y", "24", "-s", "my work", "-n", 'é "quoted"',
             f"LC_ALL=C {script}; tmux wait-for -S over")  # fmt: skip
        tmux("wait-for", "over")
        return json.loads(result.read_text(encoding="utf-8"))

    yield run
    subprocess.run(["tmux", "kill-server"], env=env, capture_output=True, check=False)
    shutil.rmtree(folder)


@needs_tmux
@pytest.mark.spec("TMUX-01", "TMUX-04", "TMUX-05", "TMUX-16", "TMUX-17")
@pytest.mark.parametrize("how", ["pane", "socket"])
def test_in_a_pane_an_agent_is_told_where_it_is(in_a_pane: Callable[[str], Any], how: str) -> None:
    found = in_a_pane(how)
    first, renamed, split = found["told"]
    lines = first.split("\n")
    assert "(turn 1)" in lines[0]
    assert lines[1:4] == [
        'session "my work"',
        'window 0 "é \\"quoted\\"", active: yes',
        f"pane 0 ({found['pane']}), active: yes",
    ]
    assert lines[4].startswith("layout ")
    assert "80x24" in lines[4]
    # In turn 3 the name held our separator; in turn 4 only a backslash, which tmux doubles.
    assert "(turn 4)" in renamed
    assert f'window 0 "a\\\\\\\\nb {found["pane"]}"' in renamed
    assert "(turn 5)" in split
    assert split.split("\n")[4] != renamed.split("\n")[4]


@needs_tmux
@pytest.mark.spec("TMUX-12")
@pytest.mark.parametrize("how", ["terminal", "none"])
def test_a_variable_that_was_only_inherited_is_not_believed(in_a_pane: Callable[[str], Any], how: str) -> None:
    found = in_a_pane(how)
    assert found["pane"].startswith("%")
    assert found["told"] == []


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.anyio
@pytest.mark.spec("TMUX-13")
@pytest.mark.parametrize(
    "text", ["exec sleep 1000", "yes x", "kill -9 $$", "trap '' TERM INT HUP; while :; do sleep 1000; done", "exit 3"]
)
async def test_a_tmux_that_does_not_answer_keeps_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    program(tmp_path / "ps", "echo pts/0")
    program(tmp_path / "tmux", f"touch {shlex.quote(str(tmp_path / 'asked'))}\n{text}")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMUX_PANE", "%0")
    agents = AgentSettings(config=CallConfig(provider="script", model="m"))
    async with Harness(autoload=False, agents=agents) as harness:
        harness.root.models.register("script", ScriptedModel(otherwise="fine"))
        await harness.install(Workspace, config={"shell": True})
        await harness.install(TmuxContext(seconds=0.5))
        agent = await harness.create_agent("a", cwd=tmp_path)
        assert (await agent.run("hello")).ok
        assert [message.text for message in agent.session.messages] == ["hello", "fine"]
    assert (tmp_path / "asked").exists()
    assert caplog.records == []
