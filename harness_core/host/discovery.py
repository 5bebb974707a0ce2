"""Finding plugins: entry points, and what an integrator hands over directly. Imports a plugin only when told to.

The order of entry points on the machine's path never matters: what is found is sorted by name (D2, UC-24).
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import importlib_metadata

from harness_core._text import nearest
from harness_core.errors import PluginLoadError

__all__ = ["CORE_DISTRIBUTION", "ENTRY_POINT_GROUP", "PluginSource", "discover", "source_of"]

ENTRY_POINT_GROUP = "harness.plugins"
"""The group of entry points under which distributions offer plugins."""
CORE_DISTRIBUTION = "pluggy-harness"

_log = logging.getLogger("harness")

_TARGET = re.compile(r"\s*[\w.]+\s*(:\s*[\w.]+\s*)?(\[.*\]\s*)?")
"""What an entry point may lead to: a module, or something in it; extras are of no meaning any more."""


@attrs.frozen(kw_only=True)
class PluginSource:
    """A plugin that can be installed: its name, where it comes from, and how to get hold of it.

    ``damage`` says what is wrong with the metadata of its distribution.
    """

    name: str
    distribution: str | None = None
    version: str | None = None
    entry_point: str | None = None
    damage: str | None = None
    requires: tuple[str, ...] = attrs.field(default=(), repr=False)
    load: Callable[[], Any] = attrs.field(repr=False, eq=False)

    @property
    def label(self) -> str:
        """The plugin as errors name it."""
        known = " ".join(each for each in (self.distribution, self.version) if each is not None)
        return f"plugin {self.name!r} ({known})" if known else f"plugin {self.name!r}"

    def facts(self) -> dict[str, Any]:
        return {"plugin": self.name, "distribution": self.distribution, "version": self.version}

    def imported(self) -> Any:
        """The plugin itself: a class, a module or an instance.

        Raises:
            PluginLoadError: its metadata is damaged, it needs another version of the core, or importing it failed; the
                cause is chained.
        """
        self._check_metadata()
        self._check_core()
        try:
            return self.load()
        except (Exception, SystemExit) as error:  # a script that was not meant to be imported ends the program
            raise PluginLoadError(
                f"{self.label} could not be imported from {self.entry_point}: {type(error).__name__}: {error}.",
                remedy=f"Repair or remove the distribution {self.distribution!r}, or disable the plugin.",
                entry=self.entry_point,
                **self.facts(),
            ) from error

    def _check_metadata(self) -> None:
        """Refuse before the import what pip did not leave like this, and what leads nowhere whatever is imported."""
        if self.damage is not None:
            raise PluginLoadError(
                f"{self.label} was not imported: the metadata of its distribution is damaged: {self.damage}.",
                remedy="Install the distribution again, or remove it.",
                entry=self.entry_point,
                **self.facts(),
            )
        if self.entry_point is not None and not _TARGET.fullmatch(self.entry_point):
            raise PluginLoadError(
                f"{self.label} cannot be imported: its entry point leads to {self.entry_point!r}.",
                remedy=f'In the distribution {self.distribution!r}, write it as {self.name} = "package.module:Class".',
                entry=self.entry_point,
                **self.facts(),
            )

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
    """All plugins that are installed, by name, then distribution; nothing is imported.

    A distribution whose entry points cannot be read offers nothing, and is told in the log.
    """
    sources = []
    for entry in _entry_points(group):
        name, version, requires, damage = _metadata(entry.dist) if entry.dist is not None else (None, None, (), None)
        sources.append(
            PluginSource(
                name=entry.name,
                distribution=name,
                version=version,
                entry_point=entry.value,
                damage=damage,
                requires=requires,
                load=entry.load,
            )
        )
    return sorted(sources, key=lambda source: (source.name, source.distribution or "", source.entry_point or ""))


def _entry_points(group: str) -> Iterator[importlib_metadata.EntryPoint]:
    """The entry points of a group. One damaged file among all distributions must not hide the others."""
    try:
        yield from importlib_metadata.entry_points(group=group)
        return
    except Exception:
        seen: set[str] = set()
    for dist in importlib_metadata.distributions():
        name, version, _, _ = _metadata(dist)
        if name is not None:
            if _normal(name) in seen:  # one further up the path hides it
                continue
            seen.add(_normal(name))
        try:
            yield from dist.entry_points.select(group=group)
        except Exception as error:
            known = f"{name} {version or ''}".rstrip() if name else "a distribution"
            _log.warning(
                "The entry points of %s cannot be read (%s: %s); it offers nothing. Install it again, or remove it.",
                known,
                type(error).__name__,
                error,
            )


def _metadata(dist: Any) -> tuple[str | None, str | None, tuple[str, ...], str | None]:
    """Name, version and requirements of a distribution, and what is wrong with its metadata."""
    damage: str | None
    try:
        metadata = dist.metadata
        found = {field: metadata.get_all(field) or () for field in ("Name", "Version", "Requires-Dist")}
    except Exception as error:
        found, damage = {}, f"METADATA cannot be read ({type(error).__name__}: {error})"
    else:
        missing = [field for field in ("Name", "Version") if not any(found[field])]
        damage = f"METADATA has no {' and no '.join(missing)}" if missing else None
    recorded = _recorded(dist) if damage is not None else (None, None)
    name = next(filter(None, found.get("Name", ())), recorded[0])
    version = next(filter(None, found.get("Version", ())), recorded[1])
    return name, version, tuple(found.get("Requires-Dist", ())), damage


def _recorded(dist: Any) -> tuple[str | None, str | None]:
    """Name and version as the list of a distribution's files has them, in the name of the folder of its metadata."""
    try:
        match = re.search(r"^([^/,\n]+)-([^-/,\n]+)\.dist-info/", dist.read_text("RECORD") or "", re.MULTILINE)
    except Exception:  # damaged as well
        match = None
    return (_normal(match[1]), match[2]) if match is not None else (None, None)


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
