"""The `harness` command, as a process: its main job, its answers to mistakes, and what Ctrl-C leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_core.session import FileStore, read_log, verify

HARNESS = [sys.executable, "-m", "harness_core.cli"]


def harness(*arguments: str, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*HARNESS, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("# The kitchen\n\nRecipes.\n")
    (tmp_path / "soup.txt").write_text("Leek soup\n")
    (tmp_path / "drafts").mkdir()
    (tmp_path / "harness.toml").write_text("autoload = false\n[plugins.workspace]\n")
    return tmp_path


def test_run_reads_the_folder_with_real_tools_and_writes_a_log_that_verifies(folder: Path) -> None:
    done = harness("run", "What is here?", "--session", "s1", cwd=folder)
    assert "4 entries, 1 of them folders" in done.stdout or "entries" in done.stdout
    assert "'# The kitchen'" in done.stdout
    assert "'Leek soup'" in done.stdout
    assert "read" in done.stderr
    store = FileStore(folder / ".harness" / "sessions")
    log = read_log(store, "s1")
    types = [event.type for event in log.events]
    assert types.count("tool/call") == types.count("tool/result") == 4
    assert types[-1] == "turn/end"
    checked = verify(log.info, log.events)
    assert checked.ok
    assert checked.requests == 3


def test_run_goes_on_with_a_session(folder: Path) -> None:
    for _ in range(2):
        harness("run", "What is here?", "--session", "s1", cwd=folder)
    log = read_log(FileStore(folder / ".harness" / "sessions"), "s1")
    assert [event.data.turn for event in log.events if event.type == "turn/start"] == [1, 2]
    assert verify(log.info, log.events).ok


def test_run_prints_json_for_programs(folder: Path) -> None:
    answer = json.loads(harness("run", "What is here?", "--json", cwd=folder).stdout)
    assert answer["reason"] == "completed"
    assert "'Leek soup'" in answer["text"]
    assert Path(answer["log"]).is_file()


def test_a_failed_turn_exits_with_1(folder: Path) -> None:
    done = harness("run", "Hello", "--provider", "nowhere", cwd=folder, status=1)
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_prompt_shows_who_contributed_what(folder: Path) -> None:
    shown = json.loads(harness("prompt", "--json", cwd=folder).stdout)
    assert [tool["name"] for tool in shown["tools"]] == ["list", "read", "search"]
    assert {tool["plugin"] for tool in shown["tools"]} == {"workspace"}
    assert [section["name"] for section in shown["sections"]] == ["harness:identity", "workspace:how"]
    text = harness("prompt", cwd=folder).stdout
    assert "pluggy-harness-workspace" in text
    assert "workspace:how" in text


def test_plugins_can_be_switched_off(folder: Path) -> None:
    shown = json.loads(harness("prompt", "--json", "-p", "no:workspace", cwd=folder).stdout)
    assert shown["tools"] == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[prompt\n", "line 1"),
        ("[prompt]\npersna = 'x'\n", "did you mean 'persona'"),
        ("[prompt]\n\npersona = 3\n", "line 3"),
        ("[plugins.workspace.config]\nmax_result_bytes = 'x'\n", "max_result_bytes"),
        ("[plugins.wrkspace]\n", "Did you mean 'workspace'"),
        ("[prompt]\ntool_order = ['a', 'a']\n", "names 'a' twice"),
        ("on_error = 'maybe'\n", "on_error"),
    ],
)
def test_a_broken_composition_is_explained_without_a_traceback(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "harness.toml").write_text(content)
    done = harness("prompt", cwd=tmp_path, status=1)
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_usage_exits_with_2_and_names_the_nearest_command(folder: Path) -> None:
    assert "Did you mean 'prompt'" in harness("promt", cwd=folder, status=2).stderr
    assert "no: and a name" in harness("prompt", "-p", "no:", cwd=folder, status=2).stderr
    harness("run", cwd=folder, status=2)


SLOW_PLUGIN = """
from harness_core import ToolSchema, hookimpl
import anyio

class Slow:
    @hookimpl
    def harness_setup(self, ctx):
        async def wait(call):
            print("waiting", flush=True)
            await anyio.sleep_forever()
        ctx.tools.register(ToolSchema("list"), wait)
        ctx.tools.register(ToolSchema("read"), wait)
"""

DRIVER = """
import sys
from harness_core.host import Harness, PluginUse
from harness_core.cli import _common
import slow_plugin

original = _common.Chosen.harness
def with_slow(self, **options):
    return original(self, plugins=[*self.composition.uses(), PluginUse(plugin=slow_plugin.Slow)], **options)
_common.Chosen.harness = with_slow
from harness_core.cli import main
main()
"""


def test_ctrl_c_ends_the_turn_as_aborted_with_the_log_whole(tmp_path: Path) -> None:
    (tmp_path / "harness.toml").write_text("autoload = false\n")
    (tmp_path / "slow_plugin.py").write_text(SLOW_PLUGIN)
    (tmp_path / "driver.py").write_text(DRIVER)
    process: Any = subprocess.Popen(
        [sys.executable, "driver.py", "run", "Wait", "--session", "s1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = iter(process.stdout.readline, "")
    assert any("waiting" in line for line in lines)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "aborted" in errors
    assert "Traceback" not in errors
    log = read_log(FileStore(tmp_path / ".harness" / "sessions"), "s1")
    end = log.events[-1].data
    assert (log.events[-1].type, end.reason, end.cause) == ("turn/end", "aborted", "user")
    types = [event.type for event in log.events]
    assert types.count("tool/call") == types.count("tool/result")
    assert verify(log.info, log.events).ok


@pytest.mark.parametrize(
    "content", ["plugins = 3\n", "[plugins]\nworkspace = true\n", "[plugins.workspace]\nconfig = 'x'\n"]
)
def test_what_must_be_a_table_is_asked_for_as_one(tmp_path: Path, content: str) -> None:
    (tmp_path / "harness.toml").write_text(content)
    assert "expected a table" in harness("prompt", cwd=tmp_path, status=1).stderr


def test_an_unknown_scope_is_refused(folder: Path) -> None:
    assert "no scope called 'nowhere'" in harness("prompt", "--scope", "nowhere", cwd=folder, status=1).stderr


def test_an_empty_prompt_still_ends_in_a_log(folder: Path) -> None:
    harness("run", "", "--session", "s1", cwd=folder)


def test_plugins_tells_installed_from_active_disabled_and_missing(folder: Path) -> None:
    (folder / "harness.toml").write_text(
        "autoload = false\n[plugins.workspace]\n[plugins.retry]\nenabled = false\n[plugins.absent]\n"
    )
    listed = json.loads(harness("plugins", "--json", cwd=folder).stdout)["plugins"]
    states = {each["name"]: each["state"] for each in listed}
    assert states["workspace"] == "active"
    assert states["retry"] == "disabled"
    assert states["absent"] == "not installed"
    assert states["compaction"] == "not loaded"
    [workspace] = [each for each in listed if each["name"] == "workspace"]
    assert workspace["distribution"] == "pluggy-harness-workspace"
    assert workspace["contributes"]["tools"] == ["read", "list", "search"]
    assert workspace["contributes"]["sections"] == ["workspace:how"]
    shown = harness("plugins", cwd=folder).stdout
    assert "no installed distribution offers it" in shown


def test_check_fails_on_errors_and_writes_sarif(folder: Path) -> None:
    assert "0 errors" in harness("check", cwd=folder).stdout
    (folder / "harness.toml").write_text(
        'autoload = false\n[prompt]\npersona = "{{who}}"\ntool_order = ["raed", "<unlisted-tools>"]\n[plugins.workspace]\n'
    )
    found = json.loads(harness("check", "--json", "--sarif", "out.sarif", cwd=folder, status=1).stdout)["findings"]
    assert {finding["code"] for finding in found} == {"unknown-variable", "unknown-tools"}
    sarif = json.loads((folder / "out.sarif").read_text())
    assert {result["ruleId"] for result in sarif["runs"][0]["results"]} == {"unknown-variable", "unknown-tools"}
    assert sarif["version"] == "2.1.0"


@pytest.mark.parametrize("command", [("lock", "--file"), ("check", "--sarif"), ("trace", "--html")])
def test_a_file_that_cannot_be_written_is_explained(folder: Path, command: tuple[str, ...]) -> None:
    done = harness(*command, "none/such.file", cwd=folder, status=1)
    assert "none/such.file cannot be written: No such file or directory. Name another file." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_lock_is_written_checked_and_compared(folder: Path) -> None:
    harness("lock", cwd=folder)
    assert "Nothing changed" in harness("lock", "--check", cwd=folder).stdout
    with (folder / "harness.toml").open("a") as file:
        file.write('[prompt]\npersona = "Be brief."\n')
    shown = harness("diff", cwd=folder, status=1).stdout
    assert "added section 'deployment:persona'" in shown
    assert "+Be brief." in shown
    assert "The prefix cache breaks in: global." in shown
    changes = json.loads(harness("lock", "--check", "--json", cwd=folder, status=1).stdout)["changes"]
    assert [(each["lane"], each["what"], each["breaks_prefix"]) for each in changes] == [("sections", "added", True)]
