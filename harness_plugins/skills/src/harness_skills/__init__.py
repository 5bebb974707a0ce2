"""Skills for pluggy-harness: a catalogue of SKILL.md folders, a tool that loads them, and /name for users."""

from harness_skills.config import Config
from harness_skills.plugin import Skills

__all__ = ["Config", "Skills"]
