"""Logs that are whole, torn, damaged, or of another time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_core.session import (
    FORMAT_VERSION,
    FileStore,
    LogDamagedError,
    LogFormatError,
    PluginRecord,
    Session,
    StoreError,
    TurnStart,
    list_sessions,
    read_log,
    read_log_file,
)


@pytest.fixture
def path(session: Session, store: FileStore, tool_step: Callable[[Session], None]) -> Path:
    """A closed log with one open step."""
    tool_step(session)
    session.close()
    return store.path("s1")


@pytest.mark.spec("LOG-04")
def test_the_first_line_says_what_the_session_is(store: FileStore, clock: Callable[[], int]) -> None:
    Session.create("child", cwd="/här", store=store, parent="s0", depth=2, clock=clock).close()
    first = store.path("child").read_text("utf-8").splitlines()[0]
    assert json.loads(first) == {
        "format": "harness-log", "version": FORMAT_VERSION, "id": "child", "created_at_ms": 1000, "cwd": "/här",
        "parent": "s0", "depth": 2,
    }  # fmt: skip
    resumed = Session.resume("child", store=store)
    assert (resumed.cwd, resumed.parent, resumed.depth, resumed.created_at_ms) == ("/här", "s0", 2, 1000)
    resumed.close()


@pytest.mark.spec("LOG-04")
@pytest.mark.parametrize(
    ("first", "found"), [('{"format":"harness-log","version":99}', 99), ('{"format":"other"}', None), ("[]", None)]
)
def test_another_format_is_refused_by_name_and_left_alone(
    path: Path, store: FileStore, first: str, found: object
) -> None:
    rest = path.read_bytes().split(b"\n", 1)[1]
    path.write_bytes(first.encode() + b"\n" + rest)
    before = path.read_bytes()
    with pytest.raises(LogFormatError) as caught:
        Session.resume("s1", store=store)
    assert caught.value.found == found
    assert str(path) == caught.value.file
    assert path.read_bytes() == before
    assert list_sessions(store) == []


@pytest.mark.spec("LOG-07")
@pytest.mark.parametrize("kept", [0, 1, 20, -1])
def test_a_torn_last_line_is_cut_off_and_kept_beside_the_log(path: Path, store: FileStore, kept: int) -> None:
    whole = path.read_bytes()
    torn = b'{"seq":6,"time":1,"type":"plugin/x/y","data":{"a":1}}\n'[: kept or None][:-1] or b"\x00"
    path.write_bytes(whole + torn)
    assert read_log(store, "s1").torn == torn
    assert path.read_bytes() == whole + torn
    session = Session.resume("s1", store=store)
    assert session.torn_kept == f"{path}.torn-{len(whole)}"
    assert Path(session.torn_kept).read_bytes() == torn
    assert path.read_bytes().startswith(whole)
    session.append(PluginRecord("plugin/x/after", {}))
    session.close()
    assert read_log(store, "s1").torn == b""


@pytest.mark.spec("LOG-07")
def test_a_last_line_of_zeros_counts_as_torn(path: Path, store: FileStore) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole + b"\x00" * 512 + b"\n")
    Session.resume("s1", store=store).close()
    assert path.read_bytes().startswith(whole + b'{"seq":6')


DAMAGE = {
    "no json": lambda line: b"{" + line,
    "zeros": lambda line: b"\x00" * (len(line) - 1) + b"\n",
    "not utf-8": lambda line: line.replace(b'"type"', b'"\xff\xfe"'),
    "another number": lambda line: line.replace(b'"seq":3', b'"seq":4'),
    "a missing field": lambda line: line.replace(b'"reason":"initial",', b""),
    "an unknown field": lambda line: line.replace(b'"seq":3', b'"seq":3,"more":1'),
    "an unknown type": lambda line: line.replace(b"request/header", b"request/hat"),
    "a wrong type of value": lambda line: line.replace(b'"time":1005', b'"time":"1005"'),
    "another schema than its digest says": lambda line: line.replace(b"Look at something", b"Look at anything."),
    "a surface operation where none belongs": lambda line: line.replace(b'"data":', b'"surface":"append","data":'),
    "an empty line": lambda line: b"\n",
    "lost": lambda line: b"",
    "doubled": lambda line: line + line,
}


@pytest.mark.spec("LOG-07")
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_before_the_last_line_is_an_error_with_its_place(path: Path, store: FileStore, damage: str) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    broken = DAMAGE[damage](lines[4])
    assert broken != lines[4]
    path.write_bytes(b"".join([*lines[:4], broken, *lines[5:]]))
    before = path.read_bytes()
    place = 5 + (damage == "doubled")
    for attempt in (lambda: read_log(store, "s1"), lambda: Session.resume("s1", store=store)):
        with pytest.raises(LogDamagedError) as caught:
            attempt()
        error = caught.value
        assert (error.line, error.offset) == (
            place,
            sum(map(len, (lines[:4] + [broken])[: place - 1])) if place == 5 else sum(map(len, lines[:5])),
        )
        assert str(path) == error.file and f"Line {place}" in str(error)
    assert path.read_bytes() == before


def test_a_refused_log_gives_its_lock_back(path: Path, store: FileStore) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"seq":3', b'"seq":9'))
    with pytest.raises(LogDamagedError):
        Session.resume("s1", store=store)
    path.write_bytes(whole)
    Session.resume("s1", store=store).close()


def test_sessions_are_listed_by_their_last_use_with_what_the_person_said_first(store: FileStore) -> None:
    times = iter([10, 20, 30, 40, 50, 60, 70, 80, 90])
    for session_id in ("a", "b"):
        Session.create(session_id, cwd=f"/{session_id}", store=store, clock=times.__next__).close()
    session = Session.resume("a", store=store, clock=times.__next__)
    session.append(TurnStart(turn=1))
    from harness_core.models import Source, UserMessage
    from harness_core.session import APPEND, UserMessageLogged

    session.append(UserMessageLogged(message=UserMessage(id="0", content="ctx", source=Source("plugin"))), APPEND)
    session.append(UserMessageLogged(message=UserMessage(id="1", content="Do  \n it " + "x" * 100)), APPEND)
    session.close()
    a, b = list_sessions(store)
    assert (a.id, a.cwd, a.created_at_ms, a.last_at_ms) == ("a", "/a", 10, 50)
    assert a.title == "Do it " + "x" * 73 + "…"
    assert (b.id, b.title, b.created_at_ms, b.last_at_ms) == ("b", "", 20, 20)


def test_a_log_can_be_read_wherever_its_file_lies(path: Path, store: FileStore, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.log"
    elsewhere.write_bytes(path.read_bytes() + b"torn")
    contents = read_log_file(elsewhere)
    assert (list(contents.events), contents.torn) == (list(read_log(store, "s1").events), b"torn")
    with pytest.raises(StoreError, match="Cannot read"):
        read_log_file(tmp_path / "nowhere")
