"""Two requests compared, lane by lane: settings, tools, system text, runtime context, messages.

They may be two steps of one session or steps of two sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from harness_core.inspect.difference import Change, facts, list_changes
from harness_core.inspect.logged import LoggedRequest, Owner
from harness_core.inspect.wire import message_text
from harness_core.models import Message, UserMessage

__all__ = ["Element", "LaneComparison", "compare_requests", "snapshot_parts"]


@attrs.frozen
class Element:
    """Something that stands in a lane of a logged request."""

    name: str
    text: str
    owner: Owner = attrs.field(eq=False, factory=Owner)


@attrs.frozen(kw_only=True)
class LaneComparison:
    """What one lane has otherwise. ``counts`` are how many elements it had and has."""

    lane: str
    counts: tuple[int, int]
    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        return not self.changes

    def to_json(self) -> dict[str, Any]:
        return {
            "lane": self.lane,
            "before": self.counts[0],
            "after": self.counts[1],
            "same": self.same,
            "changes": [{**change.to_json(), "owner": owner_of(change).to_json()} for change in self.changes],
        }


def owner_of(change: Change) -> Owner:
    """Whose the changed element is."""
    element = change.after if change.after is not None else change.before
    return element.owner if isinstance(element, Element) else Owner()


def compare_requests(one: LoggedRequest, two: LoggedRequest) -> list[LaneComparison]:
    """All lanes, in the order in which a model reads them."""
    return [
        _compared("settings", _settings(one), _settings(two)),
        _compared("tools", _tools(one), _tools(two)),
        _compared("system", _sections(one), _sections(two)),
        _compared("context", snapshot_parts(one.messages), snapshot_parts(two.messages)),
        _compared("messages", _messages(one), _messages(two)),
    ]


def _compared(lane: str, one: Sequence[Element], two: Sequence[Element]) -> LaneComparison:
    found = list_changes(lane, one, two)
    return LaneComparison(lane=lane, counts=(len(one), len(two)), changes=tuple(_with_texts(each) for each in found))


_NAME = 60
"""Characters of a message that stand for its name."""


def _with_texts(change: Change) -> Change:
    """Names that fit on a line, and what is different as text."""
    name = " ".join(change.name.split())[:_NAME] if change.lane == "messages" else change.name
    if change.kind == "moved":
        return attrs.evolve(change, name=name)
    before, after = change.before, change.after
    texts = (before.text if before is not None else "", after.text if after is not None else "")
    return attrs.evolve(change, name=name, fields={"text": texts})


def _settings(request: LoggedRequest) -> list[Element]:
    return [Element(name, text) for name, text in facts(request.header.config).items()]


def _tools(request: LoggedRequest) -> list[Element]:
    known = request.provenance.get("tools", ())
    return [
        Element(tool.name, tool.canonical, _behind(known[place] if place < len(known) else {}))
        for place, tool in enumerate(request.header.tools)
    ]


def _sections(request: LoggedRequest) -> list[Element]:
    sections = request.provenance.get("sections", ())
    if not sections:
        return [Element("system text", request.header.system)] if request.header.system else []
    return [Element(str(each["name"]), request.section_text(each), _behind(each)) for each in sections]


def _behind(provenance: Mapping[str, Any]) -> Owner:
    return Owner.of(provenance.get("changed_by", provenance))


def snapshot_parts(messages: Sequence[Message]) -> list[Element]:
    """The contexts that a model sees: the parts of each plugin's newest runtime-context snapshot (UC-13)."""
    newest: dict[str | None, Any] = {}
    for message in messages:
        if isinstance(message, UserMessage) and message.source.form == "snapshot":
            newest[message.source.plugin] = message.source.data.get("sections", ())
    return [
        Element(str(part["name"]), str(part["text"]), Owner(plugin=part.get("plugin", plugin)))
        for plugin, parts in newest.items()
        for part in parts
    ]


def _messages(request: LoggedRequest) -> list[Element]:
    """Messages are known by what they say: ids are others in every session."""
    return [
        Element(message_text(message), message_text(message), _message_owner(message)) for message in request.messages
    ]


def _message_owner(message: Message) -> Owner:
    return Owner(plugin=message.source.plugin) if isinstance(message, UserMessage) else Owner()
