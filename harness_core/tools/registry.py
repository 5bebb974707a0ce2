"""The tool registry: schemas with their handlers by scope, restrictions, and the schema provider for prompts (TOOL-20 ff).

It decides which tools a scope can see; carrying calls out is the agent's business.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias, cast

import attrs

from harness_core._json import thaw
from harness_core._text import quoted_list
from harness_core.errors import ReservedToolNameError, ToolRestrictionError
from harness_core.hooks import ToolCall, ToolOutcome
from harness_core.models import ToolSchema
from harness_core.prompt._entries import caller_place
from harness_core.scopes import Effects, Handle, Origin, ScopeNode
from harness_core.scopes.layers import ScopedTable
from harness_core.tools._provider import Visible, provide_schemas

__all__ = ["ScopedTools", "Tool", "ToolHandler", "ToolRegistry"]

_log = logging.getLogger("harness")

ToolResult: TypeAlias = ToolOutcome | str
ToolHandler: TypeAlias = Callable[[ToolCall], ToolResult | Awaitable[ToolResult]]
"""Carries a call out. Returns the text for the model, or a `ToolOutcome`; sync or async."""

RESERVED_NAME = "<unlisted-tools>"


@attrs.frozen(kw_only=True, eq=False)
class Tool:
    """A registered tool. ``parallel_safe`` may be a function of the call, asked just before it starts (TOOLX-02)."""

    schema: ToolSchema
    handler: ToolHandler | None
    parallel_safe: bool | Callable[[ToolCall], bool] = False
    origin: Origin
    place: tuple[str, int] | None = None
    """File and line of the registration."""

    @property
    def name(self) -> str:
        return self.schema.name


@attrs.frozen(eq=False)
class Restriction:
    """One filter on what a scope inherits."""

    allow: frozenset[str] | None
    deny: frozenset[str]

    def admits(self, tool: Tool) -> bool:
        names = {tool.name, f"{tool.origin.plugin}:{tool.name}"}
        return (self.allow is None or not names.isdisjoint(self.allow)) and names.isdisjoint(self.deny)


class ToolRegistry:
    """All tools of one tree of scopes.

    ``subscribers`` returns the functions to call after each change (``tool_registry_change``); one that raises during
    a registration takes it back (TOOL-26).
    """

    def __init__(self, root: ScopeNode, subscribers: Callable[[], Sequence[Callable[[], object]]] = tuple) -> None:
        self.root = root
        self.subscribers = subscribers
        self._tools: ScopedTable[str, Tool] = ScopedTable("tool")
        self._restrictions: ScopedTable[object, Restriction] = ScopedTable("restriction")
        self._handlers: ScopedTable[str, Tool] = ScopedTable("tool handler")
        self._tools.changed = self._restrictions.changed = self._handlers.changed = self._notify

    @property
    def tables(self) -> tuple[ScopedTable[Any, Any], ...]:
        """All that is registered, for changes of several tables in one go."""
        return (self._tools, self._restrictions, self._handlers)

    @property
    def generation(self) -> int:
        return self._tools.generation + self._restrictions.generation + self._handlers.generation

    def _notify(self) -> None:
        for subscriber in self.subscribers():
            subscriber()

    def at(self, scope: ScopeNode, owner: Effects | None = None) -> ScopedTools:
        """The calls that register into a scope on an owner's behalf."""
        return ScopedTools(self, scope, owner if owner is not None else scope.effects)

    def view(self, scope: ScopeNode) -> Visible:
        """What the scope sees: tools by name, and all names that exist for it; the same object while nothing changed."""
        key = (self.generation, scope.tree.generation)
        cached = cast("tuple[Any, Visible] | None", scope.attachments.get(self))
        if cached is not None and cached[0] == key:
            return cached[1]
        visible: dict[str, Tool] = {}
        known: dict[str, None] = {}
        for each in reversed(scope.chain()):
            restrictions = list(self._restrictions.layer(each).values())
            if restrictions:
                # A layer's restrictions filter what it inherits, never what it has itself (TOOL-23, X-15).
                visible = {n: tool for n, tool in visible.items() if all(r.admits(tool) for r in restrictions)}
            own = self._tools.layer(each)
            visible.update(own)
            known.update(dict.fromkeys(own))
        made = Visible(visible, tuple(known), cached[1] if cached is not None else None)
        scope.attachments[self] = (key, made)
        return made

    def find(self, scope: ScopeNode, name: str) -> Tool | None:
        """The tool that a call of that name in this scope means; None when it is unknown or hidden alike (TOOL-21)."""
        return self.view(scope).tools.get(name)

    def handler(self, scope: ScopeNode, name: str) -> Tool | None:
        """The tool with a handler for ``name``: the visible tool's own, or one that was registered apart."""
        tool = self.find(scope, name)
        if tool is not None and tool.handler is not None:
            return tool
        return self._handlers.find(scope, name)

    def schemas(self, scope: ScopeNode) -> list[dict[str, Any]]:
        """Plain copies of all visible schemas (TOOL-28)."""
        return [
            {"name": tool.name, "description": tool.schema.description, "parameters": thaw(tool.schema.parameters)}
            for tool in self.view(scope).tools.values()
        ]

    provide = provide_schemas


class ScopedTools:
    """Registers tools into one scope, on behalf of one owner."""

    __slots__ = ("_owner", "_registry", "scope")

    def __init__(self, registry: ToolRegistry, scope: ScopeNode, owner: Effects) -> None:
        self._registry = registry
        self._owner = owner
        self.scope = scope

    def register(
        self,
        schema: ToolSchema,
        handler: ToolHandler | None = None,
        *,
        parallel_safe: bool | Callable[[ToolCall], bool] = False,
    ) -> Handle:
        """A tool: its schema and what carries it out. Without a handler, register one apart with `handle`.

        Raises:
            DuplicateNameError: the scope has a tool of that name; names both owners (UC-08).
            ReservedToolNameError: the name is the marker of tool_order (X-14).
            InactiveOwnerError: owner or scope is gone or going.
        """
        if not isinstance(schema, ToolSchema):
            raise TypeError(f"register() takes a ToolSchema, not {type(schema).__name__}.")
        self._refuse_reserved(schema.name)
        origin = self._owner.origin
        if schema.origin is None:
            schema = schema.with_origin(origin)
        tool = Tool(schema=schema, handler=handler, parallel_safe=parallel_safe, origin=origin, place=caller_place())
        return self._registry._tools.file(self.scope, self._owner, schema.name, tool)

    def handle(
        self, name: str, handler: ToolHandler, *, parallel_safe: bool | Callable[[ToolCall], bool] = False
    ) -> Handle:
        """A handler for a tool whose schema comes from elsewhere (``prompt.tools``, say)."""
        tool = Tool(
            schema=ToolSchema(name),
            handler=handler,
            parallel_safe=parallel_safe,
            origin=self._owner.origin,
            place=caller_place(),
        )
        return self._registry._handlers.file(self.scope, self._owner, name, tool)

    def restrict(self, *, allow: Iterable[str] | None = None, deny: Iterable[str] | None = None) -> Handle:
        """Filter the tools that this scope inherits; several restrictions intersect, each lifts on its own (TOOL-22 ff).

        Names are tool names or ``plugin:tool``. An empty ``allow`` hides all that is inherited.

        Raises:
            ToolRestrictionError: the root scope inherits nothing; neither list is given; a name is not inherited.
        """
        if self.scope.is_root:
            raise ToolRestrictionError(
                "Tools cannot be restricted in the root scope: it inherits none.",
                remedy="Restrict in a child scope, or do not register the tool.",
            )
        if allow is None and deny is None:
            raise ToolRestrictionError("restrict() needs allow=..., deny=..., or both.", layer=self.scope.name)
        allowed = None if allow is None else frozenset(_as_names(allow))
        denied = frozenset(() if deny is None else _as_names(deny))
        parent = self.scope.chain()[1]
        inherited = {name for each in parent.chain() for name in self._registry._tools.layer(each)}
        owned = {
            f"{tool.origin.plugin}:{name}"
            for each in parent.chain()
            for name, tool in self._registry._tools.layer(each).items()
        }
        unknown = sorted(((allowed or frozenset()) | denied) - inherited - owned)
        if unknown:
            raise ToolRestrictionError(
                f"Scope {self.scope.name!r} inherits no {'tool' if len(unknown) == 1 else 'tools'} {quoted_list(unknown)}; "
                f"inherited: {quoted_list(sorted(inherited))}.",
                layer=self.scope.name,
                names=unknown,
                known=sorted(inherited),
                plugin=self._owner.origin.plugin,
            )
        return self._registry._restrictions.file(self.scope, self._owner, object(), Restriction(allowed, denied))

    def _refuse_reserved(self, name: str) -> None:
        if name == RESERVED_NAME:
            origin = self._owner.origin
            raise ReservedToolNameError(
                f"A tool cannot be called {RESERVED_NAME!r}: that is the marker of tool_order. Registered by {origin}.",
                kind="tool",
                entry=name,
                plugin=origin.plugin,
                distribution=origin.distribution,
                version=origin.version,
            )


def _as_names(names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ToolRestrictionError(f"allow and deny take lists of names, not the text {names!r}.")
    return tuple(names)
