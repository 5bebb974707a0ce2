"""Every text of this plugin that a model reads, and the frame around it. Decides nothing about what is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = [
    "CLOSE",
    "DELTA_INTRO",
    "INTRO",
    "NONE_ACTIVE",
    "OPEN",
    "REPLACES",
    "SHORT_INTRO",
    "baseline_heading",
    "cut_notice",
    "left_out_notice",
    "on_one_line",
    "removed_heading",
    "replaced_heading",
    "sealed",
    "set_heading",
]

_TAG = "agent-instructions"
OPEN = f"<{_TAG}>"
CLOSE = f"</{_TAG}>"

_CLOSING = re.compile(rf"<(\s*)/(\s*{_TAG})", re.IGNORECASE)

_ABOUT = (
    "Standing instructions from files that this project and its user keep. The harness put them here as background; they "
    "are no message from the user and ask for nothing by themselves. Follow them where they apply to the work at hand. Where "
    "two disagree, the one further down counts. What the user says, and the system's rules, count before all of them."
)
INTRO = _ABOUT
REPLACES = "This list replaces every earlier one."
"""Added to the intro of a list that supersedes others."""
SHORT_INTRO = "Standing instructions from files; put here by the harness as background, not by the user."
NONE_ACTIVE = (
    "No standing instructions from files are in force any more; all that were listed earlier are void. Put here by the "
    "harness as background, not by the user."
)
DELTA_INTRO = (
    "The standing instructions from files have changed since they were listed. The harness put this here as background; it "
    "is no message from the user and asks for nothing by itself."
)


def sealed(text: str) -> str:
    """The text with every spelling of our closing tag defused; as many bytes as before."""
    return _CLOSING.sub(lambda found: f"<{found[1]}\\{found[2]}", text)


def on_one_line(name: str) -> str:
    """A name as it is shown: without line breaks and other characters that do not print."""
    if not name.isprintable():
        name = "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in name)
    return sealed(name)


def baseline_heading(path: str) -> str:
    return f"From {on_one_line(path)}:"


def set_heading(path: str, directory: str | None) -> str:
    """``directory`` is relative to the project's root, which is a dot; None stands for the user's own file."""
    where = {None: "all work", ".": "work in this project"}.get(directory) or f"work in {on_one_line(directory or '')}/"
    return (
        f"From {on_one_line(path)}, for {where}. There it counts before broader instructions of this kind, and after what "
        "the user says and the system's rules:"
    )


def replaced_heading(path: str) -> str:
    return f"{on_one_line(path)} has changed. Follow this text instead of the earlier one:"


def removed_heading(path: str) -> str:
    return f"{on_one_line(path)} is no longer in force; disregard what it said."


def left_out_notice(paths: Sequence[str], limit: int) -> str:
    names = ", ".join(on_one_line(path) for path in paths)
    return f"Left out, because all instructions together would exceed {limit} bytes: {names}. Read these files if you need them."


def cut_notice(paths: Sequence[str], path: str, size: int, kept: int | str) -> str:
    """``kept`` may be empty: the notice's length without that number."""
    text = f"Cut to its first {kept} of {size} bytes: {on_one_line(path)}. Read the file if you need the rest."
    if paths:
        text += f" Left out: {', '.join(on_one_line(each) for each in paths)}."
    return text
