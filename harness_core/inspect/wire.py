"""The text of a request as a model reads it, near enough: what stands in it, in which order, and how long it is.

Without ids, sources and other things that are never sent. Layouts of one session share what their messages have in common,
so that a long log costs one pass.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

import attrs

from harness_core.inspect.cause import first_difference
from harness_core.inspect.logged import LoggedRequest
from harness_core.models import AssistantMessage, Message, ToolCallBlock, ToolResultMessage

__all__ = ["BYTES_PER_TOKEN", "LANES", "Layout", "message_text"]

LANES = ("tools", "system", "messages")
"""What a prompt consists of, in the order that most services render it in."""

BYTES_PER_TOKEN = 4
"""A rule of thumb, for where nobody counted."""


def message_text(message: Message) -> str:
    """What a model reads of a message."""
    if isinstance(message, AssistantMessage):
        calls = [f"{block.name}({block.arguments})" for block in message.content if isinstance(block, ToolCallBlock)]
        return "\n".join(["assistant", *([message.text] if message.text else []), *calls])
    if isinstance(message, ToolResultMessage):
        return f"tool {message.name}\n{message.text}"
    return f"user\n{message.text}"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _message_size(message: Message) -> int:
    return message.encoded(_measured)


def _measured(message: Message) -> int:
    return _size(message_text(message)) + 1


@attrs.define(eq=False)
class Layout:
    """One request's text: the sizes of its parts in bytes, and running totals over its messages."""

    request: LoggedRequest
    order: tuple[str, ...]
    tools: int
    system: int
    ends: list[int]
    """Where each message ends, counted from the first one's start; shared by layouts whose messages extend each other."""
    count: int
    message_tokens: float | None = None
    """Tokens for each byte of message, where two requests of the session tell."""
    first: Layout | None = attrs.field(default=None, repr=False)
    """The layout of the session's first request, which has next to no messages; None where this is it."""

    @classmethod
    def of(cls, request: LoggedRequest, order: tuple[str, ...], previous: Layout | None) -> Layout:
        messages = request.messages
        ends: list[int] = []
        if previous is not None and previous.request.generation == request.generation:
            ends = previous.ends
        at = ends[-1] if ends else 0
        for message in messages[len(ends) :]:
            at += _message_size(message)
            ends.append(at)
        header = request.header
        if previous is not None and previous.request.header is header:
            tools, system = previous.tools, previous.system
        else:
            tools, system = sum(_size(tool.canonical) for tool in header.tools), _size(header.system)
        layout = cls(request, order, tools, system, ends, len(messages))
        layout.message_tokens = layout._rate(previous)
        if previous is not None:
            layout.first = previous.first or previous
        return layout

    def _rate(self, previous: Layout | None) -> float | None:
        """What messages cost in tokens for each byte: two requests that differ in messages alone show it."""
        if previous is None:
            return None
        now, before = _input_tokens(self.request), _input_tokens(previous.request)
        grown = self.messages - previous.messages
        if now is None or before is None or self.request.header is not previous.request.header:
            return previous.message_tokens
        return (now - before) / grown if grown > 0 and now > before else previous.message_tokens

    @property
    def messages(self) -> int:
        return self.ends[self.count - 1] if self.count else 0

    @property
    def size(self) -> int:
        """All bytes."""
        return self.tools + self.system + self.messages

    def _lane_size(self, lane: str) -> int:
        return {"tools": self.tools, "system": self.system, "messages": self.messages}[lane]

    def shared_with(self, old: Layout) -> tuple[int, str]:
        """How many bytes both begin with, and the lane in which they part (or in which the older one ends)."""
        shared = 0
        for lane in self.order:
            common, whole = self._common(lane, old)
            shared += common
            if not whole:
                return shared, lane
        return shared, self.order[-1]

    def _common(self, lane: str, old: Layout) -> tuple[int, bool]:
        one, two = old.request, self.request
        if any(getattr(one.header.config, name) != getattr(two.header.config, name) for name in ("provider", "model")):
            return 0, False
        if lane == "system":
            return _common_text(one.header.system, two.header.system)
        if lane == "tools":
            return _common_tools([t.canonical for t in one.header.tools], [t.canonical for t in two.header.tools])
        if one.generation == two.generation:
            return old.messages, len(two.messages) >= len(one.messages)
        return self._common_messages(old)

    def _common_messages(self, old: Layout) -> tuple[int, bool]:
        shared = 0
        for before, now in zip(old.request.messages, self.request.messages, strict=False):
            if before is not now and before != now:
                partly, _ = _common_text(message_text(before), message_text(now))
                return shared + partly, False
            shared += _message_size(now)
        return shared, len(self.request.messages) >= len(old.request.messages)

    # --- tokens -------------------------------------------------------------------------------------------------------

    def estimate(self, size: int, count_tokens: Callable[[str], int] | None) -> int:
        """Tokens of the first ``size`` bytes where nobody counted."""
        if count_tokens is not None:
            return count_tokens(self.text()[:size])
        return -(-size // BYTES_PER_TOKEN)

    def tokens_before(self, offset: int, total: int, count_tokens: Callable[[str], int] | None) -> int:
        """Tokens of the first ``offset`` bytes of a request that has ``total`` tokens."""
        if count_tokens is not None:
            return count_tokens(self._text_before(offset)) + round(self._template_before(offset, count_tokens))
        if not self.size:
            return 0
        rate = total / self.size
        if self.message_tokens is None:
            return int(offset * rate)
        header = self.tools + self.system
        in_messages = min(total, self.messages * self.message_tokens)
        header_rate = (total - in_messages) / header if header else rate
        tokens, left = 0.0, offset
        for lane in self.order:
            part = min(left, self._lane_size(lane))
            tokens += part * (self.message_tokens if lane == "messages" else header_rate)
            left -= part
        return int(tokens)

    def _template_before(self, offset: int, count_tokens: Callable[[str], int]) -> float:
        """Tokens that the service's template spells around things, which stand in no text, up to an offset.

        What the service counted beyond the text itself is the template's. What grew with the messages since the session's
        first request is around messages (and where the answer is to begin); the rest is around the tools, or at the
        beginning where there are none.
        """
        first = self.first or self
        beyond, at_first = self._beyond(count_tokens), first._beyond(count_tokens)
        if beyond is None or at_first is None:
            return 0.0
        more = self.count - first.count
        each = max(0.0, (beyond - at_first) / more) if more > 0 else 0.0
        head = max(0.0, at_first - each * (first.count + 1))
        passed, starts = 0, {}
        for lane in self.order:
            starts[lane] = passed
            passed += self._lane_size(lane)
        share = 1.0 if not self.tools else min(1.0, max(0.0, (offset - starts["tools"]) / self.tools))
        messages = bisect_right(self.ends, offset - starts["messages"], 0, self.count)
        return head * share + each * messages

    def _beyond(self, count_tokens: Callable[[str], int]) -> int | None:
        counted = _input_tokens(self.request)
        return None if counted is None else counted - count_tokens(self.text())

    def text(self) -> str:
        """All of it."""
        header = self.request.header
        lanes = {
            "tools": "".join(tool.canonical for tool in header.tools),
            "system": header.system,
            "messages": "".join(f"{message_text(message)}\n" for message in self.request.messages),
        }
        return "".join(lanes[lane] for lane in self.order)

    def _text_before(self, offset: int) -> str:
        return self.text().encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")


def _input_tokens(request: LoggedRequest) -> int | None:
    return request.usage.input_tokens if request.usage is not None else None


def _common_text(one: str, two: str) -> tuple[int, bool]:
    at = first_difference(one, two)
    return _size(one[:at]), at == len(one) == len(two)


def _common_tools(one: Sequence[str], two: Sequence[str]) -> tuple[int, bool]:
    shared = 0
    for before, now in zip(one, two, strict=False):
        if before != now:
            return shared + _common_text(before, now)[0], False
        shared += _size(now)
    return shared, len(one) == len(two)
