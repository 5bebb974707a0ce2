"""Text that a server cut between the two halves of a surrogate pair, made whole again.

JSON can say half a character (``\\ud83d``), and a server that cuts its output by UTF-16 units sends one half in one event
and the other in the next. A log cannot hold a half.
"""

from __future__ import annotations

__all__ = ["SurrogateJoiner", "whole"]


def whole(text: str) -> str:
    """The text with every lone half of a pair made a replacement character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class SurrogateJoiner:
    """Joins the fragments of one text."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def add(self, text: str) -> str:
        """The text as far as it is whole; a trailing first half waits for the next fragment."""
        if text.isascii() and not self._half:
            return text
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half, text = text[-1], text[:-1]
        return whole(text)

    def rest(self) -> str:
        """What still waits at the end, as a replacement character."""
        rest, self._half = whole(self._half), ""
        return rest
