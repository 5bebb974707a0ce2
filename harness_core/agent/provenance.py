"""Who contributed what to a request header: recorded beside it, never compared with it (D7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness_core.models import ToolSchema
from harness_core.prompt import RenderedPart
from harness_core.scopes import Origin

__all__ = ["provenance"]

_SEPARATOR = len("\n\n")
"""Between two sections of a system text (RND-01)."""


def provenance(parts: Sequence[RenderedPart], tools: Iterable[ToolSchema]) -> dict[str, Any]:
    """Sections in order, each with its place in the system text (``span``: start and end in characters), and tools."""
    sections: list[dict[str, Any]] = []
    start = 0
    for part in parts:
        end = start + len(part.text)
        sections.append({"name": part.name, **_origin(part.origin), "order": part.order, "span": [start, end]})
        start = end + _SEPARATOR
    return {
        "sections": sections,
        "tools": [{"name": tool.name, **_origin(tool.origin)} for tool in tools],
    }


def _origin(origin: Origin | None) -> dict[str, str]:
    if origin is None:
        return {}
    facts = {
        "plugin": origin.plugin,
        "distribution": origin.distribution,
        "version": origin.version,
        "scope": origin.scope,
    }
    return {name: value for name, value in facts.items() if value is not None}
