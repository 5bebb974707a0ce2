"""Bounded output: whole lines up to a number of bytes, and notices of what was left out."""

from __future__ import annotations

__all__ = ["Page", "shortened"]

NOTICE_BYTES = 200
"""Kept free for the notices, which must never be what is cut off."""


class Page:
    """Lines that fit into ``budget`` bytes of UTF-8."""

    def __init__(self, budget: int) -> None:
        self._lines: list[str] = []
        self._notices: list[str] = []
        self._left = max(budget - NOTICE_BYTES, 1)

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: str) -> bool:
        """Take a line; False when it does not fit any more. A first line that is too long is cut."""
        size = len(line.encode("utf-8", errors="replace")) + 1
        if size > self._left:
            if self._lines:
                return False
            line = line.encode("utf-8", errors="replace")[: self._left].decode("utf-8", errors="ignore")
            self.notice("the first line is cut")
        self._lines.append(line)
        self._left -= size
        return True

    def notice(self, text: str) -> None:
        """Say something about the page below its lines; once."""
        if text not in self._notices:
            self._notices.append(text)

    def text(self, otherwise: str) -> str:
        """The page; ``otherwise`` where it has no lines."""
        return "\n".join([*(self._lines or [otherwise]), *(f"[{each}]" for each in self._notices)])


def shortened(text: str, budget: int) -> str:
    """The beginning and the end of a text that is longer than ``budget`` bytes: commands often fail in their last line."""
    data = text.encode("utf-8", errors="replace")
    if len(data) <= budget:
        return data.decode()
    half = max((budget - NOTICE_BYTES) // 2, 1)
    head = data[:half].decode("utf-8", errors="ignore")
    tail = data[-half:].decode("utf-8", errors="ignore")
    return f"{head}\n[{len(data) - 2 * half} bytes are left out here]\n{tail}"
