"""Causes: why a request does not begin with the request before it, by name.

Compares the headers of two requests through the provenance beside them, and looks for replaced messages. Nothing here
counts tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal as OneOf, TypeAlias

import attrs

from harness_core.inspect.difference import facts, list_changes
from harness_core.inspect.logged import LoggedRequest, Owner
from harness_core.session import SurfaceReplace
from harness_core.session.events import surface_message

__all__ = ["Cause", "causes"]

CauseKind: TypeAlias = OneOf["section", "variable", "tool", "setting", "compaction", "message", "system"]

SHOWN = 60
"""Characters shown of a text around the place where it changed."""


@attrs.frozen(kw_only=True)
class Cause:
    """One reason. ``lane`` is tools, system, messages or settings; ``what``: changed, added, removed, moved.

    ``owner`` is who did it; ``registered_by`` whose the thing is, where that is somebody else. ``within`` is the section in
    which a variable stands. ``upgraded_from`` is the version that the owner had in the request before, where that was
    another one. ``before`` and ``after`` show the place where the texts part.
    """

    lane: str
    kind: CauseKind
    name: str
    what: str
    owner: Owner
    registered_by: Owner | None = None
    within: str | None = None
    upgraded_from: str | None = None
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        within = f" in section {self.within!r}" if self.within else ""
        by = f", registered by {self.registered_by}" if self.registered_by else ""
        was = f", which was {self.upgraded_from} before" if self.upgraded_from else ""
        return f"{self.kind} {self.name!r}{within} {self.what} by {self.owner}{was}{by}"

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "lane": self.lane,
            "kind": self.kind,
            "name": self.name,
            "what": self.what,
            **self.owner.to_json(),
        }
        if self.registered_by is not None:
            data["registered_by"] = self.registered_by.to_json()
        if self.within is not None:
            data["within"] = self.within
        if self.upgraded_from is not None:
            data["upgraded_from"] = self.upgraded_from
        return {**data, "before": self.before, "after": self.after}


def causes(old: LoggedRequest, new: LoggedRequest) -> dict[str, list[Cause]]:
    """Everything that differs, by lane, the first difference of each lane first; lanes without one are absent."""
    found = {
        "settings": _settings(old, new),
        "tools": _tools(old, new) if old.header.tools != new.header.tools else [],
        "system": _system(old, new) if old.header.system != new.header.system else [],
        "messages": _messages(new) if old.generation != new.generation else [],
    }
    return {lane: listed for lane, listed in found.items() if listed}


def _settings(old: LoggedRequest, new: LoggedRequest) -> list[Cause]:
    """Another model has another cache; what else is configured does not stand in the prompt."""
    found = []
    for name in ("provider", "model"):
        before, after = getattr(old.header.config, name), getattr(new.header.config, name)
        if before != after:
            found.append(
                Cause(
                    lane="settings",
                    kind="setting",
                    name=name,
                    what="changed",
                    owner=Owner(),
                    before=str(before),
                    after=str(after),
                )
            )
    return found


# --- tools ------------------------------------------------------------------------------------------------------------


def _tools(old: LoggedRequest, new: LoggedRequest) -> list[Cause]:
    found: list[tuple[int, Cause]] = []
    for change in list_changes("tools", old.header.tools, new.header.tools):
        place = min(each for each in change.places if each is not None)
        before = old.tool(change.before) if change.before is not None else {}
        after = new.tool(change.after) if change.after is not None else {}
        what = "changed" if change.kind == "rewritten" else change.kind
        owner, registered = _blamed(before, after, what, new, "tools")
        texts = ("", "")
        for one, two in change.fields.values():
            texts = parted(one, two)
            break
        cause = Cause(
            lane="tools",
            kind="tool",
            name=change.name,
            what=f"{what} ({', '.join(change.fields)})" if change.fields else what,
            owner=owner,
            registered_by=registered,
            upgraded_from=_version_before(before, owner),
            before=texts[0],
            after=texts[1],
        )
        found.append((place, cause))
    return [cause for _, cause in sorted(found, key=lambda each: each[0])]


def _blamed(
    before: Mapping[str, Any], after: Mapping[str, Any], what: str, new: LoggedRequest, lane: str
) -> tuple[Owner, Owner | None]:
    """Who is behind a difference: the one whose thing it is, or the listener that has its hand in it."""
    own = Owner.of(after or before)
    if what == "removed":
        dropped = (each for each in new.provenance.get("dropped", ()) if each["name"] == before.get("name"))
        listener = next((each["changed_by"] for each in dropped if "changed_by" in each), None)
    elif what == "moved":
        listener = new.provenance.get("moved", {}).get(lane)
    else:
        listener = _listener_behind(before, after)
    if not listener:
        return own, None
    by = Owner.of(listener)
    return by, own if own.plugin is not None and own.plugin != by.plugin else None


def _listener_behind(before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The listener that made the difference; None where it was what the listener was given that changed."""
    old, new = before.get("changed_by"), after.get("changed_by")
    if old and new and before.get("given") != after.get("given"):
        return None
    found: Mapping[str, Any] | None = new or old
    return found


def _version_before(before: Mapping[str, Any], owner: Owner) -> str | None:
    """Another version of the owner's plugin that was behind the thing, or changed it, before."""
    for facts_then in (before, before.get("changed_by", {})):
        then = Owner.of(facts_then)
        if then.plugin is not None and then.plugin == owner.plugin and then.version != owner.version:
            return then.version
    return None


# --- system text ------------------------------------------------------------------------------------------------------


def _system(old: LoggedRequest, new: LoggedRequest) -> list[Cause]:
    before, after = old.provenance.get("sections", ()), new.provenance.get("sections", ())
    if not before and not after:
        texts = parted(old.header.system, new.header.system)
        return [
            Cause(
                lane="system",
                kind="system",
                name="system text",
                what="changed",
                owner=Owner(),
                before=texts[0],
                after=texts[1],
            )
        ]
    found: list[tuple[int, Cause]] = []
    one = [_Rendered(each["name"], old.section_text(each), each) for each in before]
    two = [_Rendered(each["name"], new.section_text(each), each) for each in after]
    for change in list_changes("sections", one, two):
        place = min(each for each in change.places if each is not None)
        found += [(place, cause) for cause in _section_causes(change.kind, change.before, change.after, old, new)]
    return [cause for _, cause in sorted(found, key=lambda each: each[0])]


@attrs.frozen
class _Rendered:
    """A section as a header has it."""

    name: str
    text: str
    provenance: Mapping[str, Any] = attrs.field(eq=False)


def _section_causes(
    kind: str, before: _Rendered | None, after: _Rendered | None, old: LoggedRequest, new: LoggedRequest
) -> list[Cause]:
    one = before.provenance if before is not None else {}
    two = after.provenance if after is not None else {}
    name = str((two or one)["name"])
    if kind == "rewritten" and before is not None and after is not None:
        values = _changed_values(before, after, old, new)
        if values is not None:
            return values
    what = "changed" if kind == "rewritten" else kind
    owner, registered = _blamed(one, two, what, new, "sections")
    texts = parted(before.text if before is not None else "", after.text if after is not None else "")
    return [
        Cause(
            lane="system",
            kind="section",
            name=name,
            what=what,
            owner=owner,
            registered_by=registered,
            upgraded_from=_version_before(one, owner),
            before=texts[0],
            after=texts[1],
        )
    ]


def _changed_values(before: _Rendered, after: _Rendered, old: LoggedRequest, new: LoggedRequest) -> list[Cause] | None:
    """The variables whose values make the whole difference between two texts of a section, if they do."""
    one, first = _without_values(before)
    two, second = _without_values(after)
    if one != two or not first:
        return None
    found: dict[str, Cause] = {}
    for (name, value), (_, now) in zip(first, second, strict=True):
        if value != now and name not in found:
            facts_then = _named(old.provenance.get("variables", ()), name)
            facts_now = _named(new.provenance.get("variables", ()), name)
            owner, registered = _blamed(facts_then, facts_now, "changed", new, "variables")
            found[name] = Cause(
                lane="system",
                kind="variable",
                name=name,
                what="changed",
                owner=owner,
                registered_by=registered,
                within=after.name,
                upgraded_from=_version_before(facts_then, owner),
                before=value[:SHOWN],
                after=now[:SHOWN],
            )
    return list(found.values()) or None


def _without_values(section: _Rendered) -> tuple[list[str], list[tuple[str, str]]]:
    """The text between the values of variables, with their names, and the values."""
    text, start = section.text, section.provenance["span"][0]
    between: list[str] = []
    values: list[tuple[str, str]] = []
    at = 0
    for each in section.provenance.get("variables", ()):
        low, high = each["span"][0] - start, each["span"][1] - start
        between += [text[at:low], str(each["name"])]
        values.append((str(each["name"]), text[low:high]))
        at = high
    return [*between, text[at:]], values


def _named(listed: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((each for each in listed if each["name"] == name), {})


# --- messages ---------------------------------------------------------------------------------------------------------


def _messages(new: LoggedRequest) -> list[Cause]:
    """Messages of the surface that gave way to another one."""
    found = []
    for event in new.since:
        if not isinstance(event.surface, SurfaceReplace):
            continue
        message = surface_message(event.data)
        source = getattr(message, "source", None)
        plugin = source.plugin if source is not None else None
        recall = source is not None and source.form == "recall"
        count = len(event.surface.sources)
        found.append(
            Cause(
                lane="messages",
                kind="compaction" if recall else "message",
                name=f"events {event.surface.start} to {event.surface.end}",
                what=f"replaced ({count} {'message' if count == 1 else 'messages'})",
                owner=new.version_of(plugin) if plugin is not None else Owner(),
                after=facts(message)["text"][:SHOWN] if source is not None else "",
            )
        )
    return found


# --- texts ------------------------------------------------------------------------------------------------------------


def first_difference(one: str, two: str) -> int:
    """Where two texts part, in characters; by halves, so that long equal beginnings cost little."""
    low, high = 0, min(len(one), len(two))
    if one[:high] == two[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def parted(one: str, two: str) -> tuple[str, str]:
    """What stands in both texts from where they part, with a little of what comes before."""
    at = max(0, first_difference(one, two) - SHOWN // 4)
    mark = "…" if at else ""
    return mark + one[at : at + SHOWN], mark + two[at : at + SHOWN]
