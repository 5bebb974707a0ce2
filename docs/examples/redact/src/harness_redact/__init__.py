"""Keeps card numbers and addresses out of what a model reads."""

from __future__ import annotations

from harness_redact.config import Config
from harness_redact.plugin import Redact

__all__ = ["Config", "Redact"]
