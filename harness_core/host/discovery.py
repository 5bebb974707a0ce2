"""Finding plugins: entry points, and what an integrator hands over directly. Imports a plugin only when told to.

The order of entry points on the machine's path never matters: what is found is sorted by name (D2, UC-24).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import attrs
import importlib_metadata

from harness_core._text import nearest
from harness_core.errors import PluginLoadError

__all__ = ["CORE_DISTRIBUTION", "ENTRY_POINT_GROUP", "PluginSource", "discover", "source_of"]

ENTRY_POINT_GROUP = "harness.plugins"
CORE_DISTRIBUTION = "pluggy-harness"


@attrs.frozen(kw_only=True)
class PluginSource:
    """A plugin that can be installed: its name, where it comes from, and how to get hold of it."""

    name: str
    distribution: str | None = None
    version: str | None = None
    entry_point: str | None = None
    requires: tuple[str, ...] = attrs.field(default=(), repr=False)
    load: Callable[[], Any] = attrs.field(repr=False, eq=False)

    @property
    def label(self) -> str:
        """The plugin as errors name it."""
        if self.distribution is None:
            return f"plugin {self.name!r}"
        return f"plugin {self.name!r} ({self.distribution} {self.version})"

    def facts(self) -> dict[str, Any]:
        return {"plugin": self.name, "distribution": self.distribution, "version": self.version}

    def imported(self) -> Any:
        """The plugin itself: a class, a module or an instance.

        Raises:
            PluginLoadError: it needs another version of the core, or importing it failed; the cause is chained.
        """
        self._check_core()
        try:
            return self.load()
        except Exception as error:
            raise PluginLoadError(
                f"{self.label} could not be imported from {self.entry_point}: {type(error).__name__}: {error}.",
                remedy=f"Repair or remove the distribution {self.distribution!r}, or disable the plugin.",
                entry=self.entry_point,
                **self.facts(),
            ) from error

    def _check_core(self) -> None:
        """Refuse before the import what was made for another core (UC-11)."""
        if not self.requires:
            return
        from packaging.requirements import InvalidRequirement, Requirement

        for text in self.requires:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue  # broken metadata of other requirements is pip's business
            if _normal(requirement.name) != CORE_DISTRIBUTION:
                continue
            running = core_version()
            if running is not None and not requirement.specifier.contains(running, prereleases=True):
                raise PluginLoadError(
                    f"{self.label} requires {requirement}, but {CORE_DISTRIBUTION} {running} is installed; it was not "
                    "imported.",
                    remedy=f"Install a version of {self.distribution!r} that fits, or change the core's version.",
                    entry=str(requirement),
                    **self.facts(),
                )


def core_version() -> str | None:
    """The installed version of the core."""
    try:
        return importlib_metadata.version(CORE_DISTRIBUTION)
    except importlib_metadata.PackageNotFoundError:
        return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def discover(group: str = ENTRY_POINT_GROUP) -> list[PluginSource]:
    """All plugins that are installed, by name, then distribution; nothing is imported."""
    sources = []
    for entry in importlib_metadata.entry_points(group=group):
        dist = entry.dist
        sources.append(
            PluginSource(
                name=entry.name,
                distribution=dist.metadata["Name"] if dist is not None else None,
                version=dist.version if dist is not None else None,
                entry_point=entry.value,
                requires=tuple(dist.requires or ()) if dist is not None else (),
                load=entry.load,
            )
        )
    return sorted(sources, key=lambda source: (source.name, source.distribution or "", source.entry_point or ""))


def source_of(plugin: Any, name: str | None = None, installed: list[PluginSource] | None = None) -> PluginSource:
    """The source of what an integrator handed over: a class, an instance, a module, a source, or an installed name.

    Raises:
        PluginLoadError: no plugin of that name is installed.
    """
    if isinstance(plugin, PluginSource):
        return plugin if name is None else attrs.evolve(plugin, name=name)
    if isinstance(plugin, str):
        return _installed(plugin, installed if installed is not None else discover(), name)
    return PluginSource(name=name or plugin_name(plugin), load=lambda: plugin)


def _installed(wanted: str, installed: list[PluginSource], name: str | None) -> PluginSource:
    matches = [source for source in installed if source.name == wanted]
    if not matches:
        known = [source.name for source in installed]
        near = nearest(wanted, known)
        raise PluginLoadError(
            f"No installed distribution offers a plugin called {wanted!r}.",
            remedy=f"Did you mean {near!r}?" if near else "Install it with pip, or remove the name.",
            plugin=wanted,
            known=known,
        )
    source = matches[0]
    return source if name is None else attrs.evolve(source, name=name)


def plugin_name(plugin: Any) -> str:
    """A plugin's own name: its ``name`` attribute, else its module's last part or its class's name in lower case."""
    own = inspect.getattr_static(plugin, "name", None)
    if isinstance(own, str) and own:
        return own
    if inspect.ismodule(plugin):
        return plugin.__name__.rpartition(".")[2].replace("_", "-")
    kind = plugin if inspect.isclass(plugin) else type(plugin)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind.__name__).lower()
