"""Commands: how they end, what is kept of their output, and that nothing of them is left."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import anyio
import pytest
from harness_workspace import _shell
from harness_workspace._services import LocalShell
from harness_workspace._shell import Finished, environment, run_command

pytestmark = pytest.mark.anyio


async def run(command: str, cwd: Path | None = None, timeout: float = 20.0) -> Finished:
    return await run_command(command, cwd=cwd, timeout=timeout, environ=os.environ)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(pid: int) -> None:
    with anyio.fail_after(10):
        while alive(pid):
            await anyio.sleep(0.01)


async def test_output_and_exit_code(root: Path) -> None:
    done = await LocalShell(str(root)).run("pwd; printf err >&2; exit 3")
    assert (done.exit_code, done.stdout, done.stderr) == (3, f"{root}\n", "err")
    assert (await LocalShell().run("pwd", cwd=str(root / "src"))).stdout == f"{root / 'src'}\n"


async def test_nothing_waits_for_input(root: Path) -> None:
    assert (await run("cat; echo done")).stdout == "done\n"


async def test_a_command_that_takes_too_long_is_ended_with_all_its_children(root: Path) -> None:
    done = await run("sleep 600 & echo $!; wait", timeout=0.5)
    assert (done.exit_code, done.ended_by) == (None, "timeout")
    await gone(int(done.stdout))


async def test_what_is_left_in_the_background_ends_with_the_command_and_does_not_hold_it_up(root: Path) -> None:
    with anyio.fail_after(10):
        loud = await run("sleep 600 & echo $!")
        silent = await run("sleep 600 >/dev/null 2>&1 & echo $!")
    assert (loud.exit_code, silent.exit_code) == (0, 0)
    await gone(int(loud.stdout))
    await gone(int(silent.stdout))


async def test_a_signal_is_told_from_a_timeout(root: Path) -> None:
    done = await run("kill -TERM $$")
    assert (done.exit_code, done.ended_by) == (None, "SIGTERM")
    assert (await LocalShell().run("kill -TERM $$")).exit_code is None


async def test_cancelling_ends_the_command(root: Path) -> None:
    pid_file = root / "pid"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, f"echo $$ > {pid_file}; sleep 600; touch {root}/marker")
        with anyio.fail_after(10):
            while not (pid_file.exists() and pid_file.read_text().strip()):
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    await gone(int(pid_file.read_text()))
    assert not (root / "marker").exists()


async def test_the_beginning_and_the_end_of_long_output_are_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shell, "KEPT_BYTES", 100)
    done = await run("echo first; i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo last")
    assert done.stdout.startswith("first\nline 0\n")
    assert done.stdout.endswith("\nlast\n")
    assert len(done.stdout) < 300
    assert "bytes are left out here" in done.stdout


async def test_output_that_is_no_text_is_replaced(root: Path) -> None:
    assert (await run(r"printf '\351'")).stdout == "\ufffd"


async def test_a_folder_that_is_not_there_is_an_error(root: Path) -> None:
    with pytest.raises(OSError, match="absent"):
        await run("true", cwd=root / "absent")


async def test_secrets_of_the_environment_do_not_reach_commands(root: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "DEEPSEEK_API_KEY": "k1",
        "GH_TOKEN": "k2",
        "Db_Password": "k3",
        "KEYMAP": "de",
    }
    done = await LocalShell(str(root), environ).run("env")
    assert not any(secret in done.stdout for secret in ("k1", "k2", "k3"))
    assert "KEYMAP=de" in done.stdout
    assert set(environment(environ)) == {"PATH", "KEYMAP"}


async def test_a_daemon_that_left_the_group_holds_nothing_up_and_nothing_open(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with anyio.fail_after(10):
        done = await run("setsid sleep 30 & echo $!")
    assert done.exit_code == 0
    gc.collect()  # what is not closed would be warned of here, and that is an error
    assert len(os.listdir("/proc/self/fd")) <= before + 3  # the event loop's own
    os.kill(int(done.stdout), signal.SIGKILL)
