"""The template grammar: finding references in a text and putting values in their place (RND-04 to RND-12).

Parsing is pure and remembered for a bounded number of texts; a text's first fault is found left to right, so parsing
stops at it and keeps it beside what came before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

import attrs

from harness_core._text import quoted, quoted_list
from harness_core.errors import MalformedReferenceError, UnknownVariableError, ValuelessVariableError
from harness_core.prompt._lanes import VARIABLE_NAME
from harness_core.scopes import Origin

__all__ = ["Parsed", "Place", "parse", "substitute"]

_GROUP = re.compile(r"\{\{([^{}]*)\}\}")
_REMEMBERED_TEXTS = 8192
"""Bounded, because dynamic texts would otherwise pile up for ever."""
_EXCERPT = 24
"""Characters quoted of a stray opening pair: enough to find it, short enough for a message."""


@attrs.frozen(kw_only=True)
class _Fault:
    form: str
    reference: str
    offset: int
    closing: int | None


@attrs.frozen
class Parsed:
    """A text cut at its references: ``pieces`` alternates literal text and names, and starts and ends with text."""

    pieces: tuple[str, ...]
    offsets: tuple[int, ...]
    """Where each reference stood."""
    fault: _Fault | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.pieces[1::2]


@attrs.frozen(kw_only=True)
class Place:
    """What is being rendered, for errors."""

    kind: str
    entry: str
    origin: Origin | None = None


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def parse(text: str) -> Parsed:
    """Find the references of a text."""
    pieces: list[str] = []
    offsets: list[int] = []
    done = search = 0
    while (start := text.find("{{", search)) >= 0:
        group = _GROUP.match(text, start)
        if group is not None:
            if VARIABLE_NAME.fullmatch(group[1]) is None:
                fault = _Fault(form="bad_name", reference=group[0], offset=start, closing=group.end() - 2)
                return Parsed((*pieces, text[done:start]), tuple(offsets), fault)
            pieces += (text[done:start], group[1])
            offsets.append(start)
            done = search = group.end()
            continue
        closing = text.find("}}", start + 2)
        if closing >= 0:
            fault = _Fault(form="not_a_group", reference=text[start : start + _EXCERPT], offset=start, closing=closing)
            return Parsed((*pieces, text[done:start]), tuple(offsets), fault)
        search = start + 2
    return Parsed((*pieces, text[done:]), tuple(offsets))


def substitute(text: str, variables: Mapping[str, str | None], place: Callable[[], Place]) -> str:
    """The text with its references replaced; values are inserted as they are and never scanned (RND-10).

    ``place`` says what is being rendered; it is asked only for an error.

    Raises:
        MalformedReferenceError, UnknownVariableError, ValuelessVariableError: the first fault from the left.
    """
    parsed = parse(text)
    pieces = parsed.pieces
    if len(pieces) == 1 and parsed.fault is None:
        return text
    filled = list(pieces)
    for index in range(1, len(pieces), 2):
        name = pieces[index]
        value = variables.get(name)
        if value is None:
            _refuse_name(text, parsed.offsets[index // 2], name, variables, place())
        filled[index] = value
    if parsed.fault is not None:
        _refuse_fault(text, parsed.fault, place())
    return "".join(filled)


def _who(place: Place) -> tuple[str, dict[str, Any]]:
    origin = place.origin
    if origin is None:
        return f"{place.kind} {quoted(place.entry)}", {}
    facts = {"plugin": origin.plugin, "distribution": origin.distribution, "version": origin.version}
    return f"{place.kind} {quoted(place.entry)} of {origin}", facts


def _line_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _refuse_name(text: str, offset: int, name: str, variables: Mapping[str, str | None], place: Place) -> NoReturn:
    who, facts = _who(place)
    line, column = _line_column(text, offset)
    common: dict[str, Any] = {
        "reference": name,
        "offset": offset,
        "line": line,
        "column": column,
        "kind": place.kind,
        "entry": place.entry,
        "known": list(variables),
        **facts,
    }
    if name in variables:
        raise ValuelessVariableError(
            f"{{{{{name}}}}} in {who}, line {line}, column {column}: the variable is registered but has no value now.",
            remedy="Register it with missing='empty' or missing='literal' if the text can do without.",
            **common,
        )
    raise UnknownVariableError(
        f"{{{{{name}}}}} in {who}, line {line}, column {column}: no such variable; known: {quoted_list(variables)}.",
        remedy="Register the variable, or wrap text that only quotes braces in Literal(...).",
        **common,
    )


def _refuse_fault(text: str, fault: _Fault, place: Place) -> NoReturn:
    who, facts = _who(place)
    line, column = _line_column(text, fault.offset)
    if fault.form == "bad_name":
        what = f"{fault.reference!r} is no reference: a name is a lower-case letter, then lower-case letters, digits, _"
    else:
        what = f"the opening braces of {fault.reference!r} start no reference, but '}}}}' follows at offset {fault.closing}"
    raise MalformedReferenceError(
        f"In {who}, line {line}, column {column} (offset {fault.offset}): {what}.",
        remedy="Text that is data belongs into Literal(...), alone or among parts, or register it with interpolate=False.",
        form=fault.form,
        reference=fault.reference,
        offset=fault.offset,
        closing=fault.closing,
        line=line,
        column=column,
        kind=place.kind,
        entry=place.entry,
        **facts,
    )
