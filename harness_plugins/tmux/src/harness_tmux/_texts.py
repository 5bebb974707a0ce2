"""Every text of this plugin that a model reads: one line that changes from turn to turn, and the state below it."""

from __future__ import annotations

import json

from harness_tmux._query import Location

__all__ = ["reading", "state_of", "state_text"]


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _yes(flag: str) -> str:
    return "yes" if flag == "1" else "no"


def state_text(location: Location) -> str:
    """The state, which is what readings are compared by."""
    return "\n".join(
        (
            f"session {_quoted(location.session)}",
            f"window {location.window_index} {_quoted(location.window)}, active: {_yes(location.window_active)}",
            f"pane {location.pane_index} ({location.pane_id}), active: {_yes(location.pane_active)}",
            f"layout {location.layout}",
        )
    )


def reading(turn: int, state: str) -> str:
    return f"The harness runs in this tmux pane; told by it as background, not sent by the user (turn {turn}):\n{state}"


def state_of(text: str) -> str:
    """The state in an earlier reading: all below its first line."""
    return text.partition("\n")[2]
