"""Workspace tools for pluggy-harness: read, list and search a folder, and never leave it."""

from harness_workspace.plugin import Config, Workspace

__all__ = ["Config", "Workspace"]
