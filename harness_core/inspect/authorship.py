"""Authorship: which plugin each stretch of a prompt comes from, through everything that listeners did to it.

Works on an assembly's trace. A text belongs to whoever registered it; what a listener wrote into it belongs to that
listener, and what it left standing stays its owner's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeAlias

import attrs

from harness_core.hooks import Listener
from harness_core.inspect.difference import Change
from harness_core.inspect.trace import AssemblyTrace, ListenerRun
from harness_core.prompt.spans import source_text, text_spans

__all__ = ["Piece", "Writer", "assigned", "history", "pieces", "registrant"]

_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_WORD = re.compile(r"\w")
_COMPARED_TOKENS = 3_000
"""Beyond this a rewritten stretch is compared line by line, and beyond as many lines it counts as written anew."""


@attrs.frozen(kw_only=True)
class Writer:
    """Who is behind a stretch of text: a registration, or a listener (then ``hook`` is set)."""

    plugin: str | None
    distribution: str | None = None
    version: str | None = None
    scope: str | None = None
    hook: str | None = None
    file: str | None = None
    line: int | None = None

    @classmethod
    def of_listener(cls, listener: Listener) -> Writer:
        return cls(
            plugin=listener.plugin,
            distribution=listener.distribution,
            version=listener.version,
            scope=listener.scope.name,
            hook=listener.hook,
            file=listener.file,
            line=listener.line,
        )

    @classmethod
    def of_entry(cls, entry: Any) -> Writer:
        """A registration in the prompt registry."""
        origin, place = entry.origin, entry.place
        return cls(
            plugin=origin.plugin,
            distribution=origin.distribution,
            version=origin.version,
            scope=entry.layer,
            file=place[0] if place else None,
            line=place[1] if place else None,
        )

    @property
    def name(self) -> str:
        return self.plugin if self.plugin is not None else f"scope {self.scope}"

    def __str__(self) -> str:
        package = f" ({self.distribution} {self.version})" if self.distribution else ""
        what = f" in {self.hook}" if self.hook else ""
        place = f", {self.file}:{self.line}" if self.file else ""
        return f"{self.name}{package}{what}{place}"

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in attrs.asdict(self).items() if value is not None}


UNKNOWN = Writer(plugin=None, scope="unknown")

Owned: TypeAlias = list[tuple[int, Writer]]
"""The ends of a text's stretches, in order, with whose each is."""


@attrs.frozen(kw_only=True)
class Piece:
    """A stretch of the rendered text of a lane, ``start`` to ``end``.

    ``entry`` is the section or context that it is in, ``variable`` the one whose value it is, ``via`` who put the
    reference there. ``chain`` is who registered and changed the entry, in order.
    """

    start: int
    end: int
    text: str
    entry: str
    writer: Writer
    variable: str | None = None
    via: Writer | None = None
    chain: tuple[Writer, ...] = ()


def registrant(trace: AssemblyTrace, kind: str, name: str) -> Any:
    """The registration in force: the nearest layer's entry of that name; None where there is none."""
    return next((entry for entry in reversed(trace.entries) if entry.kind == kind and entry.name == name), None)


def history(trace: AssemblyTrace, lane: str, name: str) -> list[tuple[ListenerRun, Change]]:
    """What listeners did to an element, in the order in which they did it."""
    touches = trace.dispatch.touches() if trace.dispatch is not None else []
    return [(run, change) for run, change in touches if change.item == (lane, name)]


def pieces(trace: AssemblyTrace, lane: str = "sections", separator: str = "\n\n") -> list[Piece]:
    """The rendered lane of an assembly that succeeded, cut where the writer changes; separators belong to nobody."""
    assembly = trace.final
    if assembly is None:
        return []
    touched = _touches_by_name(trace, lane)
    variables = {name: _variable_writer(trace, name) for name in assembly.variables}
    found: list[Piece] = []
    at = 0
    for record in getattr(assembly, lane):
        spans = text_spans(record, assembly.variables)
        if not spans:
            continue
        if found:
            at += len(separator)
        owned, chain = _owned(trace, lane, record, touched.get(record.name, ()))
        source = source_text(record.text)
        for span in spans:
            for start, end, writer in _between(owned, *span.source):
                if span.variable is not None:
                    text, via, writer = str(assembly.variables[span.variable]), writer, variables[span.variable]
                else:
                    text, via = source[start:end], None
                piece = Piece(
                    start=at,
                    end=at + len(text),
                    text=text,
                    entry=record.name,
                    writer=writer,
                    variable=span.variable,
                    via=via,
                    chain=chain,
                )
                found.append(piece)
                at = piece.end
                if span.variable is not None:
                    break  # one value, however many have written at its reference
    return found


def _touches_by_name(trace: AssemblyTrace, lane: str) -> dict[str, list[tuple[ListenerRun, Change]]]:
    found: dict[str, list[tuple[ListenerRun, Change]]] = {}
    for run, change in trace.dispatch.touches() if trace.dispatch is not None else ():
        if change.lane == lane and change.kind in ("added", "rewritten"):
            found.setdefault(change.name, []).append((run, change))
    return found


def _variable_writer(trace: AssemblyTrace, name: str) -> Writer:
    touches = [each for each in history(trace, "variables", name) if each[1].kind != "removed"]
    if touches:
        return Writer.of_listener(touches[-1][0].listener)
    entry = registrant(trace, "variable", name)
    return Writer.of_entry(entry) if entry is not None else UNKNOWN


def _owned(
    trace: AssemblyTrace, lane: str, record: Any, touches: Iterable[tuple[ListenerRun, Change]]
) -> tuple[Owned, tuple[Writer, ...]]:
    entry = registrant(trace, lane.rstrip("s"), record.name)
    given = next((each for each in (trace.given.lanes[lane] if trace.given else ()) if each.name == record.name), None)
    chain: list[Writer] = []
    owned: Owned = []
    text = ""
    if given is not None:
        first = Writer.of_entry(entry) if entry is not None else UNKNOWN
        text = source_text(given.text)
        owned = [(len(text), first)]
        chain.append(first)
    for run, change in touches:
        writer = Writer.of_listener(run.listener)
        after = source_text(change.after.text)
        owned = [(len(after), writer)] if change.kind == "added" else assigned(owned, text, after, writer)
        chain.append(writer)
        text = after
    final = source_text(record.text)
    if final != text:
        owned = assigned(owned, text, final, UNKNOWN)
    return owned, tuple(chain)


def _between(owned: Owned, start: int, end: int) -> list[tuple[int, int, Writer]]:
    """The parts of a stretch, each with its writer."""
    parts: list[tuple[int, int, Writer]] = []
    at = 0
    for until, writer in owned:
        low, high = max(at, start), min(until, end)
        if low < high:
            parts.append((low, high, writer))
        at = until
        if at >= end:
            break
    return parts or [(start, end, UNKNOWN)]


def assigned(owned: Owned, before: str, after: str, writer: Writer) -> Owned:
    """Whose the stretches of a rewritten text are: what stayed keeps its owner, what is new is the writer's."""
    result: Owned = []
    at = 0
    for start, end, low, high in _kept(before, after):
        if low > at:
            _extend(result, low, writer)
        for part_start, part_end, owner in _between(owned, start, end) if owned else [(start, end, writer)]:
            # A lone space or full stop that both happen to have says nothing about who wrote it.
            kept = _WORD.search(before, part_start, part_end) is not None
            _extend(result, low + part_end - start, owner if kept else writer)
        at = high
    if at < len(after):
        _extend(result, len(after), writer)
    return result


def _extend(owned: Owned, end: int, writer: Writer) -> None:
    if owned and owned[-1][1] == writer:
        owned[-1] = (end, writer)
    else:
        owned.append((end, writer))


def _kept(before: str, after: str) -> list[tuple[int, int, int, int]]:
    """The stretches that both texts have, in order: start and end in the one, start and end in the other."""
    limit = min(len(before), len(after))
    head = next((i for i in range(limit) if before[i] != after[i]), limit)
    while head > 0 and (_inside_word(before, head) or _inside_word(after, head)):
        head -= 1  # half a word is nobody's
    limit -= head
    tail = next((i for i in range(limit) if before[-1 - i] != after[-1 - i]), limit)
    while tail > 0 and (_inside_word(before, len(before) - tail) or _inside_word(after, len(after) - tail)):
        tail -= 1
    kept = [(0, head, 0, head)] if head else []
    one, two = before[head : len(before) - tail], after[head : len(after) - tail]
    if one and two:
        kept += [(head + a, head + b, head + c, head + d) for a, b, c, d in _matched(one, two)]
    if tail:
        kept.append((len(before) - tail, len(before), len(after) - tail, len(after)))
    return kept


def _inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and _WORD.match(text[at - 1]) is not None and _WORD.match(text[at]) is not None


def _matched(one: str, two: str) -> list[tuple[int, int, int, int]]:
    old, new = _TOKEN.findall(one), _TOKEN.findall(two)
    if max(len(old), len(new)) > _COMPARED_TOKENS:
        old, new = one.splitlines(keepends=True), two.splitlines(keepends=True)
        if max(len(old), len(new)) > _COMPARED_TOKENS:
            return []
    starts, new_starts = _starts(old), _starts(new)
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return [(starts[a], starts[a + size], new_starts[b], new_starts[b + size]) for a, b, size in blocks if size]


def _starts(tokens: Sequence[str]) -> list[int]:
    starts = [0]
    for token in tokens:
        starts.append(starts[-1] + len(token))
    return starts
