"""The settings, as they are written, and what follows from them for one activation. Reads no files."""

from __future__ import annotations

import json
import math
import ntpath
import os
from collections.abc import Mapping

import attrs

__all__ = ["Config", "Settings"]

HOME_VARIABLE = "HARNESS_HOME"
"""The environment variable that names the user's folder where the configuration does not."""
DEFAULT_HOME = ".harness"
"""The user's folder below the home directory of the operating system, where nothing names another."""
USER_FILE = "AGENTS.md"
"""The one file of the user's folder."""
DEFAULT_SOURCE_BYTES = 1024 * 1024
"""Far above any file that a person wrote to be read."""


def _at_least_one(_: object, __: object, value: int) -> None:
    if value < 1:
        raise ValueError(f"must be 1 or more, not {value!r}")


@attrs.define(kw_only=True)
class Config:
    """Settings of the agent-instructions plugin."""

    max_bytes: float
    """The most that one block may take, in bytes of UTF-8: the first list, or one batch of changes. Zero, negative,
    infinite and NaN switch the plugin off."""
    max_source_bytes: int = attrs.field(default=DEFAULT_SOURCE_BYTES, validator=_at_least_one)
    """Larger files count as unreadable, never as deleted."""
    project_root_markers: list[str] = attrs.field(factory=lambda: [".git"])
    """The nearest directory upwards that holds an entry of one of these names is the project's root."""
    instruction_file_candidates: list[str] = attrs.field(factory=lambda: ["AGENTS.md", "CLAUDE.md"])
    """Names of instruction files, in order of precedence; all that exist in a directory are loaded."""
    local_instruction_file_candidates: list[str] = attrs.field(factory=lambda: ["AGENTS.local.md", "CLAUDE.local.md"])
    """Names of overlays, which stand after the other files of the same directory."""
    home: str | None = None
    """The folder of the user's own ``AGENTS.md``; by default ``$HARNESS_HOME``, else ``~/.harness``."""


@attrs.frozen(kw_only=True)
class Settings:
    """What one activation works with."""

    max_bytes: int
    """0: switched off."""
    max_source_bytes: int
    markers: tuple[str, ...]
    candidates: tuple[str, ...]
    """Base names, then overlays: the order in which they are shown."""
    local_from: int
    """Where the overlays begin."""
    home: str
    home_label: str
    """How the user's folder is shown: never as a path of this machine."""

    @classmethod
    def of(cls, config: Config, environ: Mapping[str, str], user_home: str) -> Settings:
        base = [name for name in config.instruction_file_candidates if _is_name(name)]
        local = [name for name in config.local_instruction_file_candidates if _is_name(name)]
        home, label = _home(config.home, environ, user_home)
        usable = math.isfinite(config.max_bytes) and config.max_bytes >= 1
        return cls(
            max_bytes=math.floor(config.max_bytes) if usable else 0,
            max_source_bytes=config.max_source_bytes,
            markers=tuple(name for name in config.project_root_markers if name),
            candidates=tuple(dict.fromkeys([*base, *local])),
            local_from=len(dict.fromkeys(base)),
            home=home,
            home_label=label,
        )

    def identity(self, root: str) -> str:
        """What must be equal for a list of instructions to be still the right one; ``root`` is relative to the cwd."""
        facts = {
            "root": root,
            "markers": self.markers,
            "max_bytes": self.max_bytes,
            "max_source_bytes": self.max_source_bytes,
            "candidates": self.candidates[: self.local_from],
            "local": self.candidates[self.local_from :],
        }
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def _is_name(name: str) -> bool:
    """A plain file name: nothing else may be looked for in a directory."""
    return name not in ("", ".", "..") and not any(ch in name for ch in "/\\\0")


def _home(configured: str | None, environ: Mapping[str, str], user_home: str) -> tuple[str, str]:
    default = os.path.join(user_home, DEFAULT_HOME)
    given = (configured or "", environ.get(HOME_VARIABLE, ""), default)
    named = next(each for each in given if each.strip())
    if named == "~" or named.startswith(("~/", "~\\")):
        rest = named[2:]
        named = os.path.join(user_home, *ntpath.normpath(rest).split("\\")) if rest else user_home
    home = os.path.abspath(named)
    is_default = home == os.path.abspath(default)
    return home, f"~/{DEFAULT_HOME}" if is_default else f"${HOME_VARIABLE}"
