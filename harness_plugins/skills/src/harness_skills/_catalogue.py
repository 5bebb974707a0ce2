"""The list of skills as a message: its source, from which alone it is told what the model knows, and its text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import attrs

from harness_core import Source, UserMessage
from harness_skills import _texts as texts
from harness_skills._discovery import Skill

__all__ = ["KIND", "Entry", "digest_of", "entries_in", "entries_of", "is_catalogue", "message_of"]

KIND = "skill-catalog"
PLUGIN = "skills"
FORM = "catalog"


@attrs.frozen
class Entry:
    """One line of the list."""

    name: str
    description: str


def entries_of(skills: Sequence[Skill], longest: int) -> tuple[Entry, ...]:
    """The list's lines; descriptions are cut to ``longest`` characters."""
    return tuple(Entry(skill.name, _capped(skill.description, longest)) for skill in skills)


def _capped(description: str, longest: int) -> str:
    return description if len(description) <= longest else f"{description[: longest - 1].rstrip()}…"


def digest_of(entries: Sequence[Entry]) -> str:
    """Tells two lists apart by their entries; their wording does not count."""
    parts = [f"{len(entry.name)}:{entry.name}{len(entry.description)}:{entry.description}" for entry in entries]
    return hashlib.sha1("".join(parts).encode("utf-8"), usedforsecurity=False).hexdigest()


def is_catalogue(source: Source) -> bool:
    """Is it the source of a list of ours?"""
    return source.kind == KIND and isinstance(source.data.get("digest"), str)


def entries_in(source: Source) -> tuple[Entry, ...]:
    """The entries that a list was made of, as far as they are well-formed."""
    entries: list[Entry] = []
    listed = source.data.get("entries")
    for each in listed if isinstance(listed, list) else ():
        match each:
            case {"name": str(name), "description": str(description)}:
                entries.append(Entry(name, description))
    return tuple(entries)


def message_of(message_id: str, entries: Sequence[Entry], tool: str, most: int) -> UserMessage:
    """The message with this list; an empty one revokes the list."""
    shown = entries[:most]
    data: dict[str, Any] = {
        "digest": digest_of(entries),
        "entries": [{"name": entry.name, "description": entry.description} for entry in shown],
    }
    lines = [(entry.name, entry.description) for entry in shown]
    text = texts.catalogue(lines, tool, more=len(entries) - len(shown)) if entries else texts.retired()
    return UserMessage(id=message_id, content=text, source=Source(KIND, FORM, PLUGIN, data))
