"""Searching: what is found, in which order, and that no pattern holds it up."""

from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path

import pytest
from harness_workspace import _searching
from harness_workspace._paths import PathRefusedError
from harness_workspace._searching import search


def test_matches_name_file_line_and_text(root: Path) -> None:
    assert search(root, "needle").splitlines() == [
        "README.md:2: needle here",
        "latin:1: caf\ufffd needle",
        "src/a.py:2: needle = 1",
    ]


def test_a_search_can_be_narrowed(root: Path) -> None:
    assert search(root, "needle", glob="*.py") == "src/a.py:2: needle = 1"
    assert search(root, "needle", glob="src/*") == "src/a.py:2: needle = 1"
    assert search(root, "needle", "src") == "src/a.py:2: needle = 1"
    assert search(root, "needle", "README.md") == "README.md:2: needle here"
    assert search(root, "needle", ".git") == ".git/config:1: needle"
    assert search(root, "absent") == "No matches."


def test_a_search_in_nothing_says_so(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        search(root, "x", "absent")
    assert search(root, "x", "fifo") == "No matches."


def test_a_pattern_that_is_none_is_refused(root: Path) -> None:
    with pytest.raises(PathRefusedError, match="no regular expression"):
        search(root, "(")


def test_a_pattern_that_would_take_forever_is_stopped(root: Path) -> None:
    (root / "trap").write_text("a" * 60 + "b\n")
    beats = itertools.count()
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(0.001):
            next(beats)

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        ticks = iter([0.0, *[_searching.MAX_SECONDS - 0.3] * 1000])
        found = search(root, r"(a|a)*$|(a|b|ab)*c", "trap", clock=lambda: next(ticks))
    finally:
        stop.set()
        beating.join()
    assert found == "No matches.\n[stopped after 20 seconds, in trap; use a simpler pattern or fewer files]"
    assert next(beats) > 10  # other threads ran meanwhile


def test_a_search_asks_often_whether_it_should_stop(root: Path) -> None:
    asked = itertools.count()

    def check() -> None:
        if next(asked) == 2:
            raise InterruptedError("stopped")

    with pytest.raises(InterruptedError):
        search(root, "needle", check=check)


def test_matches_are_bounded_and_long_lines_are_shown_around_the_match(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "many").write_text("needle\n" * 300)
    lines = search(root, "needle", "many").splitlines()
    assert (len(lines), lines[-1]) == (201, "[stopped after 200 matches]")
    assert len(search(root, "needle", "many", budget=600).encode()) <= 600
    (root / "wide").write_text("x" * 5000 + "needle" + "y" * 5000)
    shown = search(root, "needle", "wide")
    assert shown.startswith("wide:1: ...xxx")
    assert shown.endswith("yyy...")
    assert "needle" in shown
    assert len(shown) < 450
    monkeypatch.setattr(_searching, "MAX_FILES", 2)
    assert "[stopped after 2 files]" in search(root, "needle")


def test_what_could_not_be_read_is_counted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(place: object) -> object:
        raise PermissionError

    monkeypatch.setattr(_searching, "text_of", unreadable)
    assert search(root, "needle", "README.md") == "No matches.\n[1 files could not be read]"


def test_names_that_are_no_text_can_be_logged(root: Path) -> None:
    descriptor = os.open(os.fsencode(root) + b"/caf\xe9", os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, b"needle")
    os.close(descriptor)
    assert "caf\\udce9:1: needle" in search(root, "needle").splitlines()
