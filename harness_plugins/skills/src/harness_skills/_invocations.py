"""Skills that a user asks for by name: finding ``/name`` in what a real person wrote."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from harness_core import Source, UserMessage

__all__ = ["KIND", "asked_for", "message_of"]

KIND = "skill-invocation"
PLUGIN = "skills"
FORM = "instructions"

_ASKED = re.compile(r"(?<!\S)/([A-Za-z0-9][A-Za-z0-9_-]{0,63})(?![\w/\\-])(?!\.\w)")
"""A word of its own: neither a path nor a part of one."""


def asked_for(messages: Iterable[UserMessage]) -> dict[str, str]:
    """The names that users wrote with a slash, in order and once each, with the id of the message."""
    found: dict[str, str] = {}
    for message in messages:
        if message.source.kind == "user":
            for block in message.content:
                for match in _ASKED.finditer(block.text):
                    found.setdefault(match[1], message.id)
    return found


def message_of(message_id: str, name: str, text: str, body: str | None, asked_in: str) -> UserMessage:
    """The message that brings a skill in; ``body`` is None where it could not be read."""
    data = {"skill": name, "message": asked_in}
    if body is not None:
        data["digest"] = hashlib.sha1(body.encode("utf-8"), usedforsecurity=False).hexdigest()
    return UserMessage(id=message_id, content=text, source=Source(KIND, FORM, PLUGIN, data))
