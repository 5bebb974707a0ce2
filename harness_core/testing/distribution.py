"""The contract of an installed distribution: what its plugins do to an interpreter, beside others, and to who looks for it.

Reads metadata, and starts interpreters of its own for what can be seen only there. The checks of a single plugin are in
`harness_core.testing.contract`.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import importlib_metadata
from packaging.requirements import InvalidRequirement, Requirement

from harness_core._text import nearest, quoted
from harness_core.errors import PluginLoadError
from harness_core.host import Harness, PluginSource, PluginUse, discover
from harness_core.host.check import check as check_harness
from harness_core.host.discovery import CORE_DISTRIBUTION
from harness_core.host.findings import CODES, Finding, Severity
from harness_core.inspect.compare import Element
from harness_core.inspect.logged import Owner
from harness_core.testing._declared import orders
from harness_core.testing._scene import Subject, temporary
from harness_core.testing._told import Told, difference
from harness_core.testing.contract import CHECKS, Check, run_check

__all__ = ["DISTRIBUTION_CHECKS", "KEYWORD", "distribution_findings", "installed_plugins"]

KEYWORD = "pluggy-harness"
"""The keyword by which people find plugins in a package index; there is no classifier for them."""

SLOW = 0.5
"""Seconds of an import that nobody notices at the start of a command."""

_PROBE_SECONDS = 120.0


def installed_plugins(name: str) -> list[PluginSource]:
    """The plugins of a distribution, or the one plugin of that name.

    Raises:
        PluginLoadError: nothing that is installed has the name.
    """
    installed = discover()
    found = [source for source in installed if source.name == name]
    found = found or [source for source in installed if _normal(source.distribution or "") == _normal(name)]
    if found:
        return found
    known = sorted(
        {*(source.name for source in installed), *(source.distribution or "" for source in installed)} - {""}
    )
    near = nearest(name, known)
    raise PluginLoadError(
        f"No installed distribution and no plugin is called {name!r}.",
        remedy=f"Did you mean {near!r}?" if near else "Install it with pip; an editable install will do.",
        plugin=name,
        known=known,
    )


async def _all(subject: Subject) -> list[Finding]:
    """All checks; where the plugin does not come up, only those that can do without."""
    found: list[Finding] = []
    for (
        check
    ) in _WITHOUT_IT.values():  # first of all: what importing it changes here is there in every process after it
        found += await run_check(check, subject)
    coming_up = await run_check(CHECKS["names"], subject)
    if any(finding.code == "plugin-failed" for finding in (*found, *coming_up)):
        return [*found, *coming_up]
    for check in (*CHECKS.values(), *DISTRIBUTION_CHECKS.values()):
        if check not in _WITHOUT_IT.values():
            found += await run_check(check, subject)
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


async def distribution_findings(
    sources: Iterable[PluginSource],
    configs: Mapping[str, Any] | None = None,
    *,
    others: Iterable[PluginUse] = (),
    slow: float = SLOW,
) -> list[Finding]:
    """All findings about some installed plugins, the worst first.

    Args:
        configs: the settings of each, by plugin name.
        others: how a composition uses the other installed plugins.
        slow: seconds from which importing one is a finding.
    """
    found: list[Finding] = []
    beside = tuple(others)
    for source in sources:
        subject = Subject(source=source, config=(configs or {}).get(source.name), others=beside, slow=slow)
        found += await _all(subject)
    ranks = list(Severity)
    unique = dict.fromkeys(found)
    return sorted(unique, key=lambda finding: (ranks.index(finding.severity), list(CODES).index(finding.code)))


# --- together with others ---------------------------------------------------------------------------------------------


async def together(subject: Subject) -> list[Finding]:
    """With every other installed plugin: nobody fails who did not fail before, and `harness check` has nothing to say."""
    name = subject.source.name
    plugin = name if subject.source.entry_point is not None else subject.source
    without = await _failures(subject, PluginUse(plugin=plugin, enabled=False))
    found: list[Finding] = []
    async with _everybody(subject, PluginUse(plugin=plugin, config=subject.config)) as harness:
        for failure in harness.failures:
            if failure.name not in without:
                who = "it" if failure.name == name else f"plugin {failure.name!r}"
                message = f"With {subject.source.label} and the other installed plugins, {who} fails: {failure.error}"
                remedy = "Rename what clashes, or place it in a scope of its own."
                found.append(subject.finding("fails-together", message, remedy))
        if not found:
            found += [each for each in await check_harness(harness, [harness.root]) if _concerns(each, name)]
    return found


@asynccontextmanager
async def _everybody(subject: Subject, use: PluginUse) -> AsyncIterator[Harness]:
    """A harness with everything that is installed. What is left out of it is looked at here, and not logged."""
    log = logging.getLogger("harness.changing")
    quiet, log.disabled = log.disabled, True
    try:
        async with Harness(plugins=[*subject.others, use], autoload=True, on_error="skip") as harness:
            yield harness
    finally:
        log.disabled = quiet


async def _failures(subject: Subject, use: PluginUse) -> set[str]:
    async with _everybody(subject, use) as harness:
        return {failure.name for failure in harness.failures}


def _concerns(finding: Finding, name: str) -> bool:
    """Is a finding about a plugin? Whether it undoes itself has a check of its own here."""
    named = finding.plugin == name or f"plugin {name!r}" in finding.message
    return named and finding.code not in ("does-not-undo-itself", "plugin-failed")


# --- in an interpreter of its own -------------------------------------------------------------------------------------


async def importing(subject: Subject) -> list[Finding]:
    """Importing it changes nothing outside of its own modules, and takes no time that anybody would notice."""
    entry = subject.source.entry_point or ""
    with temporary() as folder:
        answer, problem = await _probe("import", entry.partition("[")[0].strip(), folder)
    if problem is not None:
        message = f"{subject.source.label} could not be imported from {entry} in an interpreter of its own."
        return [subject.finding("plugin-failed", message, "Correct what the message says.", details=problem)]
    found: list[Finding] = []
    if answer["effects"]:
        message = f"Importing {subject.source.label} from {entry} changes something outside of its own modules."
        remedy = "Do it in harness_setup, and undo it after the yield; a module only defines things."
        found.append(subject.finding("import-effect", message, remedy, details="\n".join(answer["effects"])))
    if answer["seconds"] > subject.slow:
        message = f"Importing {subject.source.label} takes {answer['seconds']:.2f} s, more than {subject.slow:g} s."
        remedy = "Import what is rarely needed where it is needed; python -X importtime says what takes long."
        found.append(subject.finding("slow-import", message, remedy))
    return found


async def seeds(subject: Subject) -> list[Finding]:
    """Two interpreters whose hashes differ tell the same: nothing hangs on the order of a set."""
    asked = pickle.dumps((subject.source.name, subject.config, subject.beside))
    with temporary() as folder:
        answers: dict[str, tuple[dict[str, Any], str | None]] = {}

        async def ask(seed: str) -> None:
            answers[seed] = await _probe("told", folder, folder, asked, seed)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "1")
            tasks.start_soon(ask, "2")
    (first, problem), (second, again) = answers["1"], answers["2"]
    if problem or again:
        message = f"{subject.source.label} could not be asked in an interpreter of its own."
        return [subject.finding("plugin-failed", message, "Correct what the message says.", details=problem or again)]
    texts = difference(_told(first), _told(second))
    if not texts:
        return []
    message = f"{subject.source.label} tells two different things in two interpreters."
    remedy = "Sort what comes from sets, and tell no ids or addresses of objects."
    return [subject.finding("not-deterministic", message, remedy, details="\n".join(texts))]


def _told(lanes: dict[str, Any]) -> Told:
    return Told({lane: [Element(n, text, Owner(plugin=by)) for n, text, by in each] for lane, each in lanes.items()})


async def _probe(
    what: str, argument: str, folder: str, given: bytes = b"", seed: str = "random"
) -> tuple[dict[str, Any], str | None]:
    """The answer of `harness_core.testing._probe`, or what went wrong."""
    result = Path(folder) / f"result-{what}-{seed}.json"
    command = [sys.executable, "-m", "harness_core.testing._probe", what, argument, str(result)]
    environ = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}

    def run() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command, cwd=folder, env=environ, input=given, capture_output=True, check=False, timeout=_PROBE_SECONDS
        )

    try:
        done = await anyio.to_thread.run_sync(run)
    except subprocess.TimeoutExpired:
        return {}, f"It had not answered after {_PROBE_SECONDS:g} seconds."
    if not result.is_file():
        return {}, done.stderr.decode(errors="replace").strip()[-2000:] or f"It ended with status {done.returncode}."
    answer: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return answer, None


# --- metadata ---------------------------------------------------------------------------------------------------------


async def metadata(subject: Subject) -> list[Finding]:
    """What people and tools look for in a distribution."""
    name = subject.source.distribution
    if name is None:
        return []
    dist = importlib_metadata.distribution(name)
    lacks: list[tuple[str, str]] = []
    words = re.split(r"[,\s]+", str(dist.metadata.get("Keywords") or "").lower())
    if KEYWORD not in words:
        lacks.append((f"has no keyword {KEYWORD!r}", f'Add it: keywords = ["{KEYWORD}", ...].'))
    if not _bounded(dist.requires or ()):
        remedy = f'Say from which version on it works: dependencies = ["{CORE_DISTRIBUTION}>=..."].'
        lacks.append((f"requires no lowest version of {CORE_DISTRIBUTION}", remedy))
    if not dist.metadata.get("Requires-Python"):
        lacks.append(("does not say which Pythons it runs on", 'Add requires-python = ">=...".'))
    if not (subject.description or "").strip():
        lacks.append(("has no long description", 'Add readme = "README.md".'))
    if not _typed(subject.source.entry_point or ""):
        lacks.append(("has no py.typed", "Put an empty file py.typed into its package, and into the wheel."))
    facts = {"plugin": None}
    return [
        subject.finding("incomplete-metadata", f"The distribution {quoted(name)} {lack}.", remedy, **facts)
        for lack, remedy in lacks
    ]


def _bounded(requires: Iterable[str]) -> bool:
    lowest: list[bool] = []
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # pip says so when it installs
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if _normal(requirement.name) == CORE_DISTRIBUTION and applies:
            lowest.append(any(each.operator in (">=", ">", "==", "===", "~=") for each in requirement.specifier))
    return any(lowest)


def _typed(entry: str) -> bool:
    """Is the marker in the package, or in one around it? A namespace package has none of its own."""
    package = entry.partition(":")[0].strip()
    while package:
        spec = find_spec(package)
        folders = spec.submodule_search_locations if spec is not None else None
        if any((Path(folder) / "py.typed").is_file() for folder in folders or ()):
            return True
        package = package.rpartition(".")[0]
    return False


_WITHOUT_IT: dict[str, Check] = {"importing": importing, "metadata": metadata}
"""The checks that need no activation."""

DISTRIBUTION_CHECKS: dict[str, Check] = {
    **_WITHOUT_IT,
    "orders": orders,
    "together": together,
    "hash-seeds": seeds,
}
"""The checks of an installed plugin, besides those of `harness_core.testing.contract`, by name."""
