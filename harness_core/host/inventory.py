"""The inventory of plugins: what is installed, what is active and what it contributes now, what failed, what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal as OneOf, TypeAlias

import attrs

from harness_core._text import nearest
from harness_core.hooks.specs import OBSERVERS, WATERFALLS
from harness_core.host.discovery import PluginSource
from harness_core.prompt._entries import TextEntry, VariableEntry

if TYPE_CHECKING:
    from harness_core.host.activation import Activation
    from harness_core.host.composition import PluginTable
    from harness_core.host.harness import Harness

__all__ = ["PluginState", "PluginStatus", "inventory"]

PluginState: TypeAlias = OneOf["active", "disabled", "failed", "not loaded", "not installed"]


@attrs.frozen(kw_only=True)
class PluginStatus:
    """One plugin, or one that a composition names and nobody offers.

    ``listed``: does the composition name it; ``remedy``: how to get it, where it is not active; ``places``: for each hook that it implements, its place among all listeners,
    counted from the outermost, 1; ``contributes``: the names of what it has registered now, by kind.
    """

    name: str
    state: PluginState
    listed: bool
    distribution: str | None = None
    version: str | None = None
    entry_point: str | None = None
    scope: str | None = None
    why: str | None = None
    remedy: str | None = None
    places: Mapping[str, int] = attrs.field(factory=dict)
    contributes: Mapping[str, Sequence[str]] = attrs.field(factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in attrs.asdict(self).items() if value not in (None, {})}


_REMEDIES: dict[PluginState, str] = {
    "disabled": "Set enabled = true, or leave out the switch (-p no:NAME, HARNESS_PLUGINS).",
    "failed": "Correct what the message says; it is tried again at the next start. enabled = false leaves it out.",
    "not loaded": "Name it in the composition, or load it for one command with -p NAME.",
    "not installed": "Install the distribution with pip, or remove the table.",
}
"""How to get a plugin back (UC-20)."""


def _remedy(state: PluginState, wanted: str, sources: Iterable[str]) -> str:
    near = nearest(wanted, sources) if state == "not installed" else None
    return f"Did you mean {near!r}?" if near is not None else _REMEDIES[state]


def inventory(
    harness: Harness, installed: Sequence[PluginSource], listed: Mapping[str, PluginTable]
) -> list[PluginStatus]:
    """Every plugin that is installed, active or listed, by name."""
    found = [_active(harness, activation, activation.name in listed) for activation in harness.activations]
    failures = {failure.name: failure for failure in reversed(harness.failures)}
    seen = {status.name for status in found}
    sources = {source.name: source for source in reversed(installed)}
    for name in sorted({*sources, *listed, *failures} - seen):
        source, table, failure = sources.get(name), listed.get(name), failures.get(name)
        offered = source if source is not None else sources.get(table.plugin or "") if table is not None else None
        why: str | None = None
        state: PluginState
        if table is not None and not table.enabled:
            state, why = "disabled", "the composition or a switch says enabled = false"
        elif failure is not None:
            state, why = "failed", str(failure.error)
        elif offered is None:
            state, why = "not installed", "it is named, but no installed distribution offers it"
        else:
            state, why = (
                "not loaded",
                "it is not named, and others are not loaded (autoload = false, or HARNESS_PLUGINS)",
            )
        found.append(
            PluginStatus(
                name=name,
                state=state,
                listed=table is not None,
                distribution=offered.distribution if offered is not None else None,
                version=offered.version if offered is not None else None,
                entry_point=offered.entry_point if offered is not None else None,
                why=why,
                remedy=_remedy(state, table.plugin or name if table is not None else name, sources),
            )
        )
    found += _others(harness, installed, found)
    return sorted(
        found, key=lambda status: (status.name, status.state != "active", status.scope or "", status.distribution or "")
    )


def _others(
    harness: Harness, installed: Sequence[PluginSource], told: Sequence[PluginStatus]
) -> Iterator[PluginStatus]:
    """What further distributions offer under a name that is told already (UC-06)."""
    of_name = {status.name: status for status in told}
    shown = {(status.name, status.distribution) for status in told}
    failures = {(failure.name, failure.distribution): failure for failure in harness.failures}
    for source in installed:
        key = (source.name, source.distribution)
        if source.name not in of_name or key in shown:
            continue
        used, failure = of_name[source.name], failures.get(key)
        state: PluginState
        why: str | None
        if used.state == "disabled":
            state, why = used.state, used.why
        elif failure is not None:
            state, why = "failed", str(failure.error)
        else:
            first = f"{used.distribution} {used.version}" if used.distribution is not None else "the program"
            state, why = "not loaded", f"{first} offers a plugin of the same name, and that one is taken"
        yield PluginStatus(
            name=source.name,
            state=state,
            listed=used.listed,
            distribution=source.distribution,
            version=source.version,
            entry_point=source.entry_point,
            why=why,
            remedy="Uninstall the other one to have this." if state == "not loaded" else _REMEDIES[state],
        )


def _active(harness: Harness, activation: Activation, listed: bool) -> PluginStatus:
    source = activation.source
    return PluginStatus(
        name=activation.name,
        state="active",
        listed=listed,
        distribution=source.distribution,
        version=source.version,
        entry_point=source.entry_point,
        scope=activation.scope.name,
        places=_places(harness, activation),
        contributes=_contributions(harness, activation),
    )


def _places(harness: Harness, activation: Activation) -> dict[str, int]:
    places = {}
    for hook in (*WATERFALLS, *OBSERVERS):
        for place, listener in enumerate(harness.listeners(hook), start=1):
            if listener.rank == activation.rank:
                places[hook] = place
    return places


def _contributions(harness: Harness, activation: Activation) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for scope in harness.prompt.layers():
        layer = harness.prompt.layer(scope)
        if layer is None:
            continue
        entries: list[TextEntry | VariableEntry] = [
            *layer.sections.values(),
            *layer.contexts.values(),
            *layer.variables.values(),
        ]
        for entry in entries:
            if entry.origin is activation.origin:
                found.setdefault(f"{entry.kind}s", []).append(entry.name)
        if any(entry.origin is activation.origin for entry in layer.suppressors):
            found["suppressors"] = ["runtime context"]
    tools = [
        tool.name for tool in harness.tools.view(activation.scope).tools.values() if tool.origin is activation.origin
    ]
    if tools:
        found["tools"] = tools
    models = [name for name, e in harness.models.effective(activation.scope).items() if e.origin is activation.origin]
    if models:
        found["models"] = models
    return found
