"""A plain evaluation of the registry: the ten stages read off the specification, with nothing cached or compiled.

It works on the registry's own tables and shares no code with the assembly that it is held against, except for the
records, the template grammar and the tool order, which have tests of their own.
"""

from __future__ import annotations

from typing import Any

from harness_core import AssembleContext, ContextEntry, PromptAssembly, Scope, Section, ToolProviderResult, ToolSchema
from harness_core.errors import MultipleCompleteError, ProviderContractError
from harness_core.prompt.tool_order import order_tools


def plain_assemble(scope: Scope, context: AssembleContext) -> PromptAssembly:
    """Stages 1 to 8 of ASM-02, then enforcement; there are no listeners here."""
    registry = scope.registries.prompt
    chain = list(reversed(scope.chain()))

    def layers() -> list[Any]:
        return [layer for each in chain if (layer := registry.layer(each)) is not None]

    suppressed = any(layer.suppressors for layer in layers())
    variables = evaluate_variables(registry, chain, context)

    sections = sorted(effective(layers(), "sections"), key=lambda entry: entry.order)
    contexts = sorted(effective(layers(), "contexts"), key=lambda entry: entry.order)
    providers = [entry for layer in layers() for entry in layer.tools]
    tools: list[ToolSchema] = []
    known: list[str] = []
    for entry in providers:
        result = entry.provider(context)
        if result is None or isinstance(result, (str, dict)) or not hasattr(result, "__iter__"):
            if not isinstance(result, ToolProviderResult):
                raise ProviderContractError("tools")
        schemas = list(result.schemas) if isinstance(result, ToolProviderResult) else list(result)
        if any(not isinstance(schema, ToolSchema) for schema in schemas):
            raise ProviderContractError("schema")
        known += result.known_names if isinstance(result, ToolProviderResult) else ()
        tools += schemas
    known += [schema.name for schema in tools]
    if sum(entry.complete for entry in sections) > 1:
        raise MultipleCompleteError("", names=[entry.name for entry in sections if entry.complete])
    visible = {schema.name for schema in tools}
    section_records = [Section(e.name, text_of(e, context, visible), interpolate=e.interpolate) for e in sections]
    context_records = []
    if not suppressed:
        context_records = [
            ContextEntry(e.name, text_of(e, context, visible), interpolate=e.interpolate) for e in contexts
        ]
    ordered = order_tools(tools, known, registry.settings.tool_order, scope.name)
    complete = [record for record, entry in zip(section_records, sections, strict=True) if entry.complete]
    return PromptAssembly(complete or section_records, context_records, ordered, variables)


def effective(layers: list[Any], table: str) -> list[Any]:
    """A shadow keeps the place of the farthest layer that has its name (SCOPE-07)."""
    names: list[str] = []
    for layer in layers:
        names += [name for name in getattr(layer, table) if name not in names]
    return [
        next(getattr(layer, table)[name] for layer in reversed(layers) if name in getattr(layer, table))
        for name in names
    ]


def text_of(entry: Any, context: AssembleContext, visible: set[str]) -> Any:
    if entry.tools and not entry.tools & visible:
        return ""
    if entry.provider is None:
        return entry.fixed
    value = entry.provider(context)
    parts = value if isinstance(value, (list, tuple)) else [value]
    if not isinstance(value, (list, tuple)) and type(value).__name__ not in ("str", "Literal"):
        raise ProviderContractError("text")
    if any(type(part).__name__ not in ("str", "Literal") for part in parts):
        raise ProviderContractError("text")
    return tuple(value) if isinstance(value, list) else value


def evaluate_variables(registry: Any, chain: list[Scope], context: AssembleContext) -> dict[str, str | None]:
    """Live: after each provider, look again for the next one that is due (ASM-05, ASM-06)."""
    values: dict[str, str | None] = {}
    for scope in chain:
        layer = registry.layer(scope)
        if layer is None:
            continue
        table, epoch, last = layer.variables, layer.variables.epoch, -1
        while table.epoch == epoch:
            due = [entry for entry in table.values() if entry.number > last]
            if not due:
                break
            entry = min(due, key=lambda each: each.number)
            last = entry.number
            value = entry.provider(context)
            if value is None:
                value = {"error": None, "empty": "", "literal": "{{" + entry.name + "}}"}[entry.missing]
            elif not isinstance(value, str):
                raise ProviderContractError("variable")
            values[entry.name] = value
    return values
