"""Compaction of long conversations for pluggy-harness: older messages give way to a summary, in the log."""

from harness_compaction.config import Config
from harness_compaction.plugin import Compaction

__all__ = ["Compaction", "Config"]
