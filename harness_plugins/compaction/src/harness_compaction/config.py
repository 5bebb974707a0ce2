"""The settings of compaction. Decides nothing."""

from __future__ import annotations

from typing import Literal

import attrs

__all__ = ["Config"]


def _share(_: object, __: object, value: float) -> None:
    if not 0 < value <= 1:
        raise ValueError(f"must lie above 0 and up to 1, not {value!r}")


def _positive(_: object, __: object, value: int | None) -> None:
    if value is not None and value < 1:
        raise ValueError(f"must be 1 or more, not {value!r}")


@attrs.define(kw_only=True)
class Config:
    """When to compact, and how.

    Where neither limit applies, a conversation is compacted only when a request fails because it was too long.
    """

    at_tokens: int | None = attrs.field(default=None, validator=_positive)
    """Compact before a step when the conversation has more tokens than this; given, it alone counts."""
    at_share: float = attrs.field(default=0.8, validator=_share)
    """Compact when it has more than this share of the model's context window, where that is known."""
    keep_tokens: int = attrs.field(default=8_000, validator=_positive)
    """The newest tokens, which stay as they are."""
    summary: Literal["model", "extract"] = "model"
    """Who writes the summary. An extract is the beginning of each message; it also stands in when the model fails."""
    summary_tokens: int = attrs.field(default=2_000, validator=_positive)
    """The summary's length, at most."""
    provider: str | None = None
    """The provider of the model that writes the summary; the agent's own by default."""
    model: str | None = None
    """The model that writes the summary; the agent's own by default."""
