"""What counts as an answer of tmux, and how it is worded."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from harness_tmux._query import location_of, query
from harness_tmux._texts import reading, state_of, state_text
from hypothesis import given, strategies as st

HERE = ("work", "2", "editor", "1", "%7", "1", "0", "b25d,80x24,0,0,7")


def joined(*fields: str) -> str:
    return "\\t".join(fields) + "\n"


def test_the_state_holds_all_fields() -> None:
    found = location_of(0, joined(*HERE))
    assert found is not None
    assert state_text(found).split("\n") == [
        'session "work"',
        'window 2 "editor", active: yes',
        "pane 1 (%7), active: no",
        "layout b25d,80x24,0,0,7",
    ]


@pytest.mark.spec("TMUX-17")
def test_names_are_quoted_and_keep_their_accents() -> None:
    found = location_of(0, joined(*HERE[:2], 'fenêtre "à" \\\\ moi', *HERE[3:]))
    assert found is not None
    assert 'window 2 "fenêtre \\"à\\" \\\\\\\\ moi"' in state_text(found)


@pytest.mark.spec("TMUX-12", "TMUX-13", "TMUX-14", "TMUX-15", "TMUX-16")
@pytest.mark.parametrize(
    ("code", "output"),
    [
        (1, joined(*HERE)),
        (None, joined(*HERE)),
        (-9, joined(*HERE)),
        (0, joined("a", "b", "c")),
        (0, joined(*HERE[:4], "", *HERE[5:])),
        (0, joined(*HERE[:2], "a\\tb", *HERE[3:])),
        (0, ""),
        (0, "\n" + joined(*HERE)),
        (0, joined(*HERE[:2], "x" * 20_000, *HERE[3:])),
        (0, joined(*HERE[:2], "\ud800", *HERE[3:])),
    ],
)
def test_anything_else_is_no_location(code: Any, output: str) -> None:
    assert location_of(code, output) is None


def test_only_the_first_line_counts() -> None:
    assert location_of(0, joined(*HERE) + "anything\\tat all") == location_of(0, joined(*HERE))


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30).filter(
    lambda text: "\\" not in text
)


@given(st.lists(names, min_size=8, max_size=8).filter(lambda fields: bool(fields[4])), st.integers(1, 999))
def test_whatever_the_names_are_a_reading_gives_back_its_state(fields: list[str], turn: int) -> None:
    found = location_of(0, joined(*fields))
    assert found is not None
    state = state_text(found)
    assert state_of(reading(turn, state)) == state


def test_the_command_line_is_one_that_sh_can_read() -> None:
    checked = subprocess.run(["/bin/sh", "-n", "-c", query(1)], capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")


@pytest.mark.spec("TMUX-12")
def test_outside_of_tmux_it_fails_without_a_word() -> None:
    ran = subprocess.run(["/bin/sh", "-c", query(1)], capture_output=True, check=False, env={"PATH": "/usr/bin:/bin"})
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, b"", b"")
