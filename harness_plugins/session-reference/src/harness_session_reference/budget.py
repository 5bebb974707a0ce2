"""Making a snapshot fit: older things first, then the middle of the longest texts, and an exact account of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from harness_session_reference._texts import encoded, omitted_notice
from harness_session_reference.errors import ReferenceProblem, SessionReferenceError
from harness_session_reference.snapshot import Item, Snapshot

__all__ = ["Fitted", "cut", "fitted"]


@attrs.frozen(kw_only=True)
class Fitted:
    """One session as it stands in a message, and what was left out of it."""

    data: dict[str, Any]
    """What the model sees."""
    stats: dict[str, Any]
    """What stands in the message's source."""


@attrs.define
class _Kept:
    """An item that is kept, with its text as it is now."""

    item: Item
    text: str
    kept_bytes: int
    """Bytes of the original that are still in it."""
    size: int
    """Bytes of the item in the message."""

    @classmethod
    def whole(cls, item: Item) -> _Kept:
        return cls(item, item.text, len(item.text.encode()), _size(_object(item.role, item.text)))

    def cut_to(self, target: int) -> None:
        self.text, self.kept_bytes = cut(self.item.text, target)
        self.size = _size(_object(self.item.role, self.text))


def fitted(snapshot: Snapshot, limit: int) -> Fitted:
    """The snapshot in at most ``limit`` bytes.

    Raises:
        SessionReferenceError: not even its fixed fields fit.
    """
    around = _size(_data(snapshot, []))
    kept = _without_older([_Kept.whole(item) for item in snapshot.items], around, limit)
    while (over := _total(kept, around) - limit) > 0:
        longest = max(kept, key=lambda each: len(each.text.encode()), default=None)  # the first of several
        current = len(longest.text.encode()) if longest is not None else 0
        if longest is None or not current:
            raise SessionReferenceError(
                ReferenceProblem.BUDGET_EXCEEDED,
                f"The session {snapshot.session_id!r} does not fit into {limit} bytes even without its texts.",
                remedy="Raise max_reference_bytes.",
                entry=snapshot.session_id,
            )
        longest.cut_to(current - over)
    return Fitted(data=_data(snapshot, kept), stats=_stats(snapshot.items, kept))


def _without_older(whole: Sequence[_Kept], around: int, limit: int) -> list[_Kept]:
    """Drop the oldest that is neither a summary nor the newest, until it fits (SREF-15 to SREF-17)."""
    over = _total(whole, around) - limit
    kept: list[_Kept] = []
    for place, each in enumerate(whole):
        if over > 0 and not each.item.checkpoint and place < len(whole) - 1:
            over -= each.size + 1  # its comma goes as well
        else:
            kept.append(each)
    return kept


def cut(text: str, target: int) -> tuple[str, int]:
    """The beginning and the end of a text in at most ``target`` bytes, with a notice between them that counts too.

    Also returns how many bytes of the text are left. Where not even the notice fits, that is nothing.
    """
    data = text.encode()
    room = target - len(omitted_notice(len(data)).encode())
    if room < 0:
        return "", 0
    end = room // 2
    head = data[: room - end].decode("utf-8", errors="ignore")
    tail = data[len(data) - end :].decode("utf-8", errors="ignore")
    left = len(head.encode()) + len(tail.encode())
    return f"{head}{omitted_notice(len(data) - left)}{tail}", left


def _object(role: str, text: str) -> dict[str, str]:
    return {"role": role, "text": text}


def _data(snapshot: Snapshot, kept: Sequence[_Kept]) -> dict[str, Any]:
    return {
        "session_id": snapshot.session_id,
        "label": snapshot.label,
        "cwd": snapshot.cwd,
        "captured_through_seq": snapshot.captured_through_seq,
        "conversation": [_object(each.item.role, each.text) for each in kept],
    }


def _size(value: object) -> int:
    return len(encoded(value).encode())


def _total(kept: Sequence[_Kept], around: int) -> int:
    """Bytes of the whole object: each item, and the commas between them."""
    return around + sum(each.size for each in kept) + max(len(kept) - 1, 0)


def _stats(items: Sequence[Item], kept: Sequence[_Kept]) -> dict[str, Any]:
    omitted = sum(len(item.text.encode()) for item in items) - sum(each.kept_bytes for each in kept)
    return {
        "compacted": any(item.checkpoint for item in items),
        "original_messages": len(items),
        "retained_messages": len(kept),
        "omitted_messages": len(items) - len(kept),
        "omitted_bytes": omitted,
        "truncated": omitted > 0 or len(kept) < len(items),
    }
