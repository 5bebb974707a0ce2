"""Beginning a new plugin: from a few choices to a distribution of its own, with tests that pass. Runs no plugin."""

from __future__ import annotations

from harness_core.scaffold._project import project_files
from harness_core.scaffold.choices import HOOKS, LANES, LICENCES, Choices, ScaffoldError, check_free, checked_name
from harness_core.scaffold.folder import check_writable, write_folder

__all__ = [
    "HOOKS",
    "LANES",
    "LICENCES",
    "Choices",
    "ScaffoldError",
    "check_free",
    "check_writable",
    "checked_name",
    "project_files",
    "write_folder",
]
