"""The growth guard: finds prompts that grow for no good reason, while they do, and names who writes (UC-28).

Looks at headers and at plugins' messages as they are logged; costs nothing where neither is new. Finds, and never
interferes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Literal as OneOf, TypeAlias
from weakref import WeakKeyDictionary

import attrs

from harness_core.hooks import hookimpl
from harness_core.host import PluginContext
from harness_core.inspect.logged import Owner
from harness_core.models import UserMessage
from harness_core.session import Event, HeaderWritten, Session, UserMessageLogged

__all__ = ["GrowthFinding", "GrowthGuard", "GrowthLimits", "GrowthWatch", "growth_findings"]

GrowthKind: TypeAlias = OneOf["repeated section", "repeated text", "repeated message", "steady growth"]


@attrs.frozen(kw_only=True)
class GrowthLimits:
    """When something is worth a finding.

    ``length``: characters from which on a text that stands there again counts; ``times``: how often a message may say the
    same; ``headers``: changes of the system text in a row that all made it longer; ``share``: by how much in all.
    """

    length: int = 80
    times: int = 3
    headers: int = 4
    share: float = 0.2


@attrs.frozen(kw_only=True)
class GrowthFinding:
    """Something grows. ``writers`` are those behind it; ``sizes`` how long it was, over time."""

    kind: GrowthKind
    name: str
    times: int
    writers: tuple[Owner, ...]
    excerpt: str = ""
    sizes: tuple[int, ...] = ()

    def __str__(self) -> str:
        by = ", ".join(str(writer) for writer in self.writers) or "unknown"
        if self.kind == "steady growth":
            path = " -> ".join(str(size) for size in self.sizes)
            return f"The system text grows with each change ({path} characters); written by {by}: {self.name}."
        return f"The same text stands there {self.times} times ({self.kind} {self.name!r}, by {by}): {self.excerpt!r}."

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "times": self.times,
            "writers": [writer.to_json() for writer in self.writers],
            "excerpt": self.excerpt,
            "sizes": list(self.sizes),
        }


_EXCERPT = 80


class GrowthWatch:
    """Follows one session. `see` returns what is new; the same thing is found again only when it has doubled."""

    def __init__(self, limits: GrowthLimits | None = None) -> None:
        self._limits = limits if limits is not None else GrowthLimits()
        self._headers: list[tuple[int, dict[str, tuple[int, tuple[Owner, ...]]]]] = []
        self._messages: Counter[tuple[str | None, str]] = Counter()
        self._told: dict[tuple[str, str], int] = {}

    def see(self, event: Event) -> list[GrowthFinding]:
        """Take an event, and say what it shows."""
        match event.data:
            case HeaderWritten() as written:
                found = [*self._repeated(written), *self._growing(written)]
            case UserMessageLogged(message=message) if message.source.plugin is not None:
                found = self._repeated_message(message)
            case _:
                return []
        return [each for each in found if self._is_new(each)]

    def _is_new(self, finding: GrowthFinding) -> bool:
        key = (finding.kind, finding.name)
        if finding.times < self._told.get(key, 0) * 2:
            return False
        self._told[key] = finding.times
        return True

    def _repeated(self, written: HeaderWritten) -> list[GrowthFinding]:
        found: list[GrowthFinding] = []
        by_text: dict[str, list[Mapping[str, Any]]] = {}
        for section in written.provenance.get("sections", ()):
            start, end = section["span"]
            text = written.header.system[start:end]
            if len(text) >= self._limits.length:
                by_text.setdefault(text, []).append(section)
                found += self._repeated_within(section, text)
        for text, sections in by_text.items():
            if len(sections) > 1:
                names = ", ".join(dict.fromkeys(str(each["name"]) for each in sections))
                found.append(
                    GrowthFinding(
                        kind="repeated section",
                        name=names,
                        times=len(sections),
                        writers=_writers(sections),
                        excerpt=text[:_EXCERPT],
                    )
                )
        return found

    def _repeated_within(self, section: Mapping[str, Any], text: str) -> list[GrowthFinding]:
        """Paragraphs that one section holds more than once; lines, where it has no paragraphs."""
        for cut in ("\n\n", "\n"):
            parts = Counter(part.strip() for part in text.split(cut))
            part, times = max(
                ((part, times) for part, times in parts.items() if len(part) >= self._limits.length),
                key=lambda each: each[1],
                default=("", 0),
            )
            if times > 1:
                return [
                    GrowthFinding(
                        kind="repeated text",
                        name=str(section["name"]),
                        times=times,
                        writers=_writers([section]),
                        excerpt=part[:_EXCERPT],
                    )
                ]
        return []

    def _growing(self, written: HeaderWritten) -> list[GrowthFinding]:
        limits = self._limits
        sections = written.provenance.get("sections", ())
        sizes = {str(each["name"]): (each["span"][1] - each["span"][0], _writers([each])) for each in sections}
        self._headers.append((len(written.header.system), sizes))
        del self._headers[: -limits.headers - 1]
        lengths = [length for length, _ in self._headers]
        grows = all(one < two for one, two in pairwise(lengths))
        if len(lengths) <= limits.headers or not grows or lengths[-1] < lengths[0] * (1 + limits.share):
            return []
        first, last = self._headers[0][1], self._headers[-1][1]
        longer = [name for name in last if last[name][0] > first.get(name, (0, ()))[0]]
        writers = dict.fromkeys(writer for name in longer for writer in last[name][1])
        return [
            GrowthFinding(
                kind="steady growth",
                name=", ".join(longer),
                times=lengths[-1],
                writers=tuple(writers),
                sizes=tuple(lengths),
            )
        ]

    def _repeated_message(self, message: UserMessage) -> list[GrowthFinding]:
        text, plugin = message.text, message.source.plugin
        if len(text) < self._limits.length:
            return []
        self._messages[plugin, text] += 1
        times = self._messages[plugin, text]
        if times < self._limits.times:
            return []
        return [
            GrowthFinding(
                kind="repeated message",
                name=f"{plugin}: {text[:_EXCERPT]}",
                times=times,
                writers=(Owner(plugin=plugin),),
                excerpt=text[:_EXCERPT],
            )
        ]


def _writers(sections: Iterable[Mapping[str, Any]]) -> tuple[Owner, ...]:
    """The plugins behind sections: whoever registered them, or the listener that wrote them."""
    found: dict[Owner, None] = {}
    for section in sections:
        by = section.get("changed_by")
        if by is not None:
            found[Owner.of(by)] = None
        elif section.get("plugin") is not None:
            found[Owner.of(section)] = None
    return tuple(found)


def growth_findings(events: Iterable[Event], limits: GrowthLimits | None = None) -> list[GrowthFinding]:
    """What a whole log shows."""
    watch = GrowthWatch(limits)
    return [finding for event in events for finding in watch.see(event)]


class GrowthGuard:
    """The guard as a plugin: every finding is logged as a warning, kept in ``findings``, and handed to ``report``."""

    name = "growth-guard"

    def __init__(
        self,
        limits: GrowthLimits | None = None,
        report: Callable[[Session, GrowthFinding], None] | None = None,
    ) -> None:
        self.findings: list[GrowthFinding] = []
        self._limits = limits
        self._report = report
        self._watches: WeakKeyDictionary[Session, GrowthWatch] = WeakKeyDictionary()
        self._ctx: PluginContext | None = None

    @hookimpl
    def harness_setup(self, ctx: PluginContext) -> None:
        self._ctx = ctx

    @hookimpl
    def session_event(self, session: Session, event: Event) -> None:
        if not isinstance(event.data, (HeaderWritten, UserMessageLogged)):
            return
        watch = self._watches.get(session)
        if watch is None:
            watch = self._watches[session] = GrowthWatch(self._limits)
        for finding in watch.see(event):
            self.findings.append(finding)
            if self._ctx is not None:
                self._ctx.log.warning("Session %s: %s", session.id, finding)
            if self._report is not None:
                self._report(session, finding)
