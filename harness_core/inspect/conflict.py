"""Conflicts: listeners that changed the same thing, where what the earlier one did did not last."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import attrs

from harness_core.inspect.difference import Change
from harness_core.inspect.trace import DispatchTrace, ListenerRun, listener_json

__all__ = ["Conflict", "conflicts"]

_COMPARED = 20_000
"""Characters up to which a text's stretches are looked for one by one."""


@attrs.frozen(kw_only=True)
class Conflict:
    """``later`` undid, in ``lane``, what ``earlier`` had done to ``name``."""

    lane: str
    name: str
    earlier: ListenerRun
    earlier_change: Change
    later: ListenerRun
    later_change: Change

    def __str__(self) -> str:
        return (
            f"{self.lane} {self.name!r}: {self.earlier.listener.plugin} ({self.earlier_change.kind}), undone by "
            f"{self.later.listener.plugin} ({self.later_change.kind})"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "lane": self.lane,
            "name": self.name,
            "earlier": {**listener_json(self.earlier.listener), "change": self.earlier_change.to_json()},
            "later": {**listener_json(self.later.listener), "change": self.later_change.to_json()},
        }


def conflicts(dispatch: DispatchTrace) -> list[Conflict]:
    """Every pair, in the order of the later change. Changing again what another one changed is no conflict by itself."""
    found: list[Conflict] = []
    by_item: dict[tuple[str, str], list[tuple[ListenerRun, Change]]] = {}
    for run, change in dispatch.touches():
        earlier = by_item.setdefault(change.item, [])
        for before, first in earlier:
            if before is not run and _undoes(first, change):
                found.append(
                    Conflict(
                        lane=change.lane,
                        name=change.name,
                        earlier=before,
                        earlier_change=first,
                        later=run,
                        later_change=change,
                    )
                )
        earlier.append((run, change))
    return found


def _undoes(first: Change, second: Change) -> bool:
    match first.kind, second.kind:
        case "rewritten" | "added", "removed":
            return True
        case "removed", "added":
            return True
        case "moved", "moved":
            return first.places[1] != second.places[1]
        case "rewritten", "rewritten":
            return any(
                not _survives(first.fields[name], second.fields[name][1])
                for name in first.fields.keys() & second.fields.keys()
            )
        case "added", "rewritten":
            return all(not _survives(("", old), new) for old, new in second.fields.values() if old)
        case _:
            return False


def _survives(change: tuple[str, str], final: str) -> bool:
    """Is what a change put in still there, and what it took out still gone?"""
    old, new = change
    if max(len(old), len(new)) > _COMPARED:
        return new in final
    for tag, a, b, c, d in SequenceMatcher(None, old.split(), new.split(), autojunk=False).get_opcodes():
        put, taken = " ".join(new.split()[c:d]), " ".join(old.split()[a:b])
        text = " ".join(final.split())
        if tag in ("insert", "replace") and put and put not in text:
            return False
        if tag == "delete" and taken and taken in text:
            return False
    return True
