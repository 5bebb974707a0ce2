"""The settings: what is denied, and where it is written down."""

from __future__ import annotations

import attrs

__all__ = ["Config"]


@attrs.define(kw_only=True)
class Config:
    """Settings of the guard."""

    denied: list[str] = attrs.field(factory=list)
    """Names of tools that no model may call, whoever offers them."""
    audit_file: str | None = None
    """A file to which each call and each turn is appended, as lines of JSON; by default nothing is written."""
