"""Tools and services: what a model can call, what carries it out, and what plugins offer each other."""

from harness_core.tools.registry import ScopedTools, Tool, ToolHandler, ToolRegistry
from harness_core.tools.services import (
    BatchFileSystem,
    FileInfo,
    FileSystem,
    ScopedServices,
    Services,
    Shell,
    ShellResult,
)

__all__ = [
    "BatchFileSystem",
    "FileInfo",
    "FileSystem",
    "ScopedServices",
    "ScopedTools",
    "Services",
    "Shell",
    "ShellResult",
    "Tool",
    "ToolHandler",
    "ToolRegistry",
]
