"""Views: the registry as one scope sees it, compiled until something relevant changes.

A view owns what may be reused from step to step: the sorted entries, the records of the last texts, the last ordered
tools and the render memo. It is valid as long as the layers of its chain are; a registration elsewhere costs one
comparison. tests/prompt/plain_assembly.py evaluates the same without any of this, and is held against it.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from harness_core.errors import InvalidTextError, ProviderContractError
from harness_core.models import ToolSchema
from harness_core.prompt._entries import TextEntry, ToolEntry, VariableEntry, note_provider
from harness_core.prompt._lanes import Lane
from harness_core.prompt._layers import Layer, VariableTable
from harness_core.prompt._placement import Overrides, effective, placed
from harness_core.prompt.records import (
    AssembleContext,
    ContextEntry,
    ContextLane,
    Section,
    SectionLane,
    Text,
    ToolProviderResult,
    ToolSchemaLane,
    as_text,
    origin_facts,
)
from harness_core.prompt.render import RenderMemo
from harness_core.prompt.tool_order import order_tools
from harness_core.scopes import ScopeNode

__all__ = ["TextLane", "ToolLane", "View"]


class TextLane:
    """The sections, or the contexts, of one view in their final order, and the texts of the last assembly."""

    __slots__ = ("_positions", "_providers", "_texts", "entries", "lane", "records", "visible")

    def __init__(self, lane: type[Lane], entries: list[TextEntry]) -> None:
        self.lane = lane
        self.entries = tuple(entries)
        self.visible: frozenset[str] = frozenset()
        """The tools that can be seen in the assembly under way; entries bound to tools ask for it."""
        self.records: list[Section | ContextEntry | None] = [entry.record for entry in entries]
        """The records of the last evaluation; the list is replaced, never changed."""
        self._positions = tuple(i for i, entry in enumerate(entries) if entry.provider is not None or entry.tools)
        self._providers = tuple(self._provider(entries[i]) for i in self._positions)
        self._texts: list[Text] | None = None

    def _provider(self, entry: TextEntry) -> Callable[[AssembleContext], Any]:
        """The entry's provider, silent while none of the tools that it is bound to can be seen."""
        provider = entry.provider
        if not entry.tools:
            assert provider is not None
            return provider
        if provider is None:
            fixed = entry.fixed
            return lambda _: "" if entry.tools.isdisjoint(self.visible) else fixed
        dynamic = provider
        return lambda context: "" if entry.tools.isdisjoint(self.visible) else dynamic(context)

    def evaluate(self, context: AssembleContext, visible: frozenset[str]) -> Lane:
        """Call every provider once, in order (ASM-10), and return a fresh lane of records.

        Raises:
            ProviderContractError: a provider returned no text; any exception of a provider, with a note.
        """
        if self._providers:
            self.visible = visible
            calls = iter(self._providers)
            try:
                texts = [text if type(text := provider(context)) is str else _settled(text) for provider in calls]
            except Exception as error:
                entry = self.entries[self._positions[len(self._providers) - operator.length_hint(calls) - 1]]
                if isinstance(error, _NoTextError):
                    entry.settled(error.value)  # raises, and names the entry
                note_provider(error, entry.kind, entry.name, entry.origin, entry.layer)
                raise
            if texts != self._texts:
                self._take(texts)
        return self.lane(self.records)

    def _take(self, texts: list[Text]) -> None:
        records = self.records.copy()
        for position, text in zip(self._positions, texts, strict=True):
            records[position] = self.entries[position].made(text)
        self.records, self._texts = records, texts


class _NoTextError(Exception):
    """A provider returned something that is no text; it must not be called a provider's own exception."""

    def __init__(self, value: object) -> None:
        super().__init__(value)
        self.value = value


def _settled(value: object) -> Text:
    """What a provider returned as a text that the provider cannot change later."""
    try:
        return as_text(value)
    except InvalidTextError:
        raise _NoTextError(value) from None


_IMMUTABLE = (tuple, ToolProviderResult)


class ToolLane:
    """The tool providers of one view and the ordered result of the last assembly."""

    __slots__ = ("_given", "_known", "_providers", "_schemas", "entries", "names", "records")

    def __init__(self, entries: list[ToolEntry]) -> None:
        self.entries = tuple(entries)
        self._providers = tuple(entry.provider for entry in entries)
        self._given: list[Any] | None = None
        self._schemas: list[ToolSchema] = []
        self._known: frozenset[str] = frozenset()
        self.records: list[ToolSchema] | None = []
        """The schemas as they were last put in order, None until they are; the list is replaced, never changed."""
        self.names: frozenset[str] = frozenset()
        """The names that are visible as of the last collection."""

    def collect(self, context: AssembleContext) -> None:
        """Call every provider once and take their schemas (TOOL-12).

        Raises:
            ProviderContractError: a provider returned something else (TOOL-14); any exception of a provider.
        """
        calls = iter(self._providers)
        try:
            given = [
                result if type(result := provider(context)) in _IMMUTABLE else _as_tuple(result) for provider in calls
            ]
        except Exception as error:
            entry = self.entries[len(self._providers) - operator.length_hint(calls) - 1]
            if isinstance(error, ProviderContractError) and error.plugin is None:
                for name, fact in origin_facts(entry.origin).items():
                    setattr(error, name, fact)
            note_provider(error, entry.kind, entry.name, entry.origin, entry.layer)
            raise
        if given == self._given:
            return
        schemas: list[ToolSchema] = []
        known: set[str] = set()
        previous = self._by_source()
        for entry, result in zip(self.entries, given, strict=True):
            for schema in _schemas_of(result):
                source, own = previous.get((entry, getattr(schema, "name", None)), (None, None))
                schemas.append(own if own is not None and source == schema else _owned(schema, entry))
            if type(result) is ToolProviderResult:
                known.update(result.known_names)
        known.update(schema.name for schema in schemas)
        self._given, self._schemas, self._known = given, schemas, frozenset(known)
        self.names = frozenset(schema.name for schema in schemas)
        self.records = None

    def _by_source(self) -> dict[tuple[ToolEntry, str | None], tuple[ToolSchema, ToolSchema]]:
        """The last schemas as provided and as owned: what did not change keeps its identity."""
        own = iter(self._schemas)
        return {
            (entry, source.name): (source, next(own))
            for entry, result in zip(self.entries, self._given or (), strict=False)
            for source in _schemas_of(result)
        }

    def ordered(self, order: tuple[str, ...] | None, scope: str) -> Lane:
        """The collected schemas in their final order, as a fresh lane.

        Raises:
            ToolOrderError, ReservedToolNameError: see `order_tools`; never remembered.
        """
        if self.records is None:
            self.records = order_tools(self._schemas, self._known, order, scope)
        return ToolSchemaLane(self.records)


def _schemas_of(result: Any) -> tuple[ToolSchema, ...]:
    schemas: tuple[ToolSchema, ...] = result.schemas if type(result) is ToolProviderResult else result
    return schemas


def _as_tuple(result: object) -> tuple[ToolSchema, ...]:
    """A provider's result as a tuple, which the provider cannot change later."""
    if isinstance(result, Iterable) and not isinstance(result, (str, bytes, dict)):
        return tuple(result)
    if inspect.iscoroutine(result):
        result.close()
    raise ProviderContractError(
        f"A tool provider returned {'nothing' if result is None else f'a {type(result).__name__}'}; it must return "
        "ToolSchema records or a ToolProviderResult, and must not be asynchronous.",
        kind="tool",
    )


def _owned(schema: object, entry: ToolEntry) -> ToolSchema:
    if not isinstance(schema, ToolSchema):
        raise ProviderContractError(
            f"A tool provider of {entry.origin} returned a {type(schema).__name__} among its schemas.",
            remedy="Return ToolSchema(name, description, parameters) records.",
            kind="tool",
            layer=entry.layer,
            **origin_facts(entry.origin),
        )
    return schema if schema.origin is not None else schema.with_origin(entry.origin)


@attrs.frozen
class StartedTable:
    """A layer's variables as they are when an assembly starts."""

    table: VariableTable
    epoch: int
    entries: frozenset[VariableEntry]


class View:
    """What one scope sees, as of certain generations of its layers."""

    __slots__ = ("complete", "contexts", "generation", "memo", "revision", "sections", "stamps", "suppressed", "tools", "tree",
                 "variable_calls", "variable_tables", "variables")  # fmt: skip

    def __init__(self, scoped: list[tuple[ScopeNode, Layer]], overrides: Overrides | None = None) -> None:
        """``scoped``: the layers of the chain with their scopes, the global one first."""
        layers = [layer for _, layer in scoped]
        self.generation = -1
        self.tree = -1
        self.revision = -1
        self.stamps: list[tuple[Layer, int]] = [(layer, layer.generation) for layer in layers]
        self.suppressed = any(layer.suppressors for layer in layers)
        self.variables: tuple[VariableEntry, ...] = tuple(
            entry for layer in layers for entry in layer.variables.values()
        )
        self.variable_calls = tuple((entry.name, entry.provider, entry) for entry in self.variables)
        self.variable_tables = {
            scope: StartedTable(layer.variables, layer.variables.epoch, frozenset(layer.variables.values()))
            for scope, layer in scoped
        }
        self.tools = ToolLane([entry for layer in layers for entry in layer.tools])
        sections = placed(effective([layer.sections for layer in layers]), overrides)
        self.sections = TextLane(SectionLane, sections)
        contexts = placed(effective([layer.contexts for layer in layers]), overrides)
        self.contexts = TextLane(ContextLane, contexts)
        self.complete = tuple(entry.name for entry in sections if entry.complete)
        self.memo = RenderMemo()

    def take_over(self, older: View, *, reordered: bool = False) -> None:
        """Reuse what an older view of the same scope has, where its inputs are the same ones.

        ``reordered``: the settings changed meanwhile, and with them perhaps the order of the tools.
        """
        if self.tools.entries == older.tools.entries and not reordered:
            self.tools = older.tools
        if self.sections.entries == older.sections.entries and self.contexts.entries == older.contexts.entries:
            self.sections, self.contexts, self.memo = older.sections, older.contexts, older.memo
