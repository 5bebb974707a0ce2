"""Rendering: from an assembly to the texts that a model reads (RND-*). Pure; never returns anything partial.

An assembly that came from a registry carries what the last render of the same view was made of; when the records are
still the same ones, the last text is returned again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, cast

import attrs

from harness_core.errors import RenderError
from harness_core.prompt._lanes import writer_of
from harness_core.prompt._template import Place, parse, substitute
from harness_core.prompt.records import Literal
from harness_core.scopes import Origin

__all__ = [
    "SNAPSHOT_PREAMBLE",
    "RenderedPart",
    "join_context_sections",
    "render_context_sections",
    "render_context_snapshot",
    "render_parts",
    "render_prompt",
]

SNAPSHOT_PREAMBLE = (
    "Current facts about the environment, given by the harness and not by the user. "
    "They replace every earlier list of this kind."
)
"""Stands above each runtime-context snapshot."""

_SEPARATOR = "\n\n"


class _AssemblyShaped(Protocol):
    """What a render needs of an assembly. The members are of any type, since those that convert on assignment have two."""

    @property
    def sections(self) -> Any: ...
    @property
    def contexts(self) -> Any: ...
    @property
    def variables(self) -> Any: ...


@attrs.frozen
class RenderedPart:
    """One non-empty rendered section or context, and who is behind it."""

    name: str
    text: str
    order: float = attrs.field(default=0, kw_only=True, eq=False)
    origin: Origin | None = attrs.field(default=None, kw_only=True, eq=False, repr=False)


class _LaneMemo:
    """The last successful render of one lane: what it was made of, and what came out."""

    __slots__ = ("parts", "records", "rendered", "text", "variables")

    def __init__(self) -> None:
        self.records: list[Any] | None = None
        self.variables: dict[str, str | None] = {}
        self.rendered: list[RenderedPart | None] = []
        """For each record its part, or None where it rendered to nothing."""
        self.parts: tuple[RenderedPart, ...] = ()
        self.text = ""

    def reusable(self, variables: dict[str, str | None]) -> Callable[[Any], tuple[RenderedPart | None] | None]:
        """Finds the part that a record already has, where no variable that it refers to has changed."""
        if self.records is None:
            return lambda _: None
        known = {id(record): (part,) for record, part in zip(self.records, self.rendered, strict=True)}
        if self.variables == variables:
            return lambda record: known.get(id(record))
        old = self.variables
        changed = {
            name for name in variables.keys() | old.keys() if variables.get(name, _ABSENT) != old.get(name, _ABSENT)
        }

        def find(record: Any) -> tuple[RenderedPart | None] | None:
            found = known.get(id(record))
            return found if found is not None and changed.isdisjoint(_references(record)) else None

        return find


_ABSENT = object()


def _references(record: Any) -> Iterable[str]:
    """The variables that a record's text refers to."""
    text = record.text
    if not getattr(record, "interpolate", True):
        return ()
    if type(text) is str:
        return parse(text).names if "{{" in text else ()
    parts = text if isinstance(text, tuple) else (text,)
    return [name for part in parts if isinstance(part, str) for name in parse(part).names]


class RenderMemo:
    """What renders of one view may reuse; owned by the view, never by an assembly's holder."""

    __slots__ = ("contexts", "sections")

    def __init__(self) -> None:
        self.sections = _LaneMemo()
        self.contexts = _LaneMemo()


def render_prompt(assembly: _AssemblyShaped) -> str:
    """The system text: all sections rendered, empty ones left out, joined by one blank line (RND-01).

    Raises:
        MalformedReferenceError, UnknownVariableError, ValuelessVariableError: name section, plugin and place.
    """
    return _render(assembly, "sections").text


def render_parts(assembly: _AssemblyShaped) -> tuple[RenderedPart, ...]:
    """The non-empty rendered sections one by one; joined by a blank line they are the system text."""
    return _render(assembly, "sections").parts


def render_context_sections(assembly: _AssemblyShaped) -> list[RenderedPart]:
    """The non-empty rendered contexts, by name (RND-15).

    Raises:
        MalformedReferenceError, UnknownVariableError, ValuelessVariableError: name context, plugin and place.
    """
    return list(_render(assembly, "contexts").parts)


def render_context_snapshot(assembly: _AssemblyShaped) -> str:
    """The runtime-context snapshot: a fixed preamble and the rendered contexts, or "" when there are none (RND-14)."""
    return _render(assembly, "contexts").text


def join_context_sections(parts: Iterable[RenderedPart]) -> str:
    """A snapshot of parts that are rendered already; empty ones are left out (RND-17)."""
    body = _SEPARATOR.join(part.text for part in parts if part.text)
    return f"{SNAPSHOT_PREAMBLE}{_SEPARATOR}{body}" if body else ""


def _render(assembly: _AssemblyShaped, lane: str) -> _LaneMemo:
    shared: RenderMemo | None = getattr(assembly, "_memo", None)
    memo = cast("_LaneMemo", getattr(shared, lane)) if shared is not None else _LaneMemo()
    records: list[Any] = getattr(assembly, lane)
    variables: dict[str, str | None] = assembly.variables
    if memo.records == records and memo.variables == variables:
        return memo
    kind = "section" if lane == "sections" else "context"
    reusable = memo.reusable(variables)
    rendered: list[RenderedPart | None] = []
    for record in records:
        kept = reusable(record)
        if kept is not None:
            rendered.append(kept[0])
            continue
        try:
            text = _text_of(record, variables, kind)
        except RenderError as error:
            _name_writer(error, assembly, records, record)
            raise
        order, origin = getattr(record, "order", 0), getattr(record, "origin", None)
        rendered.append(RenderedPart(record.name, text, order=order, origin=origin) if text else None)
    parts = [part for part in rendered if part is not None]
    # Only a whole success is kept: a failing render must fail again.
    memo.rendered, memo.parts = rendered, tuple(parts)
    memo.text = _SEPARATOR.join([part.text for part in parts]) if kind == "section" else join_context_sections(parts)
    memo.records, memo.variables = list(records), dict(variables)
    return memo


def _text_of(record: Any, variables: dict[str, str | None], kind: str) -> str:
    def place() -> Place:
        return Place(kind=kind, entry=record.name, origin=getattr(record, "origin", None))

    text = record.text
    verbatim = not getattr(record, "interpolate", True)
    if type(text) is str:
        return text if verbatim or "{{" not in text else substitute(text, variables, place)
    parts: Sequence[str | Literal] = text if isinstance(text, tuple) else (text,)
    return "".join(
        part.text if isinstance(part, Literal) else part if verbatim else substitute(part, variables, place)
        for part in parts
    )


def _name_writer(error: RenderError, assembly: _AssemblyShaped, records: list[Any], record: Any) -> None:
    """Where a listener put the faulty record there, say so: its registrant is not the one to look for."""
    listener = writer_of(records, record, getattr(assembly, "_listeners", ()))
    if listener is not None:
        error.add_note(f"this {error.kind} was put there by {listener.label} in {listener.hook}")
        error.plugin, error.distribution, error.version = listener.plugin, listener.distribution, listener.version
        error.hook, error.file = listener.hook, listener.file
