"""One assembly: the seven stages that collect what a scope is told, then the waterfall, then enforcement (ASM-02).

From the first stage to the waterfall nothing awaits, so one assembly is a consistent snapshot (D4). The dispatcher is
handed in; this module knows no plugin and no hook.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import attrs

from harness_core._text import quoted
from harness_core.errors import AssemblyContentError, MultipleCompleteError, ProviderContractError
from harness_core.prompt._entries import VariableEntry, note_provider
from harness_core.prompt._lanes import Lane, VariableMap, writer_of
from harness_core.prompt._view import View
from harness_core.prompt.records import (
    AssembleContext,
    ContextLane,
    PromptAssembly,
    Section,
    SectionLane,
    origin_facts,
)
from harness_core.prompt.registry import PromptRegistry
from harness_core.scopes import ScopeNode

__all__ = ["Dispatch", "assemble"]

_MAX_EVALUATIONS = 10_000
"""Variables evaluated in one assembly before a provider that keeps registering others is stopped (X-07)."""


class Dispatch(Protocol):
    """The waterfall of assemblies, as this module needs it."""

    def chain(self, scope: ScopeNode) -> Any: ...


async def assemble(
    registry: PromptRegistry, dispatch: Dispatch | None = None, context: AssembleContext | ScopeNode | None = None
) -> PromptAssembly:
    """What the context's scope is told now. Every failure is raised from the awaited call (ASM-01).

    Raises:
        ProviderContractError, MultipleCompleteError, ToolOrderError, ReservedToolNameError, SectionOrderError: see there.
        WaterfallError: a listener broke the contract.
        Exception: what a provider or listener raised, with a note that names it.
    """
    if registry.watch is not None:
        return await registry.watch(dispatch, context)
    if context is None or isinstance(context, ScopeNode):
        context = _bare_context(context if context is not None else registry.root)
    elif not isinstance(context, AssembleContext):
        raise TypeError(f"assemble() takes a scope or an AssembleContext, not {type(context).__name__}.")
    scope = context.scope if context.scope is not None else registry.root

    first = registry.view(scope)
    suppressed = first.suppressed
    values = _evaluate_variables(registry, scope, first, context)
    view = registry.view(scope)  # what a variable provider registered counts from here on (ASM-07)
    view.tools.collect(context)
    _refuse_several_complete(view)
    sections = view.sections.evaluate(context, view.tools.names)
    contexts = ContextLane() if suppressed else view.contexts.evaluate(context, view.tools.names)
    tools = view.tools.ordered(registry.settings.tool_order, scope.name)

    chain = dispatch.chain(scope) if dispatch is not None else None
    listeners = chain.listeners if chain is not None else ()
    assembly = _traced(PromptAssembly.__new__(PromptAssembly), view, listeners)
    _fill(assembly, sections, contexts, tools, VariableMap(values))
    complete = _complete_record(view, sections) if view.complete else None
    if chain is not None:
        base = assembly
        given = (view.sections.records, view.contexts.records, view.tools.records, values)
        assembly = await chain.run(base, context, _identity)
        if assembly is not base:
            _traced(assembly, view, listeners)
        _put(assembly, "_given", given)
        if registry.settings.invariants:
            _check_names(assembly)
    if complete is not None:
        assembly = _with(assembly, sections=SectionLane([complete]))
    if suppressed and assembly.contexts:
        assembly = _with(assembly, contexts=[])
    return assembly


def _bare_context(scope: ScopeNode) -> AssembleContext:
    """The context of an assembly for a scope alone; made once for each scope."""
    found = scope.attachments.get(AssembleContext)
    if found is None:
        found = scope.attachments[AssembleContext] = AssembleContext(scope=scope)
    context: AssembleContext = found
    return context


def _identity(assembly: PromptAssembly) -> PromptAssembly:
    return assembly


def _evaluate_variables(
    registry: PromptRegistry, scope: ScopeNode, view: View, context: AssembleContext
) -> dict[str, str | None]:
    """Run every provider of the chain, the global layer first; each result overwrites (SCOPE-13, ASM-04)."""
    values: dict[str, str | None] = {}
    generation = registry.generation
    entry: VariableEntry | None = None
    try:
        for name, provider, entry in view.variable_calls:
            value = provider(context)
            values[name] = value if type(value) is str else entry.settled(value)
            if registry.generation != generation:
                break
        else:
            return values
    except Exception as error:
        assert entry is not None
        note_provider(error, entry.kind, entry.name, entry.origin, entry.layer)
        raise
    return _evaluate_live(registry, scope, view, entry, context, values)


def _evaluate_live(
    registry: PromptRegistry,
    scope: ScopeNode,
    view: View,
    last: VariableEntry,
    context: AssembleContext,
    values: dict[str, str | None],
) -> dict[str, str | None]:
    """Go on after ``last``, whose provider changed the registry: look every entry up when it is due (ASM-05, ASM-06)."""
    budget = _MAX_EVALUATIONS
    for entry in _live_entries(registry, scope, view, last):
        budget -= 1
        if budget < 0:
            raise ProviderContractError(
                f"Variable providers keep registering variables: {_MAX_EVALUATIONS} were evaluated in one assembly, the "
                f"last one {entry.name!r} of {entry.origin}.",
                remedy="A provider must not register another variable each time it runs.",
                kind="variable",
                entry=entry.name,
                layer=entry.layer,
                **origin_facts(entry.origin),
            )
        try:
            value = entry.provider(context)
            values[entry.name] = value if type(value) is str else entry.settled(value)
        except Exception as error:
            note_provider(error, entry.kind, entry.name, entry.origin, entry.layer)
            raise
    return values


def _live_entries(
    registry: PromptRegistry, scope: ScopeNode, view: View, last: VariableEntry
) -> Iterator[VariableEntry]:
    """The entries that are still due. The scopes are those of the start; their layers are looked up when used (X-06)."""
    reached = False
    tables = view.variable_tables
    for each in reversed(scope.chain()):
        started = tables.get(each)
        if reached:
            layer = registry.layer(each)
            if layer is not None:
                yield from layer.variables.live()
        elif started is not None and last in started.entries:
            reached = True
            yield from started.table.live(last.number, started.epoch)


def _refuse_several_complete(view: View) -> None:
    if len(view.complete) > 1:
        entries = [entry for entry in view.sections.entries if entry.complete]
        owners = ", ".join(f"{quoted(entry.name)} ({entry.origin}, layer {entry.layer!r})" for entry in entries)
        raise MultipleCompleteError(
            f"{len(entries)} sections claim to be the complete prompt: {owners}.",
            remedy="Keep one of them, or shadow the others with ordinary sections in this scope.",
            kind="section",
            names=view.complete,
        )


def _complete_record(view: View, sections: Lane) -> Section:
    """The record of the one complete section as it was evaluated (ASM-17)."""
    index = next(i for i, entry in enumerate(view.sections.entries) if entry.complete)
    record: Section = sections[index]
    return record


_put = object.__setattr__
"""Sets an attribute without the checks of PromptAssembly: the registry's own records need none."""


def _fill(assembly: PromptAssembly, sections: Lane, contexts: Lane, tools: Lane, variables: VariableMap) -> None:
    _put(assembly, "sections", sections)
    _put(assembly, "contexts", contexts)
    _put(assembly, "tools", tools)
    _put(assembly, "variables", variables)


def _traced(assembly: PromptAssembly, view: View, listeners: tuple[Any, ...]) -> PromptAssembly:
    """The assembly, with what rendering may reuse and whom an error may name."""
    _put(assembly, "_memo", view.memo)
    _put(assembly, "_listeners", listeners)
    return assembly


def _with(assembly: PromptAssembly, **lanes: Any) -> PromptAssembly:
    """A new top-level object with other lanes; what else a listener's value carries is kept (ASM-17)."""
    changed = attrs.evolve(assembly, **lanes)
    _put(changed, "_memo", assembly._memo)
    _put(changed, "_listeners", assembly._listeners)
    _put(changed, "_given", getattr(assembly, "_given", None))
    return changed


def _check_names(assembly: PromptAssembly) -> None:
    """The optional invariants: no empty names, no two sections or contexts of one name (INV-02).

    Raises:
        AssemblyContentError: names the entry and the listener that put it there.
    """
    lanes: tuple[tuple[str, list[Any], bool], ...] = (
        ("section", assembly.sections, True),
        ("context", assembly.contexts, True),
        ("tool", assembly.tools, False),
    )
    for kind, lane, unique in lanes:
        seen: set[str] = set()
        for record in lane:
            if record.name and not (unique and record.name in seen):
                seen.add(record.name)
                continue
            listener = writer_of(lane, record, assembly._listeners)
            problem = f"two {kind}s are called {quoted(record.name)}" if record.name else f"a {kind} has an empty name"
            behind = f"; it was put there by {listener.label}" if listener is not None else ""
            raise AssemblyContentError(
                f"After the waterfall {problem}{behind}.",
                remedy="Replace the existing record instead of adding another one.",
                kind=kind,
                entry=record.name,
                names=[record.name],
                **(listener.facts() if listener is not None else {}),
            )
