"""The final places of sections and contexts: numeric order, named constraints, and what the composition overrides.

Orders sort first and stably (REG-02, REG-03); ``before``/``after`` constraints then move an entry no further than they
must (UC-09); overrides leave entries out or give them another order (UC-19).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import attrs

from harness_core._order import OrderCycleError, stable_order
from harness_core._text import quoted
from harness_core.deprecation import HarnessDeprecationWarning
from harness_core.errors import SectionOrderError
from harness_core.prompt._entries import TextEntry

__all__ = ["Override", "Overrides", "effective", "override_of", "placed"]


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

    def __str__(self) -> str:
        said = [f"order {self.order:g}"] if self.order is not None else []
        return ", ".join(
            [*said, *(f"before {each}" for each in self.before), *(f"after {each}" for each in self.after)]
        )

    def order_of(self, entry: TextEntry) -> float:
        return entry.order if self.order is None else self.order

    def applies_to(self, entry: TextEntry) -> bool:
        return self.plugin is None or self.plugin == entry.origin.plugin


Overrides: TypeAlias = Mapping[tuple[str, str], Override]
"""By kind (section, context) and name."""

_NOTHING = Override()


def override_of(entry: TextEntry, overrides: Overrides) -> Override:
    """What is said of an entry; an override that changes nothing where nothing is."""
    for name in (entry.name, *entry.formerly):
        found = overrides.get((entry.kind, name))
        if found is not None and found.applies_to(entry):
            if name != entry.name and name not in entry.noticed:
                entry.noticed.add(name)
                _former(entry, name).tell("the composition", ("<composition>", 0))
            return found
    return _NOTHING


def effective(tables: Sequence[Mapping[str, TextEntry]]) -> dict[str, TextEntry]:
    """The nearest entry of each name; a shadow keeps the slot of the farthest layer that has the name (SCOPE-07).

    ``tables``: the global layer's first. A layer shadows by an earlier name too, where nothing is called that any more.
    """
    merged: dict[str, TextEntry] = {}
    renamed: dict[str, TextEntry] = {}
    for table in tables:
        if renamed:
            for name, entry in table.items():
                merged[_resolved(name, merged, renamed, entry)] = entry
        else:
            merged.update(table)
        for entry in table.values():
            if entry.formerly:
                renamed.update(dict.fromkeys(entry.formerly, entry))
    return merged


def _resolved(name: str, present: Mapping[str, TextEntry], renamed: Mapping[str, TextEntry], user: TextEntry) -> str:
    """The present name of what ``user`` calls by this one (UC-11); warns once where it is an earlier one."""
    meant = renamed.get(name)
    if meant is None or name in present:
        return name
    if name not in user.noticed:
        user.noticed.add(name)
        _former(meant, name).tell(f"{user.kind} {quoted(user.name)} of {user.origin}", user.place)
    return meant.name


def _former(entry: TextEntry, name: str) -> HarnessDeprecationWarning:
    return HarnessDeprecationWarning(
        f"the {entry.kind} name {quoted(name)}",
        instead=quoted(entry.name),
        gone=f"{entry.origin.distribution or entry.origin.plugin or entry.layer} {entry.formerly[name]}",
    )


def _as_said(entry: TextEntry, overrides: Overrides) -> TextEntry | None:
    """The entry as the composition places it; None where that leaves it out."""
    said = override_of(entry, overrides)
    if said.exclude:
        return None
    if said.order is None and not said.before and not said.after:
        return entry
    moved = attrs.evolve(
        entry,
        order=said.order_of(entry),
        before=(*entry.before, *said.before),
        after=(*entry.after, *said.after),
        record=None,
    )
    if moved.provider is None:
        moved.made(moved.fixed)
    return moved


def placed(present: Mapping[str, TextEntry], overrides: Overrides | None = None) -> list[TextEntry]:
    """The entries in the order in which they are evaluated and rendered; ``present`` holds them by their names.

    Raises:
        SectionOrderError: before/after constraints contradict each other; names the cycle.
    """
    if overrides:
        present = {
            name: as_said for name, entry in present.items() if (as_said := _as_said(entry, overrides)) is not None
        }
    entries = sorted(present.values(), key=lambda entry: entry.order)
    if not any(entry.before or entry.after for entry in entries):
        return entries
    renamed = {name: entry for entry in entries for name in entry.formerly}
    predecessors: dict[TextEntry, list[TextEntry]] = {entry: [] for entry in entries}
    for entry in entries:
        for names, forward in ((entry.after, False), (entry.before, True)):
            for name in names:
                other = present.get(_resolved(name, present, renamed, entry) if renamed else name)
                if other is not None:
                    predecessors[other if forward else entry].append(entry if forward else other)
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
