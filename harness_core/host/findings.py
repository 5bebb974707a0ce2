"""What `harness check` can find: one record for each finding, and the one list of codes with what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import attrs

from harness_core.scopes import Origin

__all__ = ["CODES", "Finding", "Severity", "about", "by_severity"]


class Severity(Enum):
    """How bad it is: an error would fail a turn, a warning costs or surprises, a note is good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


CODES: dict[str, tuple[Severity, str]] = {
    "composition": (Severity.ERROR, "The composition says what no composition can say, or what nothing can do."),
    "not-installed": (Severity.ERROR, "The composition names a plugin that no installed distribution offers."),
    "start-failed": (Severity.ERROR, "The composition cannot be started at all."),
    "plugin-failed": (Severity.ERROR, "A plugin could not be installed, and is left out."),
    "assembly-failed": (Severity.ERROR, "What the scope is told cannot be assembled or rendered at all."),
    "unknown-tools": (Severity.ERROR, "tool_order names tools that nobody knows in the scope."),
    "multiple-complete": (Severity.ERROR, "Two sections claim to be the complete prompt."),
    "malformed-reference": (Severity.ERROR, "A text holds double braces that are no reference."),
    "unknown-variable": (Severity.ERROR, "A text refers to a variable that nobody registered."),
    "invalid-schema": (Severity.ERROR, "The parameters of a tool are no valid JSON Schema."),
    "duplicate-tools": (Severity.ERROR, "The model would get two tools of one name."),
    "does-not-undo-itself": (Severity.ERROR, "Taking the plugin out again leaves something behind."),
    "unstable-section": (Severity.WARNING, "A section's text differs between two assemblies of the same state."),
    "unstable-tool": (Severity.WARNING, "A tool's schema differs between two assemblies of the same state."),
    "hidden-tool-named": (Severity.WARNING, "A text names a tool that the model cannot see in the scope."),
    "zero-width": (Severity.WARNING, "A text holds characters that nobody can see."),
    "tied-orders": (Severity.WARNING, "Two plugins gave the same order; the order of registration decides."),
    "turn-failed": (Severity.ERROR, "A turn of an agent fails with the plugin that succeeds without it."),
    "not-scoped": (Severity.ERROR, "The plugin, installed in one scope, shows in another, or not in its own."),
    "fails-together": (
        Severity.ERROR,
        "Something fails when the plugin is loaded together with the other installed ones.",
    ),
    "untyped-setting": (Severity.ERROR, "A setting has no type, or one that no composition can give a value for."),
    "not-deterministic": (Severity.WARNING, "The same configuration and state give two different prompts."),
    "shared-state": (
        Severity.WARNING,
        "An activation leaves something behind for the next one, or two disturb each other.",
    ),
    "breaks-cache": (
        Severity.WARNING,
        "The beginning of a request changes between steps, so that no cache can be used.",
    ),
    "undescribed-setting": (Severity.WARNING, "Nothing says what a setting of the plugin is."),
    "unprefixed-name": (
        Severity.WARNING,
        "A section or context carries neither the plugin's name nor one that its README lists.",
    ),
    "undocumented-order": (Severity.WARNING, "The README does not say which order number a section or context has."),
    "import-effect": (Severity.WARNING, "Importing the plugin changes something outside of its own modules."),
    "incomplete-metadata": (Severity.WARNING, "The distribution lacks something that people and tools look for."),
    "ambiguous-plugin": (Severity.WARNING, "Several installed distributions offer a plugin of the same name."),
    "unknown-plugin": (Severity.WARNING, "An order of plugins, or the outermost tier, names one that there is not."),
    "unknown-contribution": (Severity.WARNING, "The composition places a section or context that nobody registers."),
    "unknown-constraint": (Severity.NOTE, "A before/after constraint names something that is not there."),
    "slow-import": (Severity.NOTE, "Importing the plugin takes longer than it may."),
    "shadowed": (Severity.NOTE, "An entry is shadowed by a nearer scope's entry of the same name."),
}
"""All codes: their severity, and what they mean."""


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that can be known before the first model call (D10).

    ``scope`` is where it shows, ``entry`` what it is about, ``file`` and ``line`` where that was registered.
    """

    code: str
    message: str
    remedy: str
    scope: str | None = None
    kind: str | None = None
    entry: str | None = None
    plugin: str | None = None
    distribution: str | None = None
    version: str | None = None
    file: str | None = None
    line: int | None = None
    details: str | None = None
    """Further lines, such as what is different."""

    @property
    def severity(self) -> Severity:
        return CODES[self.code][0]

    def to_json(self) -> dict[str, Any]:
        """The finding for programs; what is not known is left out."""
        facts = {name: value for name, value in attrs.asdict(self).items() if value is not None}
        return {"severity": self.severity.value, **facts}


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once, the worst first."""
    ranks, codes = list(Severity), list(CODES)
    unique = dict.fromkeys(findings)
    return sorted(unique, key=lambda finding: (ranks.index(finding.severity), codes.index(finding.code)))


def about(origin: Origin | None, place: tuple[str, int] | None = None) -> dict[str, Any]:
    """The attributes by which a finding names who registered something, and where."""
    facts: dict[str, Any] = {}
    if origin is not None:
        facts = {"plugin": origin.plugin, "distribution": origin.distribution, "version": origin.version}
    if place is not None:
        facts |= {"file": place[0], "line": place[1]}
    return facts
