"""The runtime context in the conversation: when a snapshot is due, and as what message (CTX-01 to CTX-06).

State is what stands in the log and on the surface, never what was merely proposed: a candidate commits by being
appended, by whoever appends it. Renders nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness_core.models import Source, UserMessage
from harness_core.prompt import RenderedPart
from harness_core.session import Event, IdSource, Session, UserMessageLogged

__all__ = ["CLEAR_MARKER", "CORE_PLUGIN", "RuntimeContext"]

CORE_PLUGIN = "harness"
"""Stands as the plugin in the source of the core's own messages."""

CLEAR_MARKER = (
    "There are no current facts about the environment any more. Given by the harness and not by the user; every earlier "
    "list of this kind is void."
)


def _owned(message: UserMessage) -> bool:
    source = message.source
    return source.kind == "plugin" and source.plugin == CORE_PLUGIN and source.form == "snapshot"


class RuntimeContext:
    """Follows one session's snapshots."""

    def __init__(self, session: Session | None) -> None:
        self._session = session
        self._on_surface: list[int] = []
        self._ever = False
        if session is not None:
            for event in session.events:
                self.follow(event)

    def follow(self, event: Event) -> None:
        """Take note of an appended event."""
        if isinstance(event.data, UserMessageLogged) and _owned(event.data.message):
            self._ever = True
            self._on_surface.append(event.seq)

    @property
    def retained(self) -> UserMessage | None:
        """The newest snapshot that the model still sees (CTX-02)."""
        if self._session is None:
            return None
        surface = self._session.surface
        while self._on_surface and self._on_surface[-1] not in surface:
            self._on_surface.pop()
        if not self._on_surface:
            return None
        message = surface.message(self._on_surface[-1])
        return message if isinstance(message, UserMessage) else None

    def candidate(self, text: str, parts: Sequence[RenderedPart], new_id: IdSource) -> UserMessage | None:
        """The message that is due for this snapshot text, or None. Changes nothing (CTX-03)."""
        wanted = text or (CLEAR_MARKER if self._ever else "")
        if not wanted:
            return None
        retained = self.retained
        if retained is not None and len(retained.content) == 1 and retained.text == wanted:
            return None
        return UserMessage(id=new_id(), content=wanted, source=_source(parts, retained))


def _source(parts: Sequence[RenderedPart], retained: UserMessage | None) -> Source:
    sections = [_section(part) for part in parts]
    data: dict[str, Any] = {"sections": sections} if sections else {}
    changed = _changed(sections, retained)
    if changed:
        data["changed"] = changed
    return Source("plugin", "snapshot", CORE_PLUGIN, data)


def _section(part: RenderedPart) -> dict[str, str]:
    section = {"name": part.name, "text": part.text}
    if part.origin is not None and part.origin.plugin is not None:
        section["plugin"] = part.origin.plugin
    return section


def _changed(sections: list[dict[str, str]], retained: UserMessage | None) -> list[str]:
    """The names of what came, went or reads differently, for people who ask why this message was sent (UC-13)."""
    if retained is None:
        return []
    before = {str(part.get("name")): part.get("text") for part in retained.source.data.get("sections", ())}
    now = {section["name"]: section["text"] for section in sections}
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]
