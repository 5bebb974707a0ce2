"""Texts as people are shown them: who is speaking, and two versions as one, with what stayed, what went and what came."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Literal as OneOf, TypeAlias

from harness_core.models import Source

__all__ = ["Stretch", "speaker", "text_diff"]

Stretch: TypeAlias = tuple[OneOf["=", "-", "+"], str]

_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_COMPARED_TOKENS = 3_000
"""Beyond this, texts are compared line by line; beyond as many lines, one is shown as gone and the other as new."""
CONTEXT = 60
"""Characters of what stayed that are shown on each side of a difference."""


def speaker(source: Source) -> str:
    """Who is behind a user-role message: a plugin, which may have a kind of its own for what it says, or the user."""
    return source.plugin or ("the user" if source.kind == "user" else source.kind)


def text_diff(before: str, after: str, context: int = CONTEXT) -> list[Stretch]:
    """The stretches in order; an elision is a lone ``…`` inside of what stayed."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if max(len(old), len(new)) > _COMPARED_TOKENS:
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
        if max(len(old), len(new)) > _COMPARED_TOKENS:
            return _shortened([("-", before), ("+", after)], context)
    found: list[Stretch] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            found.append(("=", "".join(old[a:b])))
            continue
        if b > a:
            found.append(("-", "".join(old[a:b])))
        if d > c:
            found.append(("+", "".join(new[c:d])))
    return _shortened(found, context)


def _shortened(stretches: list[Stretch], context: int) -> list[Stretch]:
    last = len(stretches) - 1
    result: list[Stretch] = []
    for place, (sign, text) in enumerate(stretches):
        if sign == "=" and len(text) > 2 * context + 1:
            head = text[:context] if place > 0 else ""
            tail = text[-context:] if place < last else ""
            text = f"{head}…{tail}"
        result.append((sign, text))
    return result
