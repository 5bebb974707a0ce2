"""The composition: one file that says which plugins run, with which settings, and which model answers.

``harness.toml``, or the ``[tool.harness]`` table of a pyproject.toml. Reading it imports no plugin; every problem of the
file is reported at once, with its table path and line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal as OneOf

import attrs

from harness_core.errors import CompositionError, HarnessError
from harness_core.host.agents import AgentSettings
from harness_core.host.config import structure_config
from harness_core.host.loading import PluginUse
from harness_core.host.offline import OfflineModel
from harness_core.host.stores import open_store
from harness_core.models import CallConfig
from harness_core.models.offline import OFFLINE_PROVIDER
from harness_core.prompt import PromptSettings

__all__ = ["FILE_NAME", "Composition", "find_composition", "read_composition"]

FILE_NAME = "harness.toml"
SESSIONS_FOLDER = ".harness/sessions"
"""Where sessions are kept unless the composition says otherwise; relative to the composition's folder."""


@attrs.define(kw_only=True)
class PromptTable:
    """``[prompt]``: see `PromptSettings`."""

    persona: str = ""
    identity: bool = True
    runtime_context: bool = True
    tool_order: list[str] | None = None
    invariants: bool = False


@attrs.define(kw_only=True)
class ModelTable:
    """``[model]``: what requests start with."""

    provider: str | None = None
    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    effort: str | None = None
    seed: int | None = None


@attrs.define(kw_only=True)
class SessionTable:
    """``[session]``: where logs are kept, and when they must outlive the machine."""

    store: str = "file"
    config: dict[str, Any] = attrs.field(factory=dict)
    folder: str = SESSIONS_FOLDER
    durability: OneOf["request", "event", "never"] = "request"


@attrs.define(kw_only=True)
class PluginTable:
    """``[plugins.NAME]``: one plugin, by the name of its entry point, or by another where ``plugin`` holds that."""

    plugin: str | None = None
    enabled: bool = True
    config: dict[str, Any] = attrs.field(factory=dict)
    before: list[str] = attrs.field(factory=list)
    after: list[str] = attrs.field(factory=list)
    scope: str | None = None
    on_error: OneOf["fail", "skip"] | None = None


@attrs.define(kw_only=True)
class Composition:
    """A composition file's content; tables that are absent have their defaults."""

    prompt: PromptTable = attrs.field(factory=PromptTable)
    model: ModelTable = attrs.field(factory=ModelTable)
    session: SessionTable = attrs.field(factory=SessionTable)
    plugins: dict[str, PluginTable] = attrs.field(factory=dict)
    autoload: bool = True
    on_error: OneOf["fail", "skip"] = "fail"
    outermost: list[str] = attrs.field(factory=list)

    def settings(self) -> PromptSettings:
        """The settings of the prompt registry."""
        return PromptSettings(**attrs.asdict(self.prompt))

    def uses(self) -> list[PluginUse]:
        """The plugins that the file names, in its order; what answers offline comes first, where no model is named."""
        offline = [PluginUse(plugin=OfflineModel)] if self.model.provider is None else []
        return offline + [
            PluginUse(
                plugin=table.plugin or name,
                name=name if table.plugin else None,
                config=table.config,
                scope=table.scope,
                before=table.before,
                after=table.after,
                outermost=name in self.outermost,
                on_error=table.on_error,
                enabled=table.enabled,
            )
            for name, table in self.plugins.items()
        ]

    def agents(self, folder: Path) -> AgentSettings:
        """What all agents share; relative folders are relative to ``folder``."""
        return AgentSettings(
            store=open_store(self.session.store, folder / self.session.folder, self.session.config),
            durability=self.session.durability,
            config=CallConfig(**{**attrs.asdict(self.model), "provider": self.model.provider or OFFLINE_PROVIDER}),
        )


def find_composition(folder: Path) -> Path | None:
    """The composition of a folder: its harness.toml, or its pyproject.toml where that has a [tool.harness] table."""
    own = folder / FILE_NAME
    if own.is_file():
        return own
    project = folder / "pyproject.toml"
    if project.is_file() and re.search(r"^\[tool\.harness\b", project.read_text(encoding="utf-8"), re.MULTILINE):
        return project
    return None


def read_composition(path: Path) -> Composition:
    """The composition in a file.

    Raises:
        CompositionError: it cannot be read, is no TOML, or holds what no composition can hold; names file, line and
            table path.
    """
    data, text = _table(path)
    structured = structure_config(data, Composition)
    if isinstance(structured, list):
        first = structured[0]
        lines = [(problem, _line_of(text, problem.path)) for problem in structured]
        listing = "; ".join(f"{problem}{f' (line {line})' if line else ''}" for problem, line in lines)
        raise CompositionError(
            f"{path}: {listing}.",
            remedy="Correct the file.",
            file=str(path),
            line=lines[0][1],
            entry=first.path,
            names=[problem.path for problem in structured],
            known=first.known,
        )
    try:
        structured.settings()
    except HarnessError as error:
        place = f"prompt.{error.entry or ''}"
        raise CompositionError(
            f"{path}: {place}: {error.message}",
            remedy=error.remedy,
            file=str(path),
            line=_line_of(text, place),
            entry=place,
            names=error.names,
            known=error.known,
        ) from error
    return structured


def _table(path: Path) -> tuple[Mapping[str, Any], str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise CompositionError(f"{path} cannot be read: {reason}.", file=str(path)) from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else None
        raise CompositionError(f"{path} is no valid TOML: {error}.", file=str(path), line=line) from None
    if path.name == "pyproject.toml":
        data = data.get("tool", {}).get("harness", {})
    return data, text


def _line_of(text: str, path: str) -> int | None:
    """The line that sets the key at the end of a table path, where it can be told without a parser that keeps lines."""
    keys = re.sub(r"\[\d+\]", "", path).split(".")
    table: list[str] = []
    best = None
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line)
        if header:
            table = [part.strip().strip("\"'") for part in header[1].split(".")]
            table = table[2:] if table[:2] == ["tool", "harness"] else table
            if table == keys:
                return number
            if table and table == keys[: len(table)]:
                best = number
            continue
        key = re.match(r"\s*([A-Za-z0-9_\-\"'.]+)\s*=", line)
        if key and [*table, *[part.strip("\"'") for part in key[1].split(".")]] == keys:
            return number
    return best
