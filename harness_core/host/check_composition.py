"""Checking a composition before anything runs on it: its files, what they name, and what comes of it in each scope (D10).

Every failure becomes a finding with the place in the file that it is about; the rest of the composition is looked at all
the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from harness_core._text import nearest, quoted, quoted_list
from harness_core.errors import CompositionError, HarnessError, PluginConfigError
from harness_core.host.check import check
from harness_core.host.composition import Composition, PluginTable
from harness_core.host.discovery import PluginSource, discover
from harness_core.host.documents import Documents
from harness_core.host.findings import CODES, Finding, by_severity
from harness_core.host.harness import Harness

if TYPE_CHECKING:
    from harness_core.host.scope import Scope

__all__ = ["check_composition", "composition_findings", "startable"]


def composition_findings(error: CompositionError) -> list[Finding]:
    """A finding for each thing that is wrong with the files of a composition."""
    return [
        Finding(
            code="composition",
            message=each.message,
            remedy=each.remedy or "Correct the file.",
            kind="composition",
            entry=each.entry,
            file=each.file,
            line=each.line,
        )
        for each in error.problems or (error,)
    ]


async def check_composition(
    composition: Composition,
    folder: Path,
    documents: Documents | None = None,
    *,
    scopes: Sequence[str] = (),
    installed: Sequence[PluginSource] | None = None,
) -> list[Finding]:
    """All findings, the worst first: for the global scope and ``scopes``, by default all that the composition names.

    ``documents`` tells places in files; ``installed`` are the plugins to choose from.

    Raises:
        ScopeError: ``scopes`` names one that there is not.
    """
    sources = list(installed) if installed is not None else discover()
    findings = [
        *_not_installed(composition, sources),
        *_ambiguous(composition, sources),
        *_unknown_names(composition, sources),
    ]
    started = startable(composition, sources)
    try:
        made = Harness.from_composition(started, folder, on_error="skip", entry_points=lambda: sources)
        await made.__aenter__()
    except HarnessError as error:
        findings.append(_of_start(error))
    else:
        async with _entered(made) as harness:
            chosen = [harness.root, *(harness.known_scope(name) for name in scopes or started.scope_names())]
            found = await check(harness, chosen)
            findings += [_about_table(finding, harness, started) for finding in found]
            if not harness.failures and len(started.plugins) == len(composition.plugins):
                findings += _unknown_contributions(harness, composition, chosen)
    if documents is not None:
        findings = [_placed(finding, documents) for finding in findings]
    return by_severity(findings)


class _entered:  # noqa: N801 -- reads as a word
    """A harness that runs already, to be left in the usual way."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness

    async def __aenter__(self) -> Harness:
        return self._harness

    async def __aexit__(self, *error: Any) -> None:
        await self._harness.__aexit__(*error)


def _not_installed(composition: Composition, installed: Sequence[PluginSource]) -> Iterator[Finding]:
    names = [source.name for source in installed]
    for path, name, table, _ in composition.tables():
        wanted = table.plugin or name
        if table.enabled and wanted not in names:
            near = nearest(wanted, names)
            yield Finding(
                code="not-installed",
                message=f"{path}: no installed distribution offers a plugin called {quoted(wanted)}.",
                remedy=f"Did you mean {near!r}?" if near else "Install it with pip, or remove the table.",
                kind="composition",
                entry=path,
                plugin=wanted,
            )


def _ambiguous(composition: Composition, installed: Sequence[PluginSource]) -> Iterator[Finding]:
    """Names that several distributions offer: one of them is taken, by the name of the distribution (UC-06)."""
    for path, name, table, _ in composition.tables():
        offers = [source for source in installed if source.name == (table.plugin or name)]
        if table.enabled and len(offers) > 1:
            taken, *others = (f"{source.distribution} {source.version}" for source in offers)
            yield Finding(
                code="ambiguous-plugin",
                message=f"{path}: {quoted(offers[0].name)} is offered by {taken}, which is taken, and by {', '.join(others)}.",
                remedy="Uninstall all but one of these distributions.",
                kind="composition",
                entry=path,
                plugin=offers[0].name,
            )


def _unknown_names(composition: Composition, installed: Sequence[PluginSource]) -> Iterator[Finding]:
    known = {source.name for source in installed} | {name for _, name, _, _ in composition.tables()}
    places = [(f"outermost[{index}]", name) for index, name in enumerate(composition.outermost)]
    for path, _, table, _ in composition.tables():
        for key in ("before", "after"):
            places += [(f"{path}.{key}[{index}]", name) for index, name in enumerate(getattr(table, key))]
    for path, name in places:
        if name not in known:
            near = nearest(name, known)
            yield Finding(
                code="unknown-plugin",
                message=f"{path}: there is no plugin called {quoted(name)}; the entry says nothing.",
                remedy=f"Did you mean {near!r}?" if near else "Correct the name, or remove it.",
                kind="composition",
                entry=path,
            )


def _unknown_contributions(harness: Harness, composition: Composition, scopes: Sequence[Scope]) -> Iterator[Finding]:
    """Placements of sections and contexts that nobody registers."""
    prefixes = {(): ""} | {composition.path(name): f"agents.{name}." for name in composition.agents}
    for path, overrides in composition.overrides().items():
        target = harness.root if not path else harness.known_scope(path[-1])
        seen = [entry for scope in scopes if target in scope.chain() for entry in harness.prompt.entries(scope)]
        for (kind, name), override in overrides.items():
            same_kind = [entry for entry in seen if entry.kind == kind]
            if any(entry.name == name and override.plugin in (None, entry.origin.plugin) for entry in same_kind):
                continue
            known = {entry.name for entry in same_kind}
            near = nearest(name, known - {name})
            owner = f" of plugin {quoted(override.plugin)}" if override.plugin is not None else ""
            yield Finding(
                code="unknown-contribution",
                message=f"{prefixes[path]}{kind}s.{name}: there is no {kind} {quoted(name)}{owner} to place.",
                remedy=f"Did you mean {near!r}?" if near else f"Known: {quoted_list(sorted(known))}.",
                kind="composition",
                entry=f"{prefixes[path]}{kind}s.{name}",
            )


def startable(composition: Composition, installed: Sequence[PluginSource]) -> Composition:
    """The composition without the plugins that are not installed, and with every failure to be looked past."""
    paths = {finding.entry for finding in _not_installed(composition, installed)}

    def kept(tables: dict[str, PluginTable], prefix: str) -> dict[str, PluginTable]:
        return {
            name: attrs.evolve(table, on_error=None)
            for name, table in tables.items()
            if f"{prefix}plugins.{name}" not in paths
        }

    agents = {
        name: attrs.evolve(agent, plugins=kept(agent.plugins, f"agents.{name}."))
        for name, agent in composition.agents.items()
    }
    return attrs.evolve(composition, plugins=kept(composition.plugins, ""), agents=agents)


def _of_start(error: HarnessError) -> Finding:
    """Why nothing could be started at all."""
    return Finding(
        code=error.code if error.code in CODES else "start-failed",
        message=f"{error.message} [{error.code}]",
        remedy=error.remedy or "Correct what the message says.",
        kind="composition",
        entry=error.entry or (f"plugins.{error.names[0]}" if error.names else None),
        plugin=error.plugin,
        distribution=error.distribution,
        version=error.version,
        file=error.file,
        line=error.line,
    )


def _about_table(finding: Finding, harness: Harness, composition: Composition) -> Finding:
    """A failed plugin's finding with the table that asks for the plugin."""
    if finding.code != "plugin-failed":
        return finding
    failure = next((f for f in harness.failures if f.name == finding.plugin and str(f.error) in finding.message), None)
    path = next((p for p, name, t, _ in composition.tables() if finding.plugin in (name, t.plugin)), None)
    if failure is None or path is None:
        return finding
    wrong = failure.error.entry if isinstance(failure.error, PluginConfigError) else None
    return attrs.evolve(finding, kind="composition", entry=f"{path}.config.{wrong}" if wrong else path)


def _placed(finding: Finding, documents: Documents) -> Finding:
    if finding.kind != "composition" or finding.entry is None or finding.file is not None:
        return finding
    place = documents.place(finding.entry)
    return attrs.evolve(finding, file=place.source, line=place.line)
