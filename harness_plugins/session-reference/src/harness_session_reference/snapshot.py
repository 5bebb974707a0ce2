"""What is copied of a session: its conversation as a person would tell it, without tools, thoughts and context."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from harness_core import TextBlock, UserMessage
from harness_core.models import AssistantMessage, Message
from harness_core.session import Event, LogContents, SurfaceReplace

__all__ = ["Item", "Snapshot", "snapshot"]


@attrs.frozen(kw_only=True)
class Item:
    """One thing that was said. ``checkpoint``: a summary that took the place of older messages."""

    role: str
    text: str
    checkpoint: bool = False


@attrs.frozen(kw_only=True)
class Snapshot:
    """A session's conversation as of one moment."""

    session_id: str
    label: str
    cwd: str | None
    captured_through_seq: int | None
    """The number of the last event that was looked at; None for an empty log."""
    items: tuple[Item, ...]


def snapshot(contents: LogContents, label: str) -> Snapshot:
    """What is still on the surface of the session (SREF-10)."""
    surface, events = contents.surface, contents.events
    return Snapshot(
        session_id=contents.info.id,
        label=label,
        cwd=contents.info.cwd or None,
        captured_through_seq=len(events) - 1 if events else None,
        items=_items(events, [(seq, surface.message(seq)) for seq in surface.entries]),
    )


def _items(events: Sequence[Event], messages: Sequence[tuple[int, Message]]) -> tuple[Item, ...]:
    items: list[Item] = []
    for seq, message in messages:
        checkpoint = _is_checkpoint(events[seq], message)
        if isinstance(message, AssistantMessage):
            role = "assistant"
        elif isinstance(message, UserMessage) and (checkpoint or message.source.kind == "user"):
            role = "user"
        else:
            continue
        texts = [block.text for block in message.content if isinstance(block, TextBlock)]
        if any(texts):
            items.append(Item(role=role, text="\n".join(texts), checkpoint=checkpoint))
    return tuple(items)


def _is_checkpoint(event: Event, message: Message) -> bool:
    """A recall that replaced messages sums them up, whichever plugin wrote it; other replacements are context."""
    replaced = isinstance(event.surface, SurfaceReplace)
    return replaced and isinstance(message, UserMessage) and message.source.form == "recall"
