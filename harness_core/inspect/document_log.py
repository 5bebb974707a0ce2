"""What the page shows of a recorded request: the same lanes as for a trace, from the log's provenance alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_core.inspect.compare import snapshot_parts
from harness_core.inspect.logged import LoggedRequest, Owner
from harness_core.inspect.wire import BYTES_PER_TOKEN
from harness_core.models import UserMessage

__all__ = ["request_document"]


class _Owners:
    """The table of writers that everything else in a document points into."""

    def __init__(self) -> None:
        self._places: dict[Owner, int] = {}

    def place(self, owner: Owner) -> int:
        return self._places.setdefault(owner, len(self._places))

    def listed(self) -> list[dict[str, Any]]:
        return [
            {"label": _label(owner), "name": owner.name, "scope": owner.scope or "", **owner.to_json()}
            for owner in self._places
        ]


def _label(owner: Owner) -> str:
    what = f" in {owner.hook}" if owner.hook else ""
    return f"{owner}{what}" + (f", {owner.file}:{owner.line}" if owner.file else "")


def request_document(request: LoggedRequest) -> dict[str, Any]:
    """One request of a log. What listeners did to a section is only known as a whole, so it is theirs as a whole."""
    owners = _Owners()
    return {
        "scope": "",
        "subject": {"session": request.request.session_id, "turn": str(request.dispatch.turn)},
        "total_ns": 0,
        "failure": None,
        "waterfalls": [],
        "enforced": {"why": "", "changes": []},
        "providers": [],
        "lanes": {
            "sections": [_section(request, each, owners) for each in request.provenance.get("sections", ())],
            "contexts": [
                _text(part.name, None, [owners.place(request.version_of(part.owner.plugin))], part.text)
                for part in snapshot_parts(request.messages)
            ],
            "tools": _tools(request, owners),
            "variables": _variables(request, owners),
            "messages": _messages(request),
        },
        "writers": owners.listed(),
    }


def _behind(facts: Mapping[str, Any], owners: _Owners) -> list[int]:
    """Who registered it, and who changed it."""
    chain = [owners.place(Owner.of(facts))]
    if facts.get("changed_by"):
        chain.append(owners.place(Owner.of(facts["changed_by"])))
    return chain


def _text(name: str, order: float | None, chain: list[int], text: str) -> dict[str, Any]:
    return {
        "name": name,
        "standing": True,
        "order": order,
        "registered": chain[:1],
        "chain": chain,
        "pieces": [[text, chain[-1]]] if text else [],
        "history": [],
        "characters": len(text),
        "tokens": -(-len(text) // BYTES_PER_TOKEN),
    }


def _section(request: LoggedRequest, section: Mapping[str, Any], owners: _Owners) -> dict[str, Any]:
    chain = _behind(section, owners)
    text, start = request.section_text(section), section["span"][0]
    found = _text(str(section["name"]), section.get("order"), chain, text)
    pieces: list[list[Any]] = []
    at = 0
    for each in section.get("variables", ()):
        low, high = each["span"][0] - start, each["span"][1] - start
        if low > at:
            pieces.append([text[at:low], chain[-1]])
        variable: Mapping[str, Any] = next(
            (known for known in request.provenance.get("variables", ()) if known["name"] == each["name"]), {}
        )
        pieces.append([text[low:high], _behind(variable, owners)[-1], str(each["name"]), chain[-1]])
        at = high
    if at < len(text):
        pieces.append([text[at:], chain[-1]])
    return {**found, "pieces": pieces}


def _tools(request: LoggedRequest, owners: _Owners) -> list[dict[str, Any]]:
    return [
        {
            "name": tool.name,
            "place": place,
            "registered": _behind(request.tool(tool), owners),
            "description": tool.description,
            "parameters": tool.canonical,
            "history": [],
        }
        for place, tool in enumerate(request.header.tools, start=1)
    ]


def _variables(request: LoggedRequest, owners: _Owners) -> list[dict[str, Any]]:
    values = {
        str(each["name"]): request.header.system[each["span"][0] : each["span"][1]]
        for section in request.provenance.get("sections", ())
        for each in section.get("variables", ())
    }
    return [
        {
            "name": each["name"],
            "value": values.get(str(each["name"])),
            "registered": _behind(each, owners),
            "history": [],
        }
        for each in request.provenance.get("variables", ())
    ]


def _messages(request: LoggedRequest) -> list[dict[str, Any]]:
    found = []
    for place, message in enumerate(request.messages, start=1):
        source = str(message.to_json()["role"])
        changed: list[str] = []
        if isinstance(message, UserMessage):
            source = " ".join(filter(None, (message.source.plugin or message.source.kind, message.source.form)))
            changed = [str(name) for name in message.source.data.get("changed", ())]
        found.append(
            {
                "name": f"message {place}",
                "entering": True,
                "source": source,
                "changed": changed,
                "text": message.text,
                "history": [],
            }
        )
    return found
