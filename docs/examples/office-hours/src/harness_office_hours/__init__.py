"""Whether an office is open: a fact that changes, and a variable that does not."""

from __future__ import annotations

from harness_office_hours.config import Config
from harness_office_hours.plugin import OfficeHours

__all__ = ["Config", "OfficeHours"]
