"""Which sessions a host may offer to refer to, and in which order. Reads no session's conversation."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness_core.session import SessionSummary
from harness_session_reference.mentions import mention

__all__ = ["Candidate", "ranked"]


@attrs.frozen(kw_only=True)
class Candidate:
    """A session to refer to; ``label`` is its title, or its id where it has none that can be read."""

    id: str
    label: str
    cwd: str | None
    last_at_ms: int

    @property
    def mention(self) -> str:
        """The text to insert."""
        return mention(self.id, self.label)


def ranked(
    summaries: Iterable[SessionSummary], target: str | None, cwd: str | None, query: str, limit: int
) -> list[Candidate]:
    """All sessions but the target that match, those of the same directory first, then those without, then the rest.

    Inside each group the newest stands first. ``query`` is looked for in ids, directories and titles.
    """
    wanted = query.casefold()
    found = [
        each
        for each in summaries
        if each.id != target and any(wanted in text.casefold() for text in (each.id, each.cwd, each.title))
    ]
    found.sort(key=lambda each: (_group(each.cwd, cwd), -each.last_at_ms, each.id))
    return [
        Candidate(id=each.id, label=each.title or each.id, cwd=each.cwd or None, last_at_ms=each.last_at_ms)
        for each in found[:limit]
    ]


def _group(cwd: str, own: str | None) -> int:
    if not cwd:
        return 1
    return 0 if own and cwd == own else 2
