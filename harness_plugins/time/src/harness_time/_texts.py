"""Every text of this plugin that a model reads: three lines, and how times and spans are written in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

__all__ = ["UNAVAILABLE", "elapsed_line", "reading", "span", "timestamp", "zone_line"]

UNAVAILABLE = "unavailable"
_SECOND = 1000
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60))


def timestamp(now_ms: int, zone: ZoneInfo) -> str:
    """Local date and time to the second, with its offset, and the zone's name in brackets.

    Raises:
        ValueError, OverflowError, OSError: the time is beyond what a calendar holds.
    """
    return f"{datetime.fromtimestamp(now_ms // _SECOND, zone).isoformat(timespec='seconds')}[{zone.key}]"


def span(milliseconds: int) -> str:
    """Whole seconds in days, hours, minutes and seconds; a negative span is none (TIME-25)."""
    seconds = max(milliseconds, 0) // _SECOND
    words: list[str] = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            words.append(f"{count}{unit}")
    return " ".join([*words, f"{seconds}s"])


def zone_line(zones: Sequence[str]) -> str:
    """What the zones that the user's messages name mean for dates without one."""
    if len(zones) == 1:
        return f"The user's time zone is {zones[0]}; read dates and times that name no zone in it."
    if zones:
        names = json.dumps(list(zones), separators=(",", ":"), ensure_ascii=False)
        return f"The user's messages come from several time zones, {names}; where it matters, ask the user which one is meant."
    return "The user's time zone is not known; where it matters, ask the user."


def elapsed_line(first_step: bool, milliseconds: int | None) -> str:
    since = "newest earlier message" if first_step else "previous reading of this turn"
    return f"Time since the {since}: {UNAVAILABLE if milliseconds is None else span(milliseconds)}"


def reading(turn: int, step: int, time: str, zone: str, elapsed: str) -> str:
    """The whole text; each argument after the numbers is one of the above."""
    return f"Clock, read by the harness as background and not sent by the user: turn {turn}, step {step}, {time}\n{zone}\n{elapsed}"
