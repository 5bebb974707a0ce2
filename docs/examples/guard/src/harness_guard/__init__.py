"""Denies tools, and writes down who asked for what."""

from __future__ import annotations

from harness_guard.config import Config
from harness_guard.plugin import Guard

__all__ = ["Config", "Guard"]
