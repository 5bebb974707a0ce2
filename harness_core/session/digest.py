"""Digests: of tool schemas, headers, growing message lists and whole requests (REQ-02). Pure functions of values.

A request's digest covers the neutral request in full: the session's id, the header and every derived message, each by its
canonical text. The part over messages is a running hash, so that a request costs the same however long its history is.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from harness_core._json import canonical
from harness_core.models.messages import Message, canonical_message
from harness_core.models.request import RequestHeader
from harness_core.models.schema import ToolSchema

__all__ = ["MessageChain", "header_digest", "request_digest", "tool_digest"]

_SIZE = 16
"""128 bits: far beyond chance collisions, and short enough to stand in a log line once for each tool."""


def _tool_digest(tool: ToolSchema) -> str:
    return blake2b(tool.canonical.encode(), digest_size=_SIZE).hexdigest()


def tool_digest(tool: ToolSchema) -> str:
    """The name under which a log stores the schema once; computed once for each record."""
    return tool.encoded(_tool_digest)


def header_digest(header: RequestHeader) -> str:
    """Covers configuration, marks, system text and the tools in order."""
    running = blake2b(digest_size=_SIZE)
    _add(running, canonical(header.config.to_json()))
    _add(running, canonical(sorted(header.supplied)))
    _add(running, header.system)
    for tool in header.tools:
        running.update(tool_digest(tool).encode())
    return running.hexdigest()


class MessageChain:
    """A running digest over messages in order; `add` costs one message, `value` nothing."""

    __slots__ = ("_running",)

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._running = blake2b(digest_size=_SIZE)
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        _add(self._running, canonical_message(message))

    @property
    def value(self) -> str:
        return self._running.hexdigest()


def request_digest(session_id: str, header: str, messages: str) -> str:
    """The digest of a request, from the digests of its header and of its messages."""
    running = blake2b(digest_size=_SIZE)
    _add(running, session_id)
    running.update(header.encode())
    running.update(messages.encode())
    return running.hexdigest()


def _add(running: blake2b, text: str) -> None:
    """Length first: otherwise two texts could be cut at another place and give the same digest."""
    data = text.encode()
    running.update(b"%d:" % len(data))
    running.update(data)
