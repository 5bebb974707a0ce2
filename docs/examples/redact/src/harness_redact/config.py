"""The settings: what is looked for, and what becomes of a message in which it is found."""

from __future__ import annotations

import re
from typing import Literal

import attrs

__all__ = ["Config"]


def _patterns(_: object, __: attrs.Attribute[dict[str, str]], value: dict[str, str]) -> None:
    for kind, pattern in value.items():
        try:
            matches_nothing = re.compile(pattern).match("") is not None
        except re.error as error:
            raise ValueError(f"{kind!r} is no regular expression: {error}") from None
        if matches_nothing:
            raise ValueError(f"{kind!r} matches an empty text, and would be found everywhere")


@attrs.define(kw_only=True)
class Config:
    """Settings of the redaction."""

    patterns: dict[str, str] = attrs.field(
        factory=lambda: {"card": r"\b\d(?:[ -]?\d){13,18}\b", "address": r"\b[\w.+-]+@[\w-]+\.[\w.]+\b"},
        validator=_patterns,
    )
    """Regular expressions of what no model may read, by the word that stands in its place."""
    found: Literal["mask", "reject"] = "mask"
    """What becomes of a message: a word in the place of what was found, or no step at all."""
