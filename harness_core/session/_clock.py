"""Where wall-clock time and fresh ids come from, so that tests can say what they are. Owns no state."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Clock", "IdSource", "random_id", "system_clock"]

Clock: TypeAlias = Callable[[], int]
"""Milliseconds since 1970. Wall-clock time: intervals are compared across processes through the log."""

IdSource: TypeAlias = Callable[[], str]
"""Fresh ids, such as `random_id` makes."""


def system_clock() -> int:
    """The machine's clock."""
    return time.time_ns() // 1_000_000


def random_id() -> str:
    """Sixteen hex digits: unique among all messages of all sessions that one person will ever have."""
    return secrets.token_hex(8)
