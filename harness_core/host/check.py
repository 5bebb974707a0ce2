"""Checks before the first model call: everything that can be known from the registry and from assembling (D10).

A check reads a running harness and decides nothing. Each rule is one function from what a scope sees to findings; the
rules about texts stand in check_texts.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from harness_core._text import quoted, quoted_list
from harness_core.errors import CompositionError, HarnessError, SectionOrderError
from harness_core.host.check_texts import text_findings
from harness_core.host.findings import CODES, Finding, Severity, about, by_severity
from harness_core.host.loading import PluginFailure
from harness_core.host.references import concealed
from harness_core.host.scope import Scope
from harness_core.prompt import PERSONA_SECTION, PromptAssembly, render_context_snapshot, render_prompt
from harness_core.prompt._entries import TextEntry
from harness_core.prompt._placement import override_of

if TYPE_CHECKING:
    from harness_core.host.activation import Activation
    from harness_core.host.harness import Harness

__all__ = ["Seen", "check", "check_scope"]


@attrs.frozen
class Seen:
    """What a rule looks at: a scope, two assemblies of the same state (None where assembling failed), and the entries."""

    harness: Harness
    scope: Scope
    first: PromptAssembly | None
    second: PromptAssembly | None

    @property
    def texts(self) -> list[TextEntry]:
        """The effective sections and contexts, in their final order."""
        try:
            view = self.harness.prompt.view(self.scope)
        except SectionOrderError:
            return []  # found by assembling
        return [*view.sections.entries, *view.contexts.entries]


async def check(harness: Harness, scopes: Iterable[Scope]) -> list[Finding]:
    """All findings, for each scope; the worst first."""
    findings = [_left_out(failure) for failure in harness.failures]
    for scope in scopes:
        findings += await check_scope(harness, scope)
    # What a provider or listener raises may quote what its plugin was given.
    given = [activation.given for activation in harness.activations]
    findings = [
        attrs.evolve(
            finding,
            message=concealed(finding.message, *given),
            details=finding.details and concealed(finding.details, *given),
        )
        for finding in [*findings, *await _undoing(harness)]
    ]
    return by_severity(findings)


def _left_out(failure: PluginFailure) -> Finding:
    if isinstance(failure.error, CompositionError):  # an agent's own part, rather than a plugin
        return Finding(
            code="composition",
            message=failure.error.message,
            remedy=failure.error.remedy,
            kind="composition",
            entry=failure.error.entry,
        )
    return Finding(
        code="plugin-failed",
        message=f"{failure.name} is left out: {failure.error}",
        remedy="Correct what the message says, or disable the plugin.",
        plugin=failure.name,
        distribution=failure.distribution,
        version=failure.version,
    )


async def check_scope(harness: Harness, scope: Scope) -> list[Finding]:
    """The findings of one scope."""
    try:
        first, second = await harness.assemble(scope), await harness.assemble(scope)
    except Exception as error:
        return [_failed(error, scope), *_of_rules(Seen(harness, scope, None, None))]
    seen = Seen(harness, scope, first, second)
    findings = _of_rules(seen)
    if not any(finding.severity is Severity.ERROR for finding in findings):
        try:
            render_prompt(first)
            render_context_snapshot(first)
        except HarnessError as error:
            findings.append(_failed(error, scope))
    return findings


def _of_rules(seen: Seen) -> list[Finding]:
    return [finding for rule in RULES for finding in rule(seen)]


def _failed(error: Exception, scope: Scope) -> Finding:
    """The finding for a failure; it has a code of its own where the error has one that can be checked for."""
    notes = " ".join(getattr(error, "__notes__", ()))
    if not isinstance(error, HarnessError):
        message = f"{type(error).__name__}: {error} {notes}".strip()
        return Finding(
            code="assembly-failed", message=message, remedy="Repair the provider or listener.", scope=scope.name
        )
    return Finding(
        code=error.code if error.code in CODES else "assembly-failed",
        message=f"{error.message} {notes}".strip(),
        remedy=error.remedy or "Correct what the message says.",
        scope=scope.name,
        kind=error.kind,
        entry=error.entry,
        plugin=error.plugin,
        distribution=error.distribution,
        version=error.version,
        file=error.file,
        line=error.line,
    )


def ties(seen: Seen) -> Iterator[Finding]:
    """Equal orders of different owners: registration order decides between them (X-25, UC-09)."""
    groups: dict[tuple[str, float], list[TextEntry]] = {}
    for entry in seen.texts:
        groups.setdefault((entry.kind, entry.order), []).append(entry)
    for (kind, order), entries in groups.items():
        owners = {entry.origin.plugin for entry in entries}
        if len(owners) > 1:
            names = ", ".join(f"{quoted(entry.name)} ({entry.origin})" for entry in entries)
            yield Finding(
                code="tied-orders",
                message=f"These {kind}s all have order {order:g}: {names}.",
                remedy="Give them different orders, or say before=/after= which comes first.",
                scope=seen.scope.name,
                kind=kind,
                entry=entries[-1].name,
                **about(entries[-1].origin, entries[-1].place),
            )


def shadows(seen: Seen) -> Iterator[Finding]:
    """Entries that a nearer scope's entry displaces."""
    effective = {(entry.kind, entry.name, entry.place, entry.layer) for entry in seen.texts}
    overrides = seen.harness.prompt.overrides_for(seen.scope)
    for entry in seen.harness.prompt.entries(seen.scope):
        if not isinstance(entry, TextEntry) or (entry.kind, entry.name, entry.place, entry.layer) in effective:
            continue
        # The persona is there to be replaced for an agent; what the composition leaves out is not shadowed.
        if entry.name != PERSONA_SECTION and not override_of(entry, overrides).exclude:
            yield Finding(
                code="shadowed",
                message=f"The {entry.kind} {quoted(entry.name)} of {entry.origin}, layer {quoted(entry.layer)}, is not seen.",
                remedy="Nothing to do where this is meant; else use another name.",
                scope=seen.scope.name,
                kind=entry.kind,
                entry=entry.name,
                **about(entry.origin, entry.place),
            )


def constraints(seen: Seen) -> Iterator[Finding]:
    """Constraints that name nothing."""
    for kind in ("section", "context"):
        entries = [entry for entry in seen.texts if entry.kind == kind]
        names = {name for entry in entries for name in (entry.name, *entry.formerly)}
        for entry in entries:
            absent = [name for name in (*entry.before, *entry.after) if name not in names]
            if absent:
                yield Finding(
                    code="unknown-constraint",
                    message=f"The {kind} {quoted(entry.name)} of {entry.origin} is placed by {quoted_list(absent)}, not there.",
                    remedy="Correct the name, if it should be there.",
                    scope=seen.scope.name,
                    kind=kind,
                    entry=entry.name,
                    **about(entry.origin, entry.place),
                )


def stability(seen: Seen) -> Iterator[Finding]:
    """What differs between two assemblies of the same state breaks the prefix cache at every step (UC-12)."""
    if seen.first is None or seen.second is None:
        return
    for code, lane, remedy in (
        ("unstable-section", "sections", "Make it a context: contexts are appended when they change."),
        ("unstable-tool", "tools", "Return the same schema while nothing changed."),
    ):
        before = {record.name: record for record in getattr(seen.first, lane)}
        for record in getattr(seen.second, lane):
            if record.name in before and before[record.name] != record:
                yield Finding(
                    code=code,
                    message=f"The {lane[:-1]} {quoted(record.name)} of {record.origin or 'a listener'} changed by itself.",
                    remedy=remedy,
                    scope=seen.scope.name,
                    kind=lane[:-1],
                    entry=record.name,
                    **about(record.origin),
                )


def tools(seen: Seen) -> Iterator[Finding]:
    """Tool schemas: valid, and one for each name."""
    if seen.first is None:
        return
    from jsonschema import Draft202012Validator, SchemaError

    counts = Counter(tool.name for tool in seen.first.tools)
    for tool in seen.first.tools:
        facts: dict[str, Any] = {"scope": seen.scope.name, "kind": "tool", "entry": tool.name, **about(tool.origin)}
        if counts[tool.name] > 1:
            owners = quoted_list(str(t.origin) for t in seen.first.tools if t.name == tool.name)
            message = f"{counts[tool.name]} tools are called {quoted(tool.name)}: {owners}."
            yield Finding(code="duplicate-tools", message=message, remedy="Rename or restrict all but one.", **facts)
        try:
            Draft202012Validator.check_schema(tool.parameters)
        except SchemaError as error:
            message = (
                f"The parameters of tool {quoted(tool.name)} are no JSON Schema: at {error.json_path}: {error.message}."
            )
            yield Finding(code="invalid-schema", message=message, remedy="Correct the schema.", **facts)


async def _undoing(harness: Harness) -> list[Finding]:
    """Install each active plugin by itself, take it out, and compare with before (EFF, UC-22)."""
    found: list[Finding] = []
    # An order of tools names what one plugin alone does not bring.
    settings = attrs.evolve(harness.prompt.settings, tool_order=None)
    for activation in harness.activations:
        async with type(harness)(settings, autoload=False, agents=harness.agents.settings) as scratch:
            problem = await _left_behind(scratch, activation)
        if problem is not None:
            found.append(
                Finding(
                    code="does-not-undo-itself",
                    message=f"{activation.source.label}, installed alone and taken out again: {problem}.",
                    remedy="Register through ctx, and clean up after the yield.",
                    **about(activation.origin),
                )
            )
    return found


async def _left_behind(scratch: Harness, activation: Activation) -> str | None:
    """What a plugin leaves in a harness that is otherwise empty; None where that is nothing."""
    scope = scratch.root if activation.scope.is_root else scratch.scope(activation.scope.name)
    before = await scratch.assemble(scope)
    owners = _labels(scratch, scope)
    try:
        alone = await scratch.install(activation.source, config=activation.config or None, scope=scope)
    except Exception:
        return None  # it may need others, which is no matter of undoing; nothing is left of it
    try:
        await alone.aclose()
        after = await scratch.assemble(scope)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    left = [label for label in _labels(scratch, scope) if label not in owners]
    return None if after == before and not left else f"it left behind: {quoted_list(left, none='a changed prompt')}"


def _labels(scratch: Harness, scope: Scope) -> list[str]:
    return [label for each in {scratch.root: None, scope: None} for label in each.effects.labels()]


RULES: tuple[Callable[[Seen], Iterable[Finding]], ...] = (
    lambda seen: text_findings(seen.harness, seen.scope, seen.texts, seen.first),
    ties,
    shadows,
    constraints,
    stability,
    tools,
)
"""The rules for one scope."""
