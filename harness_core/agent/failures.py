"""Why a turn failed, as facts for the log: an adapter's own, or an exception with what caused it (STEP-03)."""

from __future__ import annotations

from harness_core._text import clean
from harness_core.agent.errors import RequestFailedError
from harness_core.models import FailureFacts

__all__ = ["failure_of"]

_UNKNOWN = "UNKNOWN"
_LINKS = 8
"""Exceptions of one chain that are told: the cause is among them, and a loop of causes ends."""


def failure_of(error: BaseException) -> FailureFacts:
    """The adapter's facts, or the flattened chain of exceptions under the code UNKNOWN."""
    if isinstance(error, RequestFailedError):
        return error.facts
    return FailureFacts(code=_UNKNOWN, message=clean(" <- ".join(_chain(error))))


def _chain(error: BaseException | None) -> list[str]:
    links: list[str] = []
    while error is not None and len(links) < _LINKS:
        links.append(_spoken(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return links


def _spoken(error: BaseException) -> str:
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    inner = "".join(f" [{_spoken(each)}]" for each in getattr(error, "exceptions", ()))
    return f"{type(error).__name__}: {error}{notes}{inner}"
