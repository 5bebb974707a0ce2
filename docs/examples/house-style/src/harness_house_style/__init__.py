"""How a publisher wants texts written: one section, made of settings."""

from __future__ import annotations

from harness_house_style.config import Config
from harness_house_style.plugin import HouseStyle

__all__ = ["Config", "HouseStyle"]
