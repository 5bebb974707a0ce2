"""The settings of the time plugin, refused where they cannot be used. Reads no clock."""

from __future__ import annotations

from typing import Any

import attrs

from harness_time.zones import ZoneTable

__all__ = ["Config"]

_LARGEST = 2**53 - 1
"""Whole numbers up to here survive every JSON reader."""


def _interval(_: object, __: object, value: Any) -> None:
    if value is None:
        return
    if type(value) is not int:
        raise TypeError(f"must be a whole number of milliseconds, not {value!r}")
    if not 0 <= value <= _LARGEST:
        raise ValueError(f"must lie between 0 and {_LARGEST}, not {value!r}")


def _zone(_: object, __: object, value: Any) -> None:
    if value is not None:
        ZoneTable.packaged().zone(value)


@attrs.define(kw_only=True)
class Config:
    """Settings of the time plugin."""

    time_zone: str | None = attrs.field(default=None, validator=_zone)
    """The zone in which times are shown while the user's is not known; by default the zone of this process, as it is
    when the plugin is set up."""
    refresh_interval_ms: int | None = attrs.field(default=None, validator=_interval)
    """A new reading is given when the last one is so old, in milliseconds; by default, and with 0, in every step."""
