"""Explanations from a log alone: whose a piece of text, a section, a tool or a message of a recorded request is.

As far as the log goes: it names plugins, versions and scopes, and lines of code only for what listeners changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from harness_core.inspect.compare import snapshot_parts
from harness_core.inspect.logged import LoggedRequest, Owner
from harness_core.inspect.texts import speaker
from harness_core.models import Message, UserMessage

__all__ = ["LoggedPiece", "explain_logged", "find_logged"]


@attrs.frozen(kw_only=True)
class LoggedPiece:
    """Something in a recorded request, and whose it is.

    ``where`` says in which lane it stands; ``changed_by`` is the listener that had its hand in it.
    """

    where: str
    name: str
    text: str
    owner: Owner
    changed_by: Owner | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"where": self.where, "name": self.name, "owner": self.owner.to_json()}
        if self.changed_by is not None:
            data["changed_by"] = self.changed_by.to_json()
        return {**data, "note": self.note, "text": self.text}


def _changed_by(facts: Mapping[str, Any]) -> Owner | None:
    return Owner.of(facts["changed_by"]) if facts.get("changed_by") else None


def explain_logged(request: LoggedRequest, name: str) -> list[LoggedPiece]:
    """All that is called so in a request: sections, contexts, variables, tools, messages (by id or plugin)."""
    found = [
        LoggedPiece(
            where="system",
            name=name,
            text=request.section_text(each),
            owner=Owner.of(each),
            changed_by=_changed_by(each),
            note=f"order {each.get('order', 0):g}, characters {each['span'][0]} to {each['span'][1]}",
        )
        for each in request.provenance.get("sections", ())
        if each["name"] == name
    ]
    found += [
        LoggedPiece(where="context", name=name, text=part.text, owner=request.version_of(part.owner.plugin))
        for part in snapshot_parts(request.messages)
        if part.name == name
    ]
    found += _variables(request, name)
    found += [
        LoggedPiece(
            where="tools",
            name=name,
            text=tool.canonical,
            owner=Owner.of(request.tool(tool)),
            changed_by=_changed_by(request.tool(tool)),
            note=f"tool {place} of {len(request.header.tools)}",
        )
        for place, tool in enumerate(request.header.tools, start=1)
        if tool.name == name
    ]
    found += [
        LoggedPiece(
            where=f"the dropped {each['kind']}s",
            name=name,
            text="",
            owner=Owner.of(each),
            changed_by=_changed_by(each),
            note="a listener took it out",
        )
        for each in request.provenance.get("dropped", ())
        if each["name"] == name
    ]
    return [*found, *_messages(request, name)]


def _variables(request: LoggedRequest, name: str) -> Iterable[LoggedPiece]:
    facts = next((each for each in request.provenance.get("variables", ()) if each["name"] == name), None)
    if facts is None:
        return []
    values = [
        (str(section["name"]), request.header.system[each["span"][0] : each["span"][1]])
        for section in request.provenance.get("sections", ())
        for each in section.get("variables", ())
        if each["name"] == name
    ]
    users = ", ".join(dict.fromkeys(section for section, _ in values))
    return [
        LoggedPiece(
            where="system",
            name=name,
            text=values[0][1] if values else "",
            owner=Owner.of(facts),
            changed_by=_changed_by(facts),
            note=f"a variable, used in {users}",
        )
    ]


def _messages(request: LoggedRequest, name: str) -> list[LoggedPiece]:
    return [
        _message_piece(request, message, place)
        for place, message in enumerate(request.messages, start=1)
        if isinstance(message, UserMessage) and name in (message.id, speaker(message.source))
    ]


def _message_piece(request: LoggedRequest, message: Message, place: int) -> LoggedPiece:
    role = str(message.to_json()["role"])
    note = f"message {place} of {len(request.messages)}"
    owner = Owner(plugin="the model" if role == "assistant" else None)
    name = f"{role} {place}"
    if isinstance(message, UserMessage):
        name, source = message.id, message.source
        owner = request.version_of(speaker(source))
        note += f", {source.kind}" + (f", {source.form}" if source.form else "")
        changed = source.data.get("changed", ())
        if changed:
            note += f"; changed since the one before: {', '.join(map(str, changed))}"
    elif role == "tool":
        tool = next((each for each in request.header.tools if each.name == message.name), None)  # type: ignore[union-attr]
        owner = Owner.of(request.tool(tool)) if tool is not None else Owner()
        note += f", result of {message.name}"  # type: ignore[union-attr]
    return LoggedPiece(where="messages", name=name, text=message.text, owner=owner, note=note)


def find_logged(request: LoggedRequest, fragment: str) -> list[LoggedPiece]:
    """Every element of a request that holds the text, with whose it is."""
    if not fragment:
        return []
    found: list[LoggedPiece] = []
    system = request.header.system
    at = system.find(fragment)
    while at >= 0:
        found += _spans(request, at, at + len(fragment))
        at = system.find(fragment, at + 1)
    for place, tool in enumerate(request.header.tools, start=1):
        if fragment in tool.description or fragment in tool.canonical:
            facts = request.tool(tool)
            found.append(
                LoggedPiece(
                    where="tools",
                    name=tool.name,
                    text=tool.description,
                    owner=Owner.of(facts),
                    changed_by=_changed_by(facts),
                    note=f"tool {place} of {len(request.header.tools)}",
                )
            )
    for place, message in enumerate(request.messages, start=1):
        if fragment in message.text:
            found += _in_message(request, message, place, fragment)
    return found


def _in_message(request: LoggedRequest, message: Message, place: int, fragment: str) -> Sequence[LoggedPiece]:
    parts = [part for part in snapshot_parts([message]) if fragment in part.text]
    if not parts:
        return [_message_piece(request, message, place)]
    return [
        LoggedPiece(
            where="context",
            name=part.name,
            text=part.text,
            owner=request.version_of(part.owner.plugin),
            note=f"in the snapshot that is message {place} of {len(request.messages)}",
        )
        for part in parts
    ]


def _spans(request: LoggedRequest, start: int, end: int) -> list[LoggedPiece]:
    """The sections, and the variables in them, that a stretch of the system text lies in."""
    found: list[LoggedPiece] = []
    system = request.header.system
    for section in request.provenance.get("sections", ()):
        low, high = section["span"]
        if low >= end or high <= start:
            continue
        found.append(
            LoggedPiece(
                where="system",
                name=str(section["name"]),
                text=system[max(low, start) : min(high, end)],
                owner=Owner.of(section),
                changed_by=_changed_by(section),
                note=f"section, order {section.get('order', 0):g}",
            )
        )
        for each in section.get("variables", ()):
            if each["span"][0] < end and each["span"][1] > start:
                facts = next(v for v in request.provenance.get("variables", ()) if v["name"] == each["name"])
                found.append(
                    LoggedPiece(
                        where="system",
                        name=str(each["name"]),
                        text=system[each["span"][0] : each["span"][1]],
                        owner=Owner.of(facts),
                        changed_by=_changed_by(facts),
                        note=f"variable in section {section['name']}",
                    )
                )
    return found
