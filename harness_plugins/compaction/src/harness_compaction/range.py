"""How long a conversation is, and which part of it gives way: pure functions of a session's surface."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from harness_core.models import AssistantMessage, Message, ToolResultMessage, UserMessage
from harness_core.session import AssistantMessageLogged, Session, SurfaceReplace

__all__ = ["Range", "estimate", "older_part", "tokens"]

_CHARACTERS = 4
"""Characters of a token, roughly, in English and in code; only used for what no service has counted."""
_OVERHEAD = 8
"""Tokens that a message costs beside its text."""


def tokens(message: Message) -> int:
    """A message's length, estimated."""
    length = len(message.text)
    if isinstance(message, AssistantMessage):
        length += sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return _OVERHEAD + length // _CHARACTERS


def estimate(session: Session, waiting: Sequence[UserMessage] = ()) -> int:
    """The tokens of the next request: what the service counted last, and what came after that; or all of it by length.

    ``waiting`` are the messages that are about to enter.
    """
    total = sum(map(tokens, waiting))
    surface = session.surface
    for seq in reversed(surface.entries):
        data = session.events[seq].data
        if isinstance(data, AssistantMessageLogged) and data.usage is not None and data.usage.input_tokens is not None:
            if _replaced_since(session, seq):
                break
            return total + data.usage.input_tokens + (data.usage.output_tokens or 0)
        total += tokens(surface.message(seq))
    else:
        return total + _stable(session)
    return sum(map(tokens, waiting)) + sum(map(tokens, session.messages)) + _stable(session)


def _replaced_since(session: Session, seq: int) -> bool:
    """A count from before a replacement counts what is no longer there."""
    for event in reversed(session.events):
        if event.seq <= seq:
            return False
        if isinstance(event.surface, SurfaceReplace):
            return True
    return False


def _stable(session: Session) -> int:
    header = session.header
    if header is None:
        return 0
    return (len(header.system) + sum(len(tool.canonical) for tool in header.tools)) // _CHARACTERS


@attrs.frozen
class Range:
    """The entries that give way, by event number, with their messages."""

    entries: tuple[int, ...]
    messages: tuple[Message, ...]


def older_part(session: Session, keep: int) -> Range | None:
    """All but the newest ``keep`` tokens; None where less than two messages would give way.

    The cut never stands before a tool result: a call and its results go or stay together.
    """
    surface = session.surface
    entries = surface.entries
    cut, kept = len(entries), 0
    for place in range(len(entries) - 1, 0, -1):
        message = surface.message(entries[place])
        kept += tokens(message)
        if kept > keep and cut < len(entries):
            break
        if not isinstance(message, ToolResultMessage):
            cut = place
    shadowed = tuple(entries[:cut])
    if cut == len(entries) or len(shadowed) < 2:
        return None
    return Range(shadowed, tuple(surface.message(entry) for entry in shadowed))
