"""The settings: what a publisher's style is. Refuses what would make a text without sense."""

from __future__ import annotations

from typing import Literal

import attrs

__all__ = ["Config"]


def _all_say_something(_: object, __: attrs.Attribute[list[str]], value: list[str]) -> None:
    for index, rule in enumerate(value):
        if not rule.strip():
            raise ValueError(f"rule number {index + 1} is empty")


@attrs.define(kw_only=True)
class Config:
    """Settings of the house style."""

    spelling: Literal["British", "American"] = "British"
    """Whose spelling is used."""
    words_per_sentence: int = attrs.field(default=25, validator=attrs.validators.ge(5))
    """How long a sentence may be."""
    rules: list[str] = attrs.field(factory=list, validator=_all_say_something)
    """Further rules, each a sentence; braces in them are text, and refer to nothing."""
