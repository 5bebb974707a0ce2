"""The records of the prompt registry: texts, sections, contexts, tool results, assemblies and their context.

Elements are frozen and shared; an assembly's lists and variables are fresh in every assembly and may be changed in
place (D14). Nothing here evaluates or renders anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from harness_core._text import quoted
from harness_core.errors import AssemblyContentError, HarnessError, InvalidTextError
from harness_core.models import ToolSchema
from harness_core.prompt._lanes import Lane, VariableMap
from harness_core.scopes import Origin, ScopeNode

if TYPE_CHECKING:
    from harness_core.agent import Agent
    from harness_core.session import Session

__all__ = [
    "AssembleContext",
    "ContextEntry",
    "Literal",
    "PromptAssembly",
    "Section",
    "Text",
    "TextLike",
    "TextProvider",
    "ToolProvider",
    "ToolProviderResult",
    "VariableProvider",
    "as_text",
]


def _only_text(_: Any, __: Any, value: str) -> None:
    if not isinstance(value, str):
        raise InvalidTextError(f"Literal takes a str, not {type(value).__name__}.")


@attrs.frozen
class Literal:
    """Text that is data: it is put into the prompt as it is and never scanned for references (D15)."""

    text: str = attrs.field(validator=_only_text)


Text: TypeAlias = str | Literal | tuple[str | Literal, ...]
"""What a section or context holds: a template, data, or a sequence of both."""

TextLike: TypeAlias = str | Literal | Sequence[str | Literal]
"""What is taken for a text; a sequence becomes a tuple."""


def as_text(
    value: object,
    kind: str = "section",
    entry: str = "",
    origin: Origin | None = None,
    error: type[HarnessError] = InvalidTextError,
) -> Text:
    """The value as a `Text`; sequences become tuples.

    Raises:
        InvalidTextError: (or ``error``) the value is no str, Literal or sequence of these; the error names the entry.
    """
    if isinstance(value, (str, Literal)):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        parts = tuple(value)
        wrong = [part for part in parts if not isinstance(part, (str, Literal))]
        if not wrong:
            return parts
        value = wrong[0]
    waits = inspect.isawaitable(value)
    if inspect.iscoroutine(value):
        value.close()
    behind = f" (from {origin})" if origin is not None else ""
    raise error(
        f"The text of {kind} {quoted(entry)}{behind} must be a str, a Literal or a sequence of both, "
        f"not {type(value).__name__}.",
        remedy=ASYNC_REMEDY if waits else "Convert the value to str before you hand it over.",
        kind=kind,
        entry=entry,
        **origin_facts(origin),
    )


ASYNC_REMEDY = (
    "Providers are plain functions: do input and output in the system_prompt_assemble waterfall, or refresh a value "
    "that the provider only reads."
)
"""Where input and output belong (D4)."""


def origin_facts(origin: Origin | None) -> dict[str, Any]:
    """The attributes by which an error names a registrant."""
    if origin is None:
        return {}
    return {"plugin": origin.plugin, "distribution": origin.distribution, "version": origin.version}


@attrs.frozen(kw_only=True)
class AssembleContext:
    """What providers and listeners are told about the assembly they take part in (UC-21).

    Everything may be absent: an assembly without a scope is one of the global layer. ``turn`` and ``step`` count
    from 1. Build it from an agent with ``AssembleContext.of(agent)``, so that scope and agent agree (X-32).
    """

    scope: ScopeNode | None = None
    agent: Agent | None = None
    session: Session | None = None
    cwd: str | None = None
    turn: int | None = None
    step: int | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    """Whatever a host wants its own plugins to see."""

    @classmethod
    def of(cls, agent: Agent, *, turn: int | None = None, step: int | None = None) -> AssembleContext:
        """The context of an assembly for an agent."""
        session = agent.session
        return cls(scope=agent.scope, agent=agent, session=session, cwd=session.cwd, turn=turn, step=step)


TextProvider: TypeAlias = Callable[[AssembleContext], "TextLike"]
VariableProvider: TypeAlias = Callable[[AssembleContext], str | None]


def _name_of(kind: str) -> Callable[[Any, Any, str], None]:
    def validate(_: Any, __: Any, value: str) -> None:
        if not isinstance(value, str):
            raise AssemblyContentError(f"A {kind}'s name must be a str, not {type(value).__name__}.", kind=kind)

    return validate


def _section_text(value: TextLike) -> Text:
    return value if type(value) is str else as_text(value, "section")


def _context_text(value: TextLike) -> Text:
    return value if type(value) is str else as_text(value, "context")


@attrs.frozen
class Section:
    """A stable part of the instructions. Change one with `attrs.evolve` and put the copy in its place."""

    name: str = attrs.field(validator=_name_of("section"))
    text: Text = attrs.field(converter=_section_text)
    order: float = attrs.field(default=0, kw_only=True, eq=False)
    interpolate: bool = attrs.field(default=True, kw_only=True)
    origin: Origin | None = attrs.field(default=None, kw_only=True, eq=False, repr=False)

    def with_text(self, text: TextLike) -> Section:
        """A copy with another text."""
        return attrs.evolve(self, text=text)


@attrs.frozen
class ContextEntry:
    """A volatile fact, part of the runtime-context snapshot. Change one with `attrs.evolve`."""

    name: str = attrs.field(validator=_name_of("context"))
    text: Text = attrs.field(converter=_context_text)
    order: float = attrs.field(default=0, kw_only=True, eq=False)
    interpolate: bool = attrs.field(default=True, kw_only=True)
    origin: Origin | None = attrs.field(default=None, kw_only=True, eq=False, repr=False)

    def with_text(self, text: TextLike) -> ContextEntry:
        """A copy with another text."""
        return attrs.evolve(self, text=text)


def _schemas(value: Iterable[ToolSchema]) -> tuple[ToolSchema, ...]:
    return tuple(value)


def _names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@attrs.frozen
class ToolProviderResult:
    """A provider's schemas, and further names that exist without being visible here (TOOL-08, X-13)."""

    schemas: tuple[ToolSchema, ...] = attrs.field(converter=_schemas)
    known_names: tuple[str, ...] = attrs.field(default=(), converter=_names)


ToolProvider: TypeAlias = Callable[[AssembleContext], Iterable[ToolSchema] | ToolProviderResult]


class SectionLane(Lane):
    """The sections of an assembly."""

    __slots__ = ()
    kind = Section


class ContextLane(Lane):
    """The contexts of an assembly."""

    __slots__ = ()
    kind = ContextEntry


class ToolSchemaLane(Lane):
    """The tools of an assembly."""

    __slots__ = ()
    kind = ToolSchema


def _sections(value: Iterable[Section]) -> list[Section]:
    return SectionLane.of(value)


def _contexts(value: Iterable[ContextEntry]) -> list[ContextEntry]:
    return ContextLane.of(value)


def _tools(value: Iterable[ToolSchema]) -> list[ToolSchema]:
    return ToolSchemaLane.of(value)


def _variables(value: Mapping[str, str | None]) -> dict[str, str | None]:
    return VariableMap.of(value)


@attrs.define(eq=True)
class PromptAssembly:
    """What one model step is told, before it is rendered: the four lanes' material and the variables.

    The lists hold frozen records and may be changed in place: append, remove, reorder, replace. ``variables`` maps a
    name to its text, or to None where it is registered without a value.

    Raises:
        AssemblyContentError: something else than the lane's records is put into a list.
    """

    sections: list[Section] = attrs.field(factory=list, converter=_sections)
    contexts: list[ContextEntry] = attrs.field(factory=list, converter=_contexts)
    tools: list[ToolSchema] = attrs.field(factory=list, converter=_tools)
    variables: dict[str, str | None] = attrs.field(factory=dict, converter=_variables)
    _memo: Any = attrs.field(default=None, init=False, eq=False, repr=False)
    """What render.py may reuse from the last assembly of the same view."""
    _listeners: Any = attrs.field(default=(), init=False, eq=False, repr=False)
    """The listeners that this assembly went through, so that an error can name the one behind a change."""
    _given: Any = attrs.field(default=None, init=False, eq=False, repr=False)
    """What the listeners were given: the records of each list and the variables, as the providers had them."""

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def context(self, name: str) -> ContextEntry | None:
        """The first context of that name."""
        return next((context for context in self.contexts if context.name == name), None)

    def tool(self, name: str) -> ToolSchema | None:
        """The first tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def replace_section(self, section: Section) -> None:
        """Put a changed record in the place of the section of the same name.

        Raises:
            KeyError: there is none.
        """
        _replace(self.sections, section)

    def replace_context(self, context: ContextEntry) -> None:
        """Put a changed record in the place of the context of the same name."""
        _replace(self.contexts, context)

    def replace_tool(self, tool: ToolSchema) -> None:
        """Put a changed record in the place of the tool of the same name."""
        _replace(self.tools, tool)


def _replace(lane: list[Any], record: Any) -> None:
    for index, current in enumerate(lane):
        if current.name == record.name:
            lane[index] = record
            return
    raise KeyError(record.name)
