"""Who contributed what to a request header: recorded beside it, never compared with it (D7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness_core.agent.surroundings import Surroundings
from harness_core.prompt import PromptAssembly, PromptRegistry
from harness_core.prompt.authors import Author, Authors
from harness_core.prompt.spans import text_spans
from harness_core.scopes import Origin, ScopeNode

__all__ = ["provenance"]

_SEPARATOR = len("\n\n")
"""Between two sections of a system text (RND-01)."""


def provenance(surroundings: Surroundings, scope: ScopeNode, assembly: PromptAssembly) -> dict[str, Any]:
    """Sections in order, each with its place in the system text (``span``: start and end in characters), and tools.

    ``variables`` are those that the system text uses; their own spans stand with the sections. ``changed_by`` is the
    listener behind what is not as its plugin had made it; ``dropped`` and ``moved`` are what listeners took away or put in
    another order. ``plugins`` are the versions of those that listen to steps, whose messages say no more than a name.
    """
    authors = Authors(assembly)
    sections, used = _sections(assembly, authors)
    found: dict[str, Any] = {
        "sections": sections,
        "tools": [
            {"name": tool.name, **_origin(tool.origin), **_changed(authors.of_record("tools", tool))}
            for tool in assembly.tools
        ],
        "variables": _variables(surroundings.prompt, scope, authors, used),
        "dropped": [
            {"kind": lane[:-1], "name": record.name, **_origin(record.origin), **_changed(authors.of_list(lane))}
            for lane in ("sections", "tools")
            for record in authors.dropped(lane)
        ],
        "moved": {
            lane: _changed(authors.of_list(lane)).get("changed_by", {})
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
        sections.append({**entry, **_changed(authors.of_record("sections", section))})
        start = end + _SEPARATOR
    return sections, used


def _variables(
    registry: PromptRegistry, scope: ScopeNode, authors: Authors, used: Iterable[str]
) -> list[dict[str, Any]]:
    nearest = {entry.name: entry.origin for entry in registry.entries(scope) if entry.kind == "variable"}
    return [
        {"name": name, **_origin(nearest.get(name)), **_changed(authors.of_variable(name))} for name in sorted(used)
    ]


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


def _changed(author: Author | None) -> dict[str, Any]:
    if author is None:
        return {}
    by = author.listener
    return {
        "changed_by": _given(plugin=by.plugin, distribution=by.distribution, version=by.version, hook=by.hook)
        | {"file": by.file, "line": author.line}
    }


def _given(**facts: str | None) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
