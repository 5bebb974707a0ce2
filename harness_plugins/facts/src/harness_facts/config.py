"""The settings of the facts plugin: which facts are told, and what holds where nobody says otherwise."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import attrs

__all__ = ["Approvals", "Config", "FileAccess"]

FileAccess: TypeAlias = Literal["read-only", "workspace-write", "full-access"]
Approvals: TypeAlias = Literal["ask", "never"]


def _some_time(_: object, __: object, value: Any) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"must be a number of seconds above 0, not {value!r}")


@attrs.define(kw_only=True)
class Config:
    """Settings of the facts plugin. Each kind of fact has a switch; the plugin tells of permissions and grants none."""

    sandbox: bool = True
    """Tell which files can be read and written, where that is known."""
    file_access: FileAccess | None = None
    """What holds for files in a session for which nobody has set it otherwise; unknown by default."""
    writable_root: str | None = None
    """The folder of ``workspace-write``; by default the session's working directory."""
    approval: bool = True
    """Tell whether the user is asked for permission, where that is known."""
    approvals: Approvals | None = None
    """What holds for permission in a session for which nobody has set it otherwise; unknown by default."""
    git: bool = True
    """Tell the branch, and whether there are uncommitted changes. Needs a shell service."""
    git_seconds: float = attrs.field(default=2.0, validator=_some_time)
    """How long git may take; after that nothing is told."""
    delegation: bool = True
    """Tell an agent that works for another one that it does."""
    platform: bool = True
    """Offer the variables ``platform`` and ``shell``."""
