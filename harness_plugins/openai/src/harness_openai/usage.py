"""Token counts as servers report them, as one neutral record (LLM-03)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_core.models import Usage

__all__ = ["usage_of"]


def usage_of(event: Mapping[str, Any]) -> Usage | None:
    """What an event says of tokens; None where it says nothing.

    Three families of names are known: DeepSeek's ``prompt_cache_hit_tokens``, OpenAI's ``prompt_tokens_details``, and
    llama.cpp's ``timings``, in this order of precedence.
    """
    usage, timings = _table(event, "usage"), _table(event, "timings")
    if not usage and not timings:
        return None
    cached = _first(
        _count(usage, "prompt_cache_hit_tokens"),
        _count(_table(usage, "prompt_tokens_details"), "cached_tokens"),
        _count(timings, "cache_n"),
    )
    fresh = _count(timings, "prompt_n")
    found = Usage(
        input_tokens=_first(_count(usage, "prompt_tokens"), None if fresh is None else fresh + (cached or 0)),
        output_tokens=_first(_count(usage, "completion_tokens"), _count(timings, "predicted_n")),
        cached_tokens=cached,
        reasoning_tokens=_count(_table(usage, "completion_tokens_details"), "reasoning_tokens"),
    )
    return found if found != Usage() else None


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def _count(data: Mapping[str, Any], name: str) -> int | None:
    value = data.get(name)
    return value if type(value) is int and value >= 0 else None


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)
