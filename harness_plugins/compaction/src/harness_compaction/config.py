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

    A conversation is compacted before a step when it has more than ``at_tokens``, or more than ``at_share`` of the
    model's context window where that is known and ``at_tokens`` is not given; without either only when a request fails
    because it was too long. The newest ``keep_tokens`` stay as they are. The summary is written by a model (the agent's
    own, or ``provider`` and ``model``), or with ``summary = "extract"``, and whenever the model fails, it is a bounded
    extract of the messages themselves. ``summary_tokens`` bounds both.
    """

    at_tokens: int | None = attrs.field(default=None, validator=_positive)
    at_share: float = attrs.field(default=0.8, validator=_share)
    keep_tokens: int = attrs.field(default=8_000, validator=_positive)
    summary: Literal["model", "extract"] = "model"
    summary_tokens: int = attrs.field(default=2_000, validator=_positive)
    provider: str | None = None
    model: str | None = None
