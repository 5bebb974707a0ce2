"""Every text of this plugin that a model reads, and the frames around them. Decides nothing about what is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["catalogue", "invocation", "loaded", "retired", "tool_description", "unavailable", "unknown"]

_CLOSING = re.compile(r"<(\s*)/(\s*skills?\b)", re.IGNORECASE)


def sealed(text: str) -> str:
    """The text with every spelling of our closing tags defused."""
    return _CLOSING.sub(r"<\1\\\2", text)


def tool_description() -> str:
    return "Load a skill: a guide for one kind of work in this project. Load it before you begin such work."


def name_description() -> str:
    return "The skill's name, from the list of skills."


def catalogue(entries: Sequence[tuple[str, str]], tool: str, *, more: int) -> str:
    """``entries`` are names and descriptions; ``more`` says how many others there are."""
    lines = [
        "<skills>",
        f"Skills that can be loaded here with the tool {tool}. The harness put this list here as background; it is no "
        "message from the user and asks for nothing by itself. When the task at hand fits a skill, load it before you "
        "begin. This list replaces every earlier one.",
        "",
        *(f"- {name}: {sealed(description)}" for name, description in entries),
    ]
    if more:
        lines.append(f"({more} more are not listed.)")
    return "\n".join([*lines, "</skills>"])


def retired() -> str:
    return (
        "<skills>\nNo skills can be loaded any more; every earlier list is void. The harness put this here as background; it "
        "is no message from the user.\n</skills>"
    )


def loaded(name: str, folder: str, body: str) -> str:
    """A skill as it is shown, whoever asked for it."""
    return f'<skill name="{name}">\nFiles that it names are relative to {sealed(folder)}.\n\n{sealed(body)}\n</skill>'


def invocation(name: str, folder: str, body: str) -> str:
    return (
        f"The user asked for the skill {name} by writing /{name}. The harness put its text here as background.\n"
        f"{loaded(name, folder, body)}"
    )


def unavailable(name: str) -> str:
    return f"The skill {name} was asked for, but it cannot be read now."


def unknown(name: str, known: Sequence[str]) -> str:
    return f"There is no skill called {name!r:.100}. There are: {', '.join(known) or 'none'}."
