"""Asking tmux where this process is: the command line, and what its output means. Runs nothing itself."""

from __future__ import annotations

import shlex

import attrs

__all__ = ["Location", "location_of", "query"]

SEPARATOR = "\\t"
"""A backslash and a t, which tmux hands on as they are. A name may hold them too: the fields then do not add up."""
_FIELDS = (
    "session_name",
    "window_index",
    "window_name",
    "pane_index",
    "pane_id",
    "window_active",
    "pane_active",
    "window_layout",
)
_LONGEST = 16 * 1024
"""Characters of an answer that are believed; a layout of a hundred panes has some 3,000."""


@attrs.frozen
class Location:
    """A pane, and the window and session that it is in; each as tmux words it, in the order of the query."""

    session: str
    window_index: str
    window: str
    pane_index: str
    pane_id: str
    window_active: str
    pane_active: str
    layout: str


def query(pid: int) -> str:
    """The command line that prints the location of process ``pid``, and fails where that is not in a pane.

    The pane's variable alone proves nothing: whatever was started from a pane inherits it, also terminals of their own.
    So the process must have a controlling terminal, and it must be the pane's. One call of tmux answers all of it.
    """
    # -u: names come in UTF-8 whatever the locale; tmux would put underscores otherwise.
    names = SEPARATOR.join(f"#{{{name}}}" for name in ("pane_tty", *_FIELDS))
    return "; ".join(
        (
            "set -f",
            '[ -n "${TMUX_PANE-}" ] || exit 1',
            f"set -- $(ps -o tty= -p {pid})",
            "case \"${1-}\" in '' | *'?'*) exit 1; esac",
            f'found=$(tmux -u display-message -p -t "$TMUX_PANE" {shlex.quote(names)}) || exit 1',
            f"separator={shlex.quote(SEPARATOR)}",
            '[ "${found%%"$separator"*}" = "/dev/$1" ] || exit 1',
            'printf \'%s\\n\' "${found#*"$separator"}"',
        )
    )


def location_of(exit_code: int | None, output: str) -> Location | None:
    """What the command line found; None where it found nothing, or something that is no location."""
    line = output.partition("\n")[0]
    fields = line.split(SEPARATOR)
    if exit_code != 0 or len(fields) != len(_FIELDS) or len(line) > _LONGEST or not _storable(line):
        return None
    location = Location(*fields)
    return location if location.pane_id else None


def _storable(text: str) -> bool:
    """A lone surrogate cannot be logged, and nothing of this may fail a turn."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
