"""The scene of a check: the plugin that is checked, and harnesses of its own to install it in.

What goes wrong before a check can look at anything is raised as a finding. Judges nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import attrs
import importlib_metadata

from harness_core.errors import HarnessError, PluginConfigError
from harness_core.host import Activation, AgentSettings, Harness, PluginSource, PluginUse, Scope
from harness_core.host.discovery import source_of
from harness_core.host.findings import Finding
from harness_core.models import ScriptedModel
from harness_core.prompt import PromptSettings
from harness_core.session import MemoryStore
from harness_core.testing._told import Told, read_told
from harness_core.testing.clock import FakeClock
from harness_core.testing.stage import SCRIPTED, numbered_ids, scripted_plugin

__all__ = ["Between", "Scene", "StoppedError", "Subject", "scene", "subject_of", "temporary"]

Between: TypeAlias = Callable[[int], object]
"""Called between two steps with the number of the step to come: changes the world around the plugin."""


@attrs.frozen(kw_only=True)
class Subject:
    """The plugin that is checked.

    ``beside`` are plugins that it needs; they are there before it, and stay. ``steps`` and ``between`` are of the
    conversation that is held to see whether a cache can be used.
    """

    source: PluginSource
    config: Mapping[str, Any] | Any = None
    beside: tuple[Any, ...] = ()
    steps: int = 6
    between: Between | None = None
    slow: float = 0.5
    """Seconds from which importing it is a finding."""
    others: tuple[PluginUse, ...] = ()
    """How a composition uses the other installed plugins, where it says so."""

    @property
    def description(self) -> str | None:
        """The README of its distribution, as the metadata have it; None for what is not installed."""
        if self.source.distribution is None:
            return None
        return importlib_metadata.metadata(self.source.distribution).get("Description") or ""

    def finding(self, code: str, message: str, remedy: str, **facts: Any) -> Finding:
        return Finding(code=code, message=message, remedy=remedy, **{**self.source.facts(), **facts})


def subject_of(plugin: Any, **options: Any) -> Subject:
    """The subject for a class, an instance, a module, the name of an installed plugin, or a `PluginUse`.

    Raises:
        PluginLoadError: no plugin of that name is installed.
    """
    if isinstance(plugin, PluginUse):
        options = {"config": plugin.config, **{name: each for name, each in options.items() if each is not None}}
        return Subject(source=source_of(plugin.plugin, plugin.name), **options)
    return Subject(source=source_of(plugin), **options)


class StoppedError(Exception):
    """The plugin failed where a check could not go on."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding

    @classmethod
    def of(cls, subject: Subject, code: str, error: Exception, remedy: str) -> StoppedError:
        """With the facts of the error, where it is one of the framework's."""
        facts: dict[str, Any] = {"details": "\n".join(getattr(error, "__notes__", ())) or None}
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, HarnessError):
            text, remedy = error.message, error.remedy or remedy
            facts |= {"kind": error.kind, "entry": error.entry, "file": error.file, "line": error.line}
        message = text if repr(subject.source.name) in text else f"{subject.source.label}: {text}"
        return cls(subject.finding(code, message, remedy, **facts))


@attrs.define
class Scene:
    """One harness in which the subject is installed when the check wants it, with its folder, clock and model."""

    subject: Subject
    harness: Harness
    folder: str
    clock: FakeClock
    model: ScriptedModel

    async def install(self, scope: Scope | None = None) -> Activation:
        try:
            return await self.harness.install(self.subject.source, config=self.subject.config, scope=scope)
        except Exception as error:
            remedy = "Correct what the message says."
            if isinstance(error, PluginConfigError) and not self.subject.config:
                remedy = "Where it cannot do without settings, check it with some: --config FILE.toml, or config=."
            raise StoppedError.of(self.subject, "plugin-failed", error, remedy) from error

    async def told(self, scope: Scope | None = None) -> Told:
        try:
            return await read_told(self.harness, scope, cwd=self.folder, provider=SCRIPTED)
        except Exception as error:
            remedy = "Repair the provider or listener that raised it."
            raise StoppedError.of(self.subject, "assembly-failed", error, remedy) from error


@asynccontextmanager
async def scene(subject: Subject, folder: str) -> AsyncIterator[Scene]:
    """A harness without the subject. Each scene of one folder starts at the same time, with the same ids."""
    clock = FakeClock()
    model = ScriptedModel(otherwise="Done.", sleep=clock.sleep)
    agents = AgentSettings(store=MemoryStore(), clock=clock, sleep=clock.sleep, new_id=numbered_ids(), debug=True)
    plugins = [scripted_plugin(model), *subject.beside]
    async with Harness(PromptSettings(identity=False), plugins=plugins, autoload=False, agents=agents) as harness:
        yield Scene(subject, harness, folder, clock, model)


def temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="plugin-contract-")
