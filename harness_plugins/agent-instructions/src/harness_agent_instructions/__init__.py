"""AGENTS.md and CLAUDE.md for pluggy-harness: instructions in files, kept up with while an agent works."""

from harness_agent_instructions.config import Config
from harness_agent_instructions.plugin import AgentInstructions

__all__ = ["AgentInstructions", "Config"]
