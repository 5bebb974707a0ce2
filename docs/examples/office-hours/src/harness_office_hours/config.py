"""The settings: when and where an office is open."""

from __future__ import annotations

import datetime
import zoneinfo

import attrs

__all__ = ["Config"]


def _a_zone(_: object, __: attrs.Attribute[str], value: str) -> None:
    try:
        zoneinfo.ZoneInfo(value)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise ValueError(f"{value!r} is no time zone, such as Europe/Paris") from None


def _a_time(_: object, __: attrs.Attribute[str], value: str) -> None:
    try:
        datetime.time.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value!r} is no time of day, such as 09:00") from None


@attrs.define(kw_only=True)
class Config:
    """Settings of the office hours. The office is closed on Saturdays and Sundays."""

    zone: str = attrs.field(default="UTC", validator=_a_zone)
    """The office's time zone."""
    opens: str = attrs.field(default="09:00", validator=_a_time)
    """When it opens, as HH:MM in its own zone."""
    closes: str = attrs.field(default="17:00", validator=_a_time)
    """When it closes; from that minute on it is closed."""
