"""Spans: where the stretches of a rendered text come from. Renders like render.py, and remembers what it put where.

For reports and for the provenance beside a request header; a test holds it against render.py. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from harness_core.prompt._template import parse
from harness_core.prompt.records import ContextEntry, Literal, Section, Text

__all__ = ["Span", "source_text", "text_spans"]


@attrs.frozen(kw_only=True)
class Span:
    """A stretch of a rendered text, ``start`` to ``end``.

    ``source`` is the stretch of the record's own text that it stands for, its parts joined; ``variable`` is the name
    where a variable's value was put in.
    """

    start: int
    end: int
    source: tuple[int, int]
    variable: str | None = None


def _parts(text: Text) -> Sequence[str | Literal]:
    return text if isinstance(text, tuple) else (text,)


def source_text(text: Text) -> str:
    """A record's own text, its parts joined, references and all."""
    return "".join(part.text if isinstance(part, Literal) else part for part in _parts(text))


def text_spans(record: Section | ContextEntry, variables: Mapping[str, str | None]) -> tuple[Span, ...]:
    """The spans of a record's rendered text, in order and without gaps; what is empty has none.

    A record that cannot be rendered has the spans before its fault.
    """
    spans: list[Span] = []
    at = source_at = 0
    for part in _parts(record.text):
        own = part.text if isinstance(part, Literal) else part
        if isinstance(part, Literal) or not record.interpolate or "{{" not in own:
            pieces: list[tuple[str, int, int, str | None]] = [(own, 0, len(own), None)]
        else:
            pieces = _pieces(own, variables)
        for text, start, end, variable in pieces:
            if text:
                source = (source_at + start, source_at + end)
                spans.append(Span(start=at, end=at + len(text), source=source, variable=variable))
                at += len(text)
        source_at += len(own)
    return tuple(spans)


def _pieces(template: str, variables: Mapping[str, str | None]) -> list[tuple[str, int, int, str | None]]:
    """Rendered text, and the stretch of the template that it stands for, piece by piece."""
    parsed = parse(template)
    pieces: list[tuple[str, int, int, Any]] = []
    at = 0
    for index, piece in enumerate(parsed.pieces):
        if index % 2 == 0:
            pieces.append((piece, at, at + len(piece), None))
            at += len(piece)
        else:
            end = at + len(piece) + len("{{}}")
            value = variables.get(piece)
            if value is None:
                return pieces
            pieces.append((value, at, end, piece))
            at = end
    return pieces
