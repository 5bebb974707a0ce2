"""``harness chat`` in real processes: odd input, Ctrl-C at any moment, and a composition that changes in between."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from harness_core.session import FileStore, Session, read_log, verify
from tests.cli.test_commands import DRIVER, HARNESS, SLOW_PLUGIN

ENVIRONMENT = {**{key: value for key, value in os.environ.items() if not key.startswith("HARNESS_")}, "COLUMNS": "500"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "harness.toml").write_text("autoload = false\n")
    return tmp_path


def log_of(folder: Path, session: str = "s1") -> Any:
    """The session's log, which is whole."""
    log = read_log(FileStore(folder / ".harness" / "sessions"), session)
    assert verify(log.info, log.events).ok
    Session.resume(session, store=FileStore(folder / ".harness" / "sessions")).close()  # nobody holds it
    return log


def said(log: Any) -> list[str]:
    return [event.data.message.text for event in log.events if event.type == "user/message"]


def ends(log: Any) -> list[str]:
    return [event.data.reason for event in log.events if event.type == "turn/end"]


# --- input --------------------------------------------------------------------------------------------------------------


def chat(folder: Path, given: bytes | None, *arguments: str, status: int = 0, **options: Any) -> Any:
    done = subprocess.run(
        [*HARNESS, "chat", "--session", "s1", *arguments],
        cwd=folder, input=given, capture_output=True, check=False, timeout=60, env=ENVIRONMENT, **options,
    )  # fmt: skip
    assert done.returncode == status, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


def test_each_line_is_a_turn_whatever_bytes_it_has(folder: Path) -> None:
    long = "x" * 3_000_000
    given = b"\n  \t\none\r\n\r\nbad \xff\xfe \xed\xa0\x80 bytes\n" + long.encode() + b"\n\xc3\xa4 end"
    done = chat(folder, given, "--json")
    assert [json.loads(line)["turn"] for line in done.stdout.splitlines()] == [1, 2, 3, 4]
    assert said(log_of(folder)) == ["one", "bad \ufffd\ufffd \ufffd\ufffd\ufffd bytes", long, "ä end"]


@pytest.mark.parametrize("kind", ["nothing", "closed", "a file"])
def test_input_that_is_no_terminal_and_no_pipe_is_read_to_its_end(folder: Path, kind: str) -> None:
    if kind == "closed":
        chat(folder, None, preexec_fn=lambda: os.close(0))
    elif kind == "nothing":
        chat(folder, None, stdin=subprocess.DEVNULL)
    else:
        (folder / "lines").write_bytes(b"one\n\xff\n")
        with (folder / "lines").open("rb") as lines:
            chat(folder, None, stdin=lines)
        assert said(log_of(folder)) == ["one", "\ufffd"]


def test_a_prompt_that_is_no_text_is_shown_as_such(folder: Path) -> None:
    done = subprocess.run(
        [*HARNESS, "run", b"not \xff text", "--session", "s1"], cwd=folder, check=True, env=ENVIRONMENT
    )
    assert done.returncode == 0
    assert said(log_of(folder)) == ["not \ufffd text"]


# --- at a terminal ------------------------------------------------------------------------------------------------------


class Terminal:
    """A process at a terminal of its own."""

    def __init__(self, arguments: list[str], folder: Path) -> None:
        self.ours, theirs = os.openpty()
        code = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.executable, sys.argv[1:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=ENVIRONMENT, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.shown = ""

    def until(self, wanted: str) -> None:
        """Wait until something is shown after what was awaited last."""
        seen, deadline = "", time.monotonic() + 30
        while wanted not in seen:
            assert time.monotonic() < deadline, f"{wanted!r} did not come after: {self.shown}"
            if select.select([self.ours], [], [], 0.1)[0]:
                seen += os.read(self.ours, 65536).decode()
        self.shown += seen

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def end(self) -> int:
        """The status; the process ends by itself."""
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.ours], [], [], 0.1)[0]:
                self.shown += self._read()
        assert self.process.returncode is not None, f"it does not end: {self.shown}"
        assert "Traceback" not in self.shown
        return self.process.returncode

    def _read(self) -> str:
        try:
            return os.read(self.ours, 65536).decode()
        except OSError:  # the other side is closed
            return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("by", ["key", "signal"])
def test_an_interrupt_at_the_prompt_ends_the_command(folder: Path, before: int, by: str) -> None:
    with Terminal([*HARNESS, "chat", "--session", "s1"], folder) as terminal:
        terminal.until("> ")
        for _ in range(before):
            terminal.type("Hello\n")
            terminal.until("> ")
        terminal.type("\x03") if by == "key" else terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 1
        assert "Aborted!" in terminal.shown
    assert ends(log_of(folder)) == ["completed"] * before


def test_an_interrupt_in_a_turn_ends_the_turn_alone(folder: Path) -> None:
    (folder / "slow_plugin.py").write_text(SLOW_PLUGIN)
    (folder / "driver.py").write_text(DRIVER)
    with Terminal([sys.executable, "driver.py", "chat", "--session", "s1"], folder) as terminal:
        for _ in range(2):
            terminal.until("> ")
            terminal.type("Look around\n")
            terminal.until("waiting")
            terminal.type("\x03")
        terminal.until("> ")
        terminal.type("\x04")
        assert terminal.end() == 1  # the last turn did not succeed
    assert ends(log_of(folder)) == ["aborted", "aborted"]


# --- a composition that changes -----------------------------------------------------------------------------------------


class Chat:
    """A chat that is talked to line by line."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.process: Any = subprocess.Popen(
            [*HARNESS, "chat", "--reload", "--json", "--session", "s1"], env={**ENVIRONMENT, **environment},
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def turn(self) -> str:
        """What is said of the composition before the answer comes."""
        self.process.stdin.write("Hello\n")
        self.process.stdin.flush()
        told = ""
        while not (line := self.process.stdout.readline()).startswith("{"):
            assert line, told
            told += line
        return told

    def end(self) -> None:
        assert self.process.communicate(timeout=30)[0] == ""
        assert self.process.returncode == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def talk(folder: Path) -> Iterator[Chat]:
    with Chat(folder) as chat:
        yield chat


def test_a_file_that_breaks_is_told_once_and_taken_over_when_it_is_mended(folder: Path, talk: Chat) -> None:
    file, base = folder / "harness.toml", folder / "base.toml"

    def after(text: str, to: Path = file) -> str:
        to.write_text(text)
        return talk.turn()

    assert talk.turn() == ""
    assert "harness.toml is no valid TOML" in after("autoload = ")
    assert talk.turn() == ""
    # An extended file that was never there before is watched as well, also while it is broken.
    assert "there is no file base.toml" in after('autoload = false\nextends = "base.toml"\n')
    assert "prompt.persona: expected a string" in after("prompt.persona = 1\n", base)
    assert "the composition was taken over: settings changed" in after('prompt.persona = "Of the base."\n', base)
    assert "settings changed" in after('prompt.persona = "Of the base again."\n', base)
    # A plugin that fails, by its settings or by not being there.
    assert "does not fit" in after("autoload = false\n[plugins.workspace.config]\nmax_result_bytes = 'x'\n")
    assert "called 'wrkspace'" in after("autoload = false\n[plugins.wrkspace]\n")
    assert "installed workspace; settings changed" in after("autoload = false\n[plugins.workspace]\n")
    file.unlink()
    assert "no composition file any more" in talk.turn()
    assert talk.turn() == ""
    assert "removed workspace" in after("autoload = false\n")
    talk.end()
    log = log_of(folder)
    assert len(ends(log)) == 13
    systems = [event.data.header.system for event in log.events if event.type == "request/header"]
    assert any("Of the base again." in system for system in systems)


def test_a_composition_that_comes_later_is_taken_over(tmp_path: Path) -> None:
    with Chat(tmp_path, HARNESS_PLUGINS="") as talk:
        assert talk.turn() == ""
        (tmp_path / "harness.toml").write_text('prompt.persona = "Late."\n')
        assert "settings changed" in talk.turn()
        talk.end()
