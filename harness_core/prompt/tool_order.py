"""The order of tools: the configured list, its marker for the rest, and the rule without a list (TOOL-*)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness_core._text import nearest, quoted_list, utf16_key
from harness_core.errors import (
    ReservedToolNameError,
    SettingsError,
    ToolOrderDuplicateError,
    ToolOrderMarkerError,
    UnknownToolsError,
)
from harness_core.models import ToolSchema
from harness_core.prompt.records import origin_facts

__all__ = ["UNLISTED_TOOLS", "check_reserved", "order_tools", "sorted_names", "validated_order"]

UNLISTED_TOOLS = "<unlisted-tools>"
"""Stands in an order list for all tools that it does not name."""


def validated_order(order: Iterable[str] | None) -> tuple[str, ...] | None:
    """The order list as a tuple, or None where none is configured (TOOL-11, X-26).

    Raises:
        SettingsError: the list holds something else than strings.
        ToolOrderDuplicateError: an entry is repeated; checked first.
        ToolOrderMarkerError: the marker is missing.
    """
    if order is None:
        return None
    if isinstance(order, str) or not isinstance(order, Iterable):
        raise SettingsError(f"tool_order must be a list of tool names, not {type(order).__name__}.", entry="tool_order")
    entries = tuple(order)
    seen: set[str] = set()
    for entry in entries:
        if not isinstance(entry, str):
            raise SettingsError(
                f"tool_order holds a {type(entry).__name__}; tool names are strings.", entry="tool_order"
            )
        if entry in seen:
            raise ToolOrderDuplicateError(
                f"tool_order names {entry!r} twice.", remedy="Remove one of the two.", entry="tool_order", names=[entry]
            )
        seen.add(entry)
    if UNLISTED_TOOLS not in seen:
        raise ToolOrderMarkerError(
            f"tool_order has no {UNLISTED_TOOLS!r} entry, so that tools which it does not name would have no place.",
            remedy=f"Add {UNLISTED_TOOLS!r} where they belong.",
            entry="tool_order",
        )
    return entries


def sorted_names(names: Iterable[str]) -> list[str]:
    """Distinct names by UTF-16 code unit, the order of everything that is listed (TOOL-03)."""
    return sorted(set(names), key=utf16_key)


def check_reserved(schemas: Iterable[ToolSchema]) -> None:
    """Refuse a tool that is called like the marker (TOOL-10).

    Raises:
        ReservedToolNameError: names the plugin behind it.
    """
    for schema in schemas:
        if schema.name == UNLISTED_TOOLS:
            raise ReservedToolNameError(
                f"A tool is called {UNLISTED_TOOLS!r}, which is the marker of tool_order; it comes from "
                f"{schema.origin or 'an unknown provider'}.",
                remedy="Give the tool another name.",
                kind="tool",
                entry=UNLISTED_TOOLS,
                **origin_facts(schema.origin),
            )


def order_tools(
    schemas: Sequence[ToolSchema], known: Iterable[str], order: tuple[str, ...] | None, scope: str
) -> list[ToolSchema]:
    """The schemas in the order in which the model gets them.

    ``known`` are the names of all providers, visible or not; equal names keep their order of collection.

    Raises:
        ReservedToolNameError: a tool is called like the marker.
        UnknownToolsError: the list names tools that nobody knows in this scope.
    """
    check_reserved(schemas)
    if order is None:
        return sorted(schemas, key=_by_name)
    known_names = set(known)
    unknown = [name for name in order if name != UNLISTED_TOOLS and name not in known_names]
    if unknown:
        listing = sorted_names(known_names)
        hints = [hint for name in unknown if (hint := nearest(name, listing)) is not None]
        meant = f" Did you mean {quoted_list(hints)}?" if hints else ""
        raise UnknownToolsError(
            f"tool_order names the unknown {'tool' if len(unknown) == 1 else 'tools'} {quoted_list(unknown)} in scope "
            f"{scope!r}; known there: {quoted_list(listing)}.{meant}",
            remedy="Remove the name, or install the plugin that brings the tool.",
            entry="tool_order",
            layer=scope,
            names=unknown,
            known=listing,
        )
    by_name: dict[str, list[ToolSchema]] = {name: [] for name in order}
    rest: list[ToolSchema] = []
    for schema in schemas:
        by_name.get(schema.name, rest).append(schema)
    rest.sort(key=_by_name)
    by_name[UNLISTED_TOOLS] = rest
    return [schema for name in order for schema in by_name[name]]


def _by_name(schema: ToolSchema) -> str:
    return utf16_key(schema.name)
