"""Asking git about a folder: one command line, and what its output means. Coarse on purpose, and runs nothing itself."""

from __future__ import annotations

import attrs

__all__ = ["QUERY", "GitState", "state_of"]

_BYTES = 2_000
"""Of the output that are looked at: its header has some 500, and one line below tells that there are changes."""
QUERY = (
    # Neither waits for a lock nor writes the index, and starts no monitor that a repository's settings name.
    "git --no-optional-locks -c core.fsmonitor=false status --porcelain=v2 --branch --untracked-files=normal "
    f"2>/dev/null | head -c {_BYTES}"
)
_BRANCH = "# branch.head "
_DETACHED = "(detached)"
_LONGEST = 200
"""Characters of a branch's name; longer ones say nothing more."""


@attrs.frozen
class GitState:
    """The branch, or None where there is none, and whether anything is not committed."""

    branch: str | None
    dirty: bool


def state_of(exit_code: int | None, output: str) -> GitState | None:
    """What git said; None where it did not, or where there is no repository."""
    lines = output.splitlines()
    branch = next((line.removeprefix(_BRANCH) for line in lines if line.startswith(_BRANCH)), None)
    if exit_code != 0 or branch is None:
        return None
    dirty = any(line and not line.startswith("#") for line in lines)
    # Git allows no lone surrogate in a name, but a shell service may decode bytes that way; nothing of it could be logged.
    name = branch.encode("utf-8", "replace").decode()[:_LONGEST]
    return GitState(None if branch == _DETACHED else name, dirty)
