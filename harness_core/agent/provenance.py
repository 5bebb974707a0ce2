"""Who contributed what to a request header: recorded beside it, never compared with it (D7)."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from harness_core.agent.surroundings import Surroundings
from harness_core.prompt import PromptAssembly, PromptRegistry
from harness_core.prompt.authors import Author, Authors
from harness_core.prompt.spans import source_text, text_spans
from harness_core.scopes import Origin, ScopeNode

__all__ = ["provenance"]

_SEPARATOR = len("\n\n")
"""Between two sections of a system text (RND-01)."""
_DIGEST = 8
"""Bytes: it only has to tell two texts of one plugin apart."""


def provenance(surroundings: Surroundings, scope: ScopeNode, assembly: PromptAssembly) -> dict[str, Any]:
    """Sections in order, each with its place in the system text (``span``: start and end in characters), and tools.

    ``variables`` are those that the system text uses; their own spans stand with the sections. ``changed_by`` is the
    listener behind what is not as its plugin had made it, ``given`` a digest of what that was: whether it was this or the
    listener that changed between two headers can be told from it. ``dropped`` and ``moved`` are what listeners took away or put in
    another order. ``plugins`` are the versions of those that listen to steps, whose messages say no more than a name.
    """
    authors = Authors(assembly)
    sections, used = _sections(assembly, authors)
    found: dict[str, Any] = {
        "sections": sections,
        "tools": [
            {"name": tool.name, **_origin(tool.origin), **_changed(authors, "tools", tool)} for tool in assembly.tools
        ],
        "variables": _variables(surroundings.prompt, scope, authors, used),
        "dropped": [
            {"kind": lane[:-1], "name": record.name, **_origin(record.origin), **_by(authors.of_removal(lane, record))}
            for lane in ("sections", "tools")
            for record in authors.dropped(lane)
        ],
        "moved": {
            lane: _by(authors.of_list(lane)).get("changed_by", {})
            for lane in ("sections", "tools")
            if authors.moved(lane)
        },
        "plugins": _plugins(surroundings, scope),
    }
    return {name: value for name, value in found.items() if value or name in ("sections", "tools")}


def _sections(assembly: PromptAssembly, authors: Authors) -> tuple[list[dict[str, Any]], set[str]]:
    sections: list[dict[str, Any]] = []
    used: set[str] = set()
    start = 0
    for section in assembly.sections:
        spans = text_spans(section, assembly.variables)
        if not spans:
            continue
        end = start + spans[-1].end
        entry = {"name": section.name, **_origin(section.origin), "order": section.order, "span": [start, end]}
        values = [span for span in spans if span.variable is not None]
        if values:
            entry["variables"] = [
                {"name": span.variable, "span": [start + span.start, start + span.end]} for span in values
            ]
            used.update(str(span.variable) for span in values)
        sections.append({**entry, **_changed(authors, "sections", section)})
        start = end + _SEPARATOR
    return sections, used


def _variables(
    registry: PromptRegistry, scope: ScopeNode, authors: Authors, used: Iterable[str]
) -> list[dict[str, Any]]:
    nearest = {entry.name: entry.origin for entry in registry.entries(scope) if entry.kind == "variable"}
    found = []
    for name in sorted(used):
        by = _by(authors.of_variable(name))
        if by:
            by |= _digest(authors.given("variables", name))
        found.append({"name": name, **_origin(nearest.get(name)), **by})
    return found


def _plugins(surroundings: Surroundings, scope: ScopeNode) -> dict[str, dict[str, str]]:
    hooks = surroundings.hooks
    plugins: dict[str, dict[str, str]] = {}
    for waterfall in (hooks.agent_pre_step, hooks.agent_request, hooks.agent_request_error, hooks.tool_call):
        chain = waterfall.chain(scope)
        for listener in chain.listeners if chain is not None else ():
            if listener.distribution is not None and listener.version is not None:
                plugins[listener.plugin] = {"distribution": listener.distribution, "version": listener.version}
    return plugins


def _origin(origin: Origin | None) -> dict[str, str]:
    if origin is None:
        return {}
    return _given(plugin=origin.plugin, distribution=origin.distribution, version=origin.version, scope=origin.scope)


def _changed(authors: Authors, lane: str, record: Any) -> dict[str, Any]:
    by = _by(authors.of_record(lane, record))
    if by:
        given = authors.given(lane, record.name)
        text = getattr(given, "canonical", None) if lane == "tools" else given and source_text(given.text)
        by |= _digest(text)
    return by


def _by(author: Author | None) -> dict[str, Any]:
    if author is None:
        return {}
    by = author.listener
    facts = _given(plugin=by.plugin, distribution=by.distribution, version=by.version, hook=by.hook, file=by.file)
    return {"changed_by": {**facts, "line": author.line}}


def _digest(text: str | None) -> dict[str, str]:
    if text is None:
        return {}
    return {"given": blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()}


def _given(**facts: str | None) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
