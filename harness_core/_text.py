"""Small pure functions on text that several floors need: sort keys, near misses, quoting. Owns no state."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = ["clean", "counted", "nearest", "printable", "quoted", "quoted_list", "utf16_key"]


def clean(text: str) -> str:
    """The text as UTF-8 can carry it: a lone surrogate becomes a replacement character, all else stays as it is."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def counted(number: int, word: str) -> str:
    """``1 scope``, ``2 scopes``."""
    return f"{number} {word}{'' if number == 1 else 's'}"


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The text as a terminal may have it: names out of files can hold what would move its cursor or change its colours."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", clean(text))


def utf16_key(name: str) -> str:
    """A key under which plain string comparison orders by UTF-16 code unit (TOOL-03).

    Names within the basic multilingual plane are their own key; others get their surrogate pair spelled out.
    """
    if name.isascii() or all(ch <= "\uffff" for ch in name):
        return name
    return "".join(
        ch if ch <= "\uffff" else chr(0xD7C0 + (ord(ch) >> 10)) + chr(0xDC00 + (ord(ch) & 0x3FF)) for ch in name
    )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` most resembles, if any comes near."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def quoted(name: object) -> str:
    """A name as it stands in messages: quoted and escaped, so that odd names stay readable (X-27)."""
    return repr(name)


def quoted_list(names: Iterable[object], none: str = "none") -> str:
    """Names for a message, each quoted, or ``none`` when there are none."""
    return ", ".join(quoted(name) for name in names) or none
