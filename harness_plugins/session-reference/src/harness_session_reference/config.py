"""The settings of the session-reference plugin, and the limits on them."""

from __future__ import annotations

from typing import Any

import attrs

from harness_session_reference.errors import ReferenceProblem, SessionReferenceError

__all__ = ["MOST_REFERENCES", "Config"]

MOST_REFERENCES = 3
"""More conversations than this in one message leave a model nothing to think about."""


def _whole(least: int, most: int | None = None) -> Any:
    def check(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is not int or value < least or (most is not None and value > most):
            limits = f"from {least} to {most}" if most is not None else f"from {least} up"
            raise SessionReferenceError(
                ReferenceProblem.INVALID_CONFIG, f"{attribute.name} must be a whole number {limits}, not {value!r}."
            )

    return check


@attrs.define(kw_only=True)
class Config:
    """Settings of the session-reference plugin."""

    max_references: int = attrs.field(default=MOST_REFERENCES, validator=_whole(1, MOST_REFERENCES))
    """How many different sessions one message may refer to: 1 to 3."""
    candidate_limit: int = attrs.field(default=50, validator=_whole(1))
    """How many candidates a list has unless it asks for another number."""
    max_reference_bytes: int = attrs.field(default=65_536, validator=_whole(1))
    """The most that one session may take of a message, in bytes of UTF-8."""
    mentions: bool = False
    """Also follow mentions in what users say, in each step that their messages enter with."""
