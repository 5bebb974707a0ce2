"""The final places of sections and contexts: numeric order, named constraints, and what the composition overrides.

Orders sort first and stably (REG-02, REG-03); ``before``/``after`` constraints then move an entry no further than they
must (UC-09); overrides leave entries out or give them another order (UC-19).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import attrs

from harness_core._order import OrderCycleError, stable_order
from harness_core.errors import SectionOrderError
from harness_core.prompt._entries import TextEntry

__all__ = ["Override", "Overrides", "override_of", "placed"]


def _names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@attrs.frozen(kw_only=True)
class Override:
    """What a composition says of one contribution: leave it out, or place it elsewhere.

    ``plugin`` limits it to that plugin's contribution; ``before`` and ``after`` are added to the contribution's own.
    """

    plugin: str | None = None
    exclude: bool = False
    order: float | None = None
    before: tuple[str, ...] = attrs.field(default=(), converter=_names)
    after: tuple[str, ...] = attrs.field(default=(), converter=_names)

    def applies_to(self, entry: TextEntry) -> bool:
        return self.plugin is None or self.plugin == entry.origin.plugin


Overrides: TypeAlias = Mapping[tuple[str, str], Override]
"""By kind (section, context) and name."""

_NOTHING = Override()


def override_of(entry: TextEntry, overrides: Overrides) -> Override:
    """What is said of an entry; an override that changes nothing where nothing is."""
    found = overrides.get((entry.kind, entry.name))
    return found if found is not None and found.applies_to(entry) else _NOTHING


def placed(entries: list[TextEntry], overrides: Overrides | None = None) -> list[TextEntry]:
    """The entries in the order in which they are evaluated and rendered.

    Raises:
        SectionOrderError: before/after constraints contradict each other; names the cycle.
    """
    said = {entry: override_of(entry, overrides) if overrides else _NOTHING for entry in entries}
    entries = [entry for entry in entries if not said[entry].exclude]
    orders = {entry: entry.order if (order := said[entry].order) is None else order for entry in entries}
    entries = sorted(entries, key=orders.__getitem__)
    after = {entry: (*entry.after, *said[entry].after) for entry in entries}
    before = {entry: (*entry.before, *said[entry].before) for entry in entries}
    if not any(after.values()) and not any(before.values()):
        return entries
    named = {entry.name: entry for entry in entries}
    predecessors: dict[TextEntry, list[TextEntry]] = {entry: [] for entry in entries}
    for entry in entries:
        predecessors[entry] += [named[name] for name in after[entry] if name in named]
        for name in before[entry]:
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
