"""The embedded store against other processes, full disks, read-only folders and sudden death."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness_core.session import (
    FileStore,
    PluginRecord,
    Session,
    SessionLockedError,
    StoreError,
    TurnEnd,
    list_sessions,
    read_log,
)

WRITER = Path(__file__).with_name("_writer.py")


def writer(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(WRITER), str(folder)], stdout=subprocess.PIPE, text=True)


def until(process: subprocess.Popen[str], acknowledged: int) -> list[str]:
    """Read so many acknowledgements, kill the writer, and give back all that it had said."""
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(acknowledged + 1)]
    process.send_signal(signal.SIGKILL)
    said += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    return [line for line in said if line.endswith("\n")]


def test_a_second_process_is_refused_with_the_holder_s_name(tmp_path: Path) -> None:
    process = writer(tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(SessionLockedError) as caught:
        Session.resume("s1", store=FileStore(tmp_path))
    assert caught.value.pid == process.pid
    assert str(process.pid) in str(caught.value) and caught.value.host in str(caught.value)  # type: ignore[operator]
    assert caught.value.since_ms
    until(process, 0)
    Session.resume("s1", store=FileStore(tmp_path)).close()
    assert not list(tmp_path.glob("*.lock"))


@pytest.mark.spec("LOG-03", "LOG-06", "LOG-07")
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    rounds = random.Random(7)
    known = 0
    for _ in range(12):
        said = until(writer(tmp_path), rounds.randrange(60))
        assert said[0].startswith("open")
        numbers = [int(line) for line in said[1:]]
        before = read_log(FileStore(tmp_path), "s1")
        assert len(before.events) >= (numbers[-1] + 1 if numbers else known)
        session = Session.resume("s1", store=FileStore(tmp_path))
        assert list(session.events)[: len(before.events)] == list(before.events)
        assert session.nesting.turn == 0
        if session.repaired:
            assert session.events[-1].data == TurnEnd(turn=session.nesting.last_turn, reason="interrupted")
        calls = [call.id for message in session.messages for call in getattr(message, "tool_calls", ())]
        results = [message.call_id for message in session.messages if hasattr(message, "call_id")]
        assert calls == results
        known = len(session.events)
        session.close()


def note(number: int) -> PluginRecord:
    return PluginRecord("plugin/test/note", {"n": number, "pad": "x" * 300})


def test_a_write_cut_short_is_taken_back_so_that_the_next_one_is_whole(tmp_path: Path) -> None:
    room = [10**9]

    def write(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        part = data[: room[0]]
        room[0] -= len(part)
        return os.write(descriptor, part)

    store = FileStore(tmp_path, write=write)
    session = Session.create("s1", cwd="/", store=store)
    session.append(note(0))
    before = store.path("s1").read_bytes()
    for left in (0, 1, 100, 330):
        room[0] = left
        with pytest.raises(StoreError, match="No space left") as caught:
            session.append(note(1))
        assert (caught.value.errno, caught.value.file) == (errno.ENOSPC, str(store.path("s1")))
        assert store.path("s1").read_bytes() == before
    room[0] = 10**9
    session.append(note(2))
    session.close()
    assert [event.data for event in read_log(store, "s1").events] == [note(0), note(2)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"mounting a small tmpfs is not permitted here: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_a_clear_error_and_loses_nothing_acknowledged(small_disk: Path) -> None:
    store = FileStore(small_disk)
    session = Session.create("s1", cwd="/", store=store)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 100_000)
    written = []
    with pytest.raises(StoreError, match="No space left") as caught:
        for number in range(10_000):
            session.append(note(number))
            written.append(note(number))
    assert caught.value.errno == errno.ENOSPC and str(store.path("s1")) in str(caught.value)
    assert len(written) > 100
    with pytest.raises(StoreError):
        Session.create("s2", cwd="/" + "x" * 5_000, store=store)
    assert [summary.id for summary in list_sessions(store)] == ["s1"]
    assert [event.data for event in read_log(store, "s1").events] == written
    ballast.unlink()
    session.append(note(-1))
    session.close()
    resumed = Session.resume("s1", store=store)
    assert [event.data for event in resumed.events] == [*written, note(-1)]
    resumed.close()


def test_a_read_only_folder_is_a_clear_error(small_disk: Path) -> None:
    store = FileStore(small_disk)
    Session.create("s1", cwd="/", store=store).close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for attempt, what in [
        (lambda: Session.create("s2", cwd="/", store=store), "create"),
        (lambda: Session.resume("s1", store=store), "open"),
        (lambda: store.delete("s1"), "delete"),
    ]:
        with pytest.raises(StoreError, match=f"Cannot {what} .*Read-only file system") as caught:
            attempt()
        assert caught.value.errno == errno.EROFS
    assert len(read_log(store, "s1").events) == 0


def test_logs_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    Session.create("s1", cwd="/", store=store).close()
    assert stat.S_IMODE(store.path("s1").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("breaks_at", "call"), [("mkdir", 1), ("open", 1), ("write", 1), ("fsync", 1), ("link", 1), ("fsync", 2)]
)
def test_a_failed_creation_leaves_no_file_and_frees_the_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks_at: str, call: int
) -> None:
    works = getattr(os, breaks_at)
    calls = iter(range(1, 100))

    def broken(*arguments: object, **named: object) -> object:
        if next(calls) == call:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return works(*arguments, **named)

    store = FileStore(tmp_path / "logs", write=broken if breaks_at == "write" else os.write)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(os, breaks_at, broken)
        with pytest.raises(StoreError, match="error"):
            Session.create("s1", cwd="/", store=store)
    assert not list(tmp_path.glob("logs/*")) and not list(tmp_path.glob("logs/.*"))
    Session.create("s1", cwd="/", store=store).close()


def test_files_are_closed_with_their_sessions(tmp_path: Path, clock: Callable[[], int]) -> None:
    store = FileStore(tmp_path)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for number in range(50):
        session = Session.create(f"s{number}", cwd="/", store=store, clock=clock)
        session.append(note(number))
        session.close()
        Session.resume(f"s{number}", store=store).close()
        with pytest.raises(StoreError):
            Session.create(f"s{number}", cwd="/", store=FileStore(tmp_path / "s0.jsonl"))
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    store = FileStore(tmp_path)
    session = Session.create("s1", cwd="/", store=store)
    with pytest.raises(SessionLockedError):
        Session.resume("s1", store=store)
    session.append(note(0))
    session.close()
    assert [path.name for path in tmp_path.iterdir()] == ["s1.jsonl"]
    assert len(read_log(store, "s1").events) == 1
