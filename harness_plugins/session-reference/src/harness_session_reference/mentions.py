"""Mentions of sessions in texts: how they are written, and finding them again. Knows no sessions.

A mention is ``@[label](uri)``, with a backslash before each backslash and closing bracket of the label; a URI alone is one
too. A session's URI has one spelling only, so that two that look alike are the same.
"""

from __future__ import annotations

import base64
import json
import re

import attrs

from harness_session_reference.errors import ReferenceProblem, SessionReferenceError
from harness_session_reference.references import Reference

__all__ = ["SCHEME", "Scan", "mention", "scan", "session_of", "uri"]

SCHEME = "harness-session:"
_OPEN = f"({SCHEME}"

# A scheme that merely ends like ours is another one.
_START = re.compile(rf"@\[|(?<![A-Za-z0-9+.\-]){re.escape(SCHEME)}(?=[A-Za-z0-9_\-])")
_LABEL = re.compile(r"(?:[^\]\\]|\\.)*+\]", re.DOTALL)
_PAYLOAD = re.compile(r"[A-Za-z0-9_\-]+")
_ESCAPED = re.compile(r"\\([\\\]])")


@attrs.frozen
class Scan:
    """A text with its mentions made readable, and what they refer to, in order."""

    text: str
    references: tuple[Reference, ...]


def uri(session_id: str) -> str:
    """The one URI of a session.

    Raises:
        SessionReferenceError: the id holds a lone surrogate.
    """
    try:
        data = json.dumps(session_id, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _invalid(f"The session id {session_id!r} holds a lone surrogate.") from None
    return SCHEME + base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def session_of(reference: str) -> str:
    """The session of a URI.

    Raises:
        SessionReferenceError: it is not the URI of a session, or not in its one spelling (SREF-25 to SREF-27).
    """
    payload = reference.removeprefix(SCHEME)
    try:
        data = base64.urlsafe_b64decode(payload.encode("ascii") + b"=" * (-len(payload) % 4))
        session_id = json.loads(data.decode())
    except (ValueError, RecursionError):
        session_id = None
    if not isinstance(session_id, str) or not reference.startswith(SCHEME) or uri(session_id) != reference:
        raise _invalid(f"{reference!r:.100} is not the URI of a session.")
    return session_id


def mention(session_id: str, label: str | None = None) -> str:
    """A session as it is written into a text.

    Raises:
        SessionReferenceError: the id holds a lone surrogate.
    """
    shown = session_id if label is None else label
    escaped = shown.replace("\\", "\\\\").replace("]", "\\]")
    return f"@[{escaped}]({uri(session_id)})"


def scan(text: str) -> Scan:
    """Find all mentions; each gives way to ``@`` and its label, or the id (SREF-23 to SREF-26).

    Raises:
        SessionReferenceError: a mention's URI is none.
    """
    if SCHEME not in text:
        return Scan(text, ())
    parts: list[str] = []
    references: list[Reference] = []
    done = place = 0
    last_close = text.rfind(")")
    no_label_before = (
        0  # brackets up to here were looked at: their labels all end in the same place, before no URI of ours
    )
    while (start := _START.search(text, place)) is not None:
        place = start.end()
        if start[0] != "@[":
            payload = _PAYLOAD.match(text, place)
            assert payload is not None
            place = payload.end()
            found = Reference(session_of(text[start.start() : place]))
        elif start.start() < no_label_before:
            continue
        else:
            label = _LABEL.match(text, place)
            no_label_before = label.end() if label is not None else len(text)
            if label is None or no_label_before > last_close or not text.startswith(_OPEN, no_label_before):
                continue
            close = text.index(")", no_label_before)
            found = Reference(session_of(text[label.end() + 1 : close]), _ESCAPED.sub(r"\1", label[0][:-1]))
            place = close + 1
        parts += (text[done : start.start()], f"@{found.shown}")
        references.append(found)
        done = place
    return Scan("".join([*parts, text[done:]]), tuple(references))


def _invalid(problem: str) -> SessionReferenceError:
    return SessionReferenceError(
        ReferenceProblem.INVALID_REFERENCE, problem, remedy="Insert mentions from the list of candidates."
    )
