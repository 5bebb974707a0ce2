"""Bringing up a set of plugins: which ones, in which order, and what happens when one of them fails (D2, D10).

The order is that of the composition, then the remaining entry points by name; before/after constraints then move a
plugin no further than they must.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal as OneOf, TypeAlias

import attrs

from harness_core._order import OrderCycleError, stable_order
from harness_core.errors import PluginOrderError
from harness_core.host.discovery import PluginSource, source_of

__all__ = ["OnError", "PluginFailure", "PluginUse", "ResolvedUse", "ScopePath", "ordered_uses", "resolved"]

OnError: TypeAlias = OneOf["fail", "skip"]


ScopePath: TypeAlias = tuple[str, ...]
"""The names of the scopes from below the global one down to the one that is meant."""


def _scope_path(value: str | Iterable[str] | None) -> ScopePath:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@attrs.frozen(kw_only=True)
class PluginUse:
    """One plugin as a composition wants it.

    ``plugin`` is an installed name, a class, a module or an instance; ``scope`` names a scope below the root, or is the
    path of names to it;
    ``before``/``after`` name plugins, ``outermost`` puts its listeners outside all others, ``on_error`` says whether a
    failure stops the harness or leaves this plugin out, ``last`` installs it after all others.
    """

    plugin: Any
    name: str | None = None
    config: Mapping[str, Any] | Any = None
    scope: ScopePath = attrs.field(default=None, converter=_scope_path)
    before: tuple[str, ...] = attrs.field(default=(), converter=_names)
    after: tuple[str, ...] = attrs.field(default=(), converter=_names)
    outermost: bool = False
    on_error: OnError | None = None
    enabled: bool = True
    last: bool = False


@attrs.frozen
class ResolvedUse:
    """A use together with the source it names."""

    use: PluginUse
    source: PluginSource
    asked_for: bool = True
    """False where it only happens to be installed."""

    @property
    def constraints(self) -> tuple[str, ...]:
        return (*(f"before {name}" for name in self.use.before), *(f"after {name}" for name in self.use.after))


@attrs.frozen
class PluginFailure:
    """A plugin that was left out, and why."""

    name: str
    distribution: str | None
    version: str | None
    error: Exception


def resolved(uses: Iterable[PluginUse | Any], installed: Sequence[PluginSource], autoload: bool) -> list[ResolvedUse]:
    """The uses with their sources, followed by what is installed and not mentioned, by name.

    Raises:
        PluginLoadError: a name is not installed.
    """
    found: list[ResolvedUse] = []
    mentioned: set[str] = set()
    for each in uses:
        use = each if isinstance(each, PluginUse) else PluginUse(plugin=each)
        if isinstance(use.plugin, str):
            mentioned.add(use.plugin)
        if not use.enabled:
            continue
        found.append(ResolvedUse(use, source_of(use.plugin, use.name, list(installed))))
    if autoload:
        found += [
            ResolvedUse(PluginUse(plugin=s.name), s, asked_for=False) for s in installed if s.name not in mentioned
        ]
    return sorted(found, key=lambda each: each.use.last)


def ordered_uses(uses: Sequence[ResolvedUse]) -> list[ResolvedUse]:
    """The uses in the order in which they are installed.

    Raises:
        PluginOrderError: the constraints contradict each other; names the cycle.
    """
    by_name: dict[str, list[int]] = {}
    for index, each in enumerate(uses):
        by_name.setdefault(each.source.name, []).append(index)
    predecessors: dict[int, list[int]] = {index: [] for index in range(len(uses))}
    for index, each in enumerate(uses):
        for name in each.use.after:
            predecessors[index] += by_name.get(name, [])
        for name in each.use.before:
            for other in by_name.get(name, []):
                predecessors[other].append(index)
    try:
        return [uses[index] for index in stable_order(range(len(uses)), predecessors)]
    except OrderCycleError as error:
        names = [uses[index].source.name for index in error.cycle]  # type: ignore[call-overload]
        raise PluginOrderError(
            f"The before/after constraints of the plugins contradict each other: {' -> '.join(names)}.",
            remedy="Remove one of the constraints.",
            names=names,
        ) from None
