"""The settings. Reads no files."""

from __future__ import annotations

import os

import attrs

__all__ = ["Config", "folder_path"]


def _at_least_one(_: object, __: object, value: int) -> None:
    if value < 1:
        raise ValueError(f"must be 1 or more, not {value!r}")


def _filled(_: object, __: object, value: str) -> None:
    if not value.strip():
        raise ValueError("must not be empty")


def _all_filled(_: object, __: object, value: list[str]) -> None:
    if not all(each.strip() for each in value):
        raise ValueError("must not hold an empty path")


@attrs.define(kw_only=True)
class Config:
    """Settings of the skills plugin."""

    folders: list[str] = attrs.field(
        factory=lambda: [".agents/skills", "~/.harness/skills"],
        validator=_all_filled,
    )
    """Folders of skills, in order of precedence; relative to the agent's working directory, ``~`` is the user's home."""
    tool: str = attrs.field(default="skill", validator=_filled)
    """The name of the tool that loads a skill."""
    max_description: int = attrs.field(default=500, validator=_at_least_one)
    """Characters of a description that the list shows."""
    max_skills: int = attrs.field(default=100, validator=_at_least_one)
    """Skills that the list shows."""
    max_source_bytes: int = attrs.field(default=128 * 1024, validator=_at_least_one)
    """A larger ``SKILL.md`` is no skill."""


def folder_path(folder: str, cwd: str, user_home: str) -> str:
    """Where a configured folder is."""
    if folder == "~" or folder.startswith("~/"):
        folder = os.path.join(user_home, folder[2:])
    return os.path.normpath(os.path.join(cwd, folder))
