"""The final places of sections and contexts: numeric order, named constraints, and what the composition overrides.

Orders sort first and stably (REG-02, REG-03); ``before``/``after`` constraints then move an entry no further than they
must (UC-09); overrides leave entries out or give them another order (UC-19).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from harness_core._order import OrderCycleError, stable_order
from harness_core.errors import SectionOrderError
from harness_core.prompt._entries import TextEntry

__all__ = ["Override", "Overrides", "placed"]


@attrs.frozen(kw_only=True)
class Override:
    """What a composition says of one contribution: leave it out, or give it another order."""

    exclude: bool = False
    order: float | None = None


Overrides: TypeAlias = Mapping[tuple[str, str, str | None], Override]
"""By kind (section, context), name, and plugin (None: whoever registered it)."""


def override_of(entry: TextEntry, overrides: Overrides) -> Override | None:
    """The override that applies to an entry; one that names its plugin comes first."""
    specific = overrides.get((entry.kind, entry.name, entry.origin.plugin))
    return specific if specific is not None else overrides.get((entry.kind, entry.name, None))


def placed(entries: list[TextEntry], overrides: Overrides | None = None) -> list[TextEntry]:
    """The entries in the order in which they are evaluated and rendered.

    Raises:
        SectionOrderError: before/after constraints contradict each other; names the cycle.
    """
    orders = {entry: entry.order for entry in entries}
    if overrides:
        kept = []
        for entry in entries:
            override = override_of(entry, overrides)
            if override is None or not override.exclude:
                kept.append(entry)
                if override is not None and override.order is not None:
                    orders[entry] = override.order
        entries = kept
    entries = sorted(entries, key=orders.__getitem__)
    if not any(entry.before or entry.after for entry in entries):
        return entries
    named = {entry.name: entry for entry in entries}
    predecessors: dict[TextEntry, list[TextEntry]] = {entry: [] for entry in entries}
    for entry in entries:
        predecessors[entry] += [named[name] for name in entry.after if name in named]
        for name in entry.before:
            if name in named:
                predecessors[named[name]].append(entry)
    try:
        return stable_order(entries, predecessors)
    except OrderCycleError as error:
        cycle: list[TextEntry] = list(error.cycle)  # type: ignore[arg-type]
        path = " -> ".join(f"{entry.name!r} ({entry.origin})" for entry in cycle)
        raise SectionOrderError(
            f"The before/after constraints of these {entries[0].kind}s contradict each other: {path}.",
            remedy="Remove one of the constraints; numeric orders alone are often enough.",
            kind=entries[0].kind,
            names=[entry.name for entry in cycle],
        ) from None
