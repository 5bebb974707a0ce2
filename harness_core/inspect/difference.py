"""Changes: what is different between two values that travel through a waterfall, element by element.

A snapshot holds on to the frozen elements of a value, so taking one costs a copy of its lists. Differences are minimal:
what merely shifted because something before it came or went is not a change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal as OneOf, TypeAlias

import attrs

from harness_core._json import canonical
from harness_core.hooks import Enter, PreStep, Reject, RequestFailure, Retry, ToolCall, ToolOutcome
from harness_core.models import CallConfig, ToolSchema, UserMessage
from harness_core.prompt import ContextEntry, PromptAssembly, Section
from harness_core.prompt.spans import source_text

__all__ = ["Change", "ChangeKind", "Snapshot", "changes", "facts", "list_changes", "snapshot"]

ChangeKind: TypeAlias = OneOf["added", "removed", "moved", "rewritten"]
Key: TypeAlias = tuple[str, int]

NO_VALUE = "(no value)"
"""Stands for a variable that is registered and has no value."""


@attrs.frozen(kw_only=True)
class Change:
    """One difference. ``lane`` is the list it is in, ``name`` the element's name there.

    ``fields`` are what a rewritten element has otherwise: before and after. ``places`` are its positions before and after,
    counted from 0.
    """

    lane: str
    kind: ChangeKind
    name: str
    fields: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)
    places: tuple[int | None, int | None] = (None, None)
    before: Any = attrs.field(default=None, repr=False)
    after: Any = attrs.field(default=None, repr=False)

    @property
    def item(self) -> tuple[str, str]:
        """What was changed: list and name."""
        return self.lane, self.name

    def __str__(self) -> str:
        what = f"{self.lane}: {self.name!r} {self.kind}"
        if self.kind == "moved":
            return f"{what} from place {self.places[0]} to {self.places[1]}"
        return f"{what} ({', '.join(self.fields)})" if self.fields else what

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"lane": self.lane, "kind": self.kind, "name": self.name, "places": list(self.places)}
        if self.fields:
            data["fields"] = {name: {"before": old, "after": new} for name, (old, new) in self.fields.items()}
        elif self.kind in ("added", "removed"):
            data["element"] = facts(self.after if self.kind == "added" else self.before)
        return data


@attrs.frozen
class Snapshot:
    """A value as it was at one moment: lists of elements by name, and single facts."""

    kind: str
    lanes: Mapping[str, Sequence[Any]] = attrs.field(factory=dict)
    single: Mapping[str, str] = attrs.field(factory=dict)

    def __str__(self) -> str:
        counted = [f"{len(items)} {lane}" for lane, items in self.lanes.items()]
        said = [f"{name}={value!r:.60}" for name, value in self.single.items()]
        return f"{self.kind} ({', '.join([*counted, *said])})" if counted or said else self.kind


def snapshot(value: object) -> Snapshot:
    """The value as it is now."""
    match value:
        case PromptAssembly():
            lanes: dict[str, Sequence[Any]] = {
                "sections": tuple(value.sections),
                "contexts": tuple(value.contexts),
                "tools": tuple(value.tools),
                "variables": tuple(value.variables.items()),
            }
            return Snapshot("assembly", lanes)
        case PreStep():
            return Snapshot("step", {"messages": value.messages})
        case Enter():
            return Snapshot("enter", {"messages": value.messages})
        case Reject():
            return Snapshot("reject", {}, {"reason": value.reason})
        case None:
            return Snapshot("nothing")
        case _:
            return Snapshot(type(value).__name__, {}, facts(value))


def facts(value: object) -> dict[str, str]:
    """What can be said of an element, as texts by field name."""
    match value:
        case Section() | ContextEntry():
            said = {"text": source_text(value.text)}
            return said if value.interpolate else {**said, "interpolate": "False"}
        case ToolSchema():
            return {"description": value.description, "parameters": canonical(value.parameters)}
        case (str(), str() | None):  # a variable
            return {"value": NO_VALUE if value[1] is None else value[1]}
        case UserMessage():
            source = {name: part for name, part in value.source.to_json().items() if name != "sections"}
            return {"text": value.text, "source": canonical(source)}
        case CallConfig():
            return {name: canonical(part) for name, part in value.to_json().items()}
        case RequestFailure():
            return {name: canonical(part) for name, part in value.facts.to_json().items()}
        case Retry():
            return {"delay": str(value.delay), "reason": value.reason}
        case ToolCall():
            return {"name": value.name, "arguments": canonical(value.arguments)}
        case ToolOutcome():
            said = {"content": value.text}
            return said if value.error is None else {**said, "error": value.error}
        case _:
            return {"value": repr(value)}


def name_of(element: Any) -> str:
    """The name under which people know an element."""
    if isinstance(element, UserMessage):
        return element.id
    return str(element[0] if isinstance(element, tuple) else element.name)


def changes(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """What is different; nothing where the two are not of the same kind of value."""
    found: list[Change] = []
    for lane in before.lanes.keys() & after.lanes.keys():
        found += list_changes(lane, before.lanes[lane], after.lanes[lane])
    if before.kind == after.kind and before.single != after.single:
        found += _single_changes(before, after)
    order = {lane: place for place, lane in enumerate(before.lanes)}
    return tuple(sorted(found, key=lambda change: order.get(change.lane, -1)))


def _single_changes(before: Snapshot, after: Snapshot) -> list[Change]:
    found: list[Change] = []
    for name in {**before.single, **after.single}:
        old, new = before.single.get(name), after.single.get(name)
        if old == new:
            continue
        kind: ChangeKind = "added" if old is None else "removed" if new is None else "rewritten"
        fields = {"value": (old or "", new or "")}
        found.append(Change(lane=before.kind, kind=kind, name=name, fields=fields))
    return found


def list_changes(
    lane: str, before: Sequence[Any], after: Sequence[Any], name: Callable[[Any], str] = name_of
) -> list[Change]:
    """The fewest changes that make the one list the other; a list that is the same costs one pass."""
    if len(before) == len(after) and all(one is two for one, two in zip(before, after, strict=True)):
        return []
    ordered = lane != "variables"
    old, new = _keyed(before, name), _keyed(after, name)
    found = [
        Change(lane=lane, kind="removed", name=key[0], places=(place, None), before=element)
        for key, (place, element) in old.items()
        if key not in new
    ]
    kept = [key for key in new if key in old]
    staying = _staying([old[key][0] for key in kept]) if ordered else set(range(len(kept)))
    for index, key in enumerate(kept):
        (was, one), (now, two) = old[key], new[key]
        if index not in staying:
            found.append(Change(lane=lane, kind="moved", name=key[0], places=(was, now), before=one, after=two))
        if one is not two and one != two:
            fields = _fields(one, two)
            found.append(
                Change(
                    lane=lane, kind="rewritten", name=key[0], fields=fields, places=(was, now), before=one, after=two
                )
            )
    found += [
        Change(lane=lane, kind="added", name=key[0], places=(None, place), after=element)
        for key, (place, element) in new.items()
        if key not in old
    ]
    return found


def _keyed(items: Iterable[Any], name: Callable[[Any], str]) -> dict[Key, tuple[int, Any]]:
    """Place and element by name; a name that comes again has a number with it."""
    keyed: dict[Key, tuple[int, Any]] = {}
    seen: dict[str, int] = {}
    for place, element in enumerate(items):
        own = name(element)
        number = seen[own] = seen.get(own, -1) + 1
        keyed[own, number] = (place, element)
    return keyed


def _fields(one: Any, two: Any) -> dict[str, tuple[str, str]]:
    old, new = facts(one), facts(two)
    return {
        name: (old.get(name, ""), new.get(name, ""))
        for name in {**old, **new}
        if old.get(name, "") != new.get(name, "")
    }


def _staying(places: Sequence[int]) -> set[int]:
    """Which of the elements can be said to stay, so that the fewest have moved: a longest rising subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for index, place in enumerate(places):
        at = bisect_left(tails, place)
        if at == len(tails):
            tails.append(place)
            ends.append(index)
        else:
            tails[at], ends[at] = place, index
        previous.append(ends[at - 1] if at else -1)
    staying: set[int] = set()
    index = ends[-1] if ends else -1
    while index >= 0:
        staying.add(index)
        index = previous[index]
    return staying
