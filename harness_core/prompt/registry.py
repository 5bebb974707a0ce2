"""The prompt registry: the five tables, who may file into them, and the notices of change (REG-*, SCOPE-*).

Filing is synchronous and all or nothing: checks, entry, undo, notice. The registry knows scopes and owners, and
neither plugins nor hooks: whoever wants notices gives it the functions to call.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from harness_core._text import quoted
from harness_core.errors import DuplicateNameError
from harness_core.prompt._entries import SuppressorEntry, TextEntry, ToolEntry, VariableEntry
from harness_core.prompt._layers import Layer
from harness_core.prompt._placement import Override, Overrides
from harness_core.prompt._view import View
from harness_core.prompt.records import PromptAssembly, origin_facts
from harness_core.prompt.registrar import ScopedPrompt
from harness_core.prompt.settings import (
    IDENTITY_ORDER,
    IDENTITY_SECTION,
    IDENTITY_TEXT,
    PERSONA_ORDER,
    PERSONA_SECTION,
    PromptSettings,
)
from harness_core.scopes import Effects, Handle, Origin, ScopeNode
from harness_core.scopes.staging import Position, arranged, current_staging

__all__ = ["PromptRegistry"]

_log = logging.getLogger("harness")

Key: TypeAlias = tuple[str, Any]
"""A table of a layer, and the name in it; the entry itself where the table's entries have no names."""
_BUILTINS = "the built-in prompt sections"
_UNNAMED = ("tools", "suppressors")


class PromptRegistry:
    """Everything that is registered in one tree of scopes.

    ``subscribers`` returns the functions to call after each change, in order; the host answers with the observers of
    ``system_prompt_change``.
    """

    def __init__(
        self,
        root: ScopeNode,
        settings: PromptSettings | None = None,
        subscribers: Callable[[], Sequence[Callable[[], object]]] = tuple,
    ) -> None:
        self.root = root
        self.settings = settings if settings is not None else PromptSettings()
        self.subscribers = subscribers
        self.generation = 0
        """Moves with every change of any layer."""
        self.watch: Callable[[Any, Any], Awaitable[PromptAssembly]] | None = None
        """Carries assemblies out in the place of `assemble` while somebody watches them."""
        self.overrides: Mapping[ScopeNode, Overrides] = {}
        """What a composition says of single contributions, by the scope for which it says so; see `configure`."""
        self._revision = 0
        self._serial = 0
        self._layers: dict[ScopeNode, Layer] = {}
        self._builtins = self._register_builtins(self.root.effects.nested(_BUILTINS))

    def _register_builtins(self, builtins: Effects) -> Effects:
        builtins.origin = Origin(scope=self.root.name, plugin="harness")
        prompt = ScopedPrompt(self, self.root, builtins)
        if self.settings.identity:
            prompt.section(IDENTITY_SECTION, IDENTITY_TEXT, order=IDENTITY_ORDER)
        # The persona is the deployment's own template: whoever configures it may refer to variables (RND-05).
        prompt.section(PERSONA_SECTION, self.settings.persona, order=PERSONA_ORDER)
        if not self.settings.runtime_context:
            prompt.suppress_runtime_context()
        return builtins

    def configure(self, settings: PromptSettings, overrides: Mapping[ScopeNode, Overrides]) -> None:
        """Take other settings and overrides; seen by the next assembly. Tells nobody."""
        self._revision += 1
        self.generation += 1
        self.overrides = dict(overrides)
        if settings != self.settings:
            self.settings = settings
            old, subscribers = self._builtins.origin, self.subscribers
            self.drop(lambda origin: origin is old)
            self.subscribers = tuple
            try:
                # An owner that nothing closes: they stay until other settings come, or the registry goes.
                self._builtins = self._register_builtins(Effects(_BUILTINS, old))
            finally:
                self.subscribers = subscribers

    def at(self, scope: ScopeNode, owner: Effects | None = None) -> ScopedPrompt:
        """The registrar that files into ``scope``'s layer; ``owner`` (the scope itself by default) undoes it."""
        return ScopedPrompt(self, scope, owner if owner is not None else scope.effects)

    # --- filing -------------------------------------------------------------------------------------------------------

    def next_serial(self) -> int:
        """A number that no earlier registration has."""
        self._serial += 1
        return self._serial

    def file(self, scope: ScopeNode, owner: Effects, table: str, entry: Any) -> Handle:
        """Put a checked entry into a table of the scope's layer, and tell the subscribers.

        Raises:
            InactiveOwnerError: owner or scope is gone or going (SCOPE-11).
            DuplicateNameError: the layer has the name (REG-05).
            Exception: what a subscriber raised; the entry is out again (REG-13).
        """
        owner.require_active()
        scope.effects.require_active()
        key = (table, entry if table in _UNNAMED else entry.name)
        staging = current_staging()
        taken = self._held(scope, key) if staging is None else staging.taken(self, scope, key)
        if taken is not None:
            self._refuse_duplicate(scope, entry, taken)
        label = f"{entry.kind} {quoted(entry.name)}"
        undo = partial(self._withdraw, scope, key, entry)
        if staging is not None:
            return staging.file(self, scope, owner, key, entry, undo, label)
        self.insert(scope, key, entry)
        handle = owner.add(undo, label)
        self._announce(scope, key, entry, handle)
        return handle

    def _announce(self, scope: ScopeNode, key: Key, entry: Any, handle: Handle) -> None:
        heard: list[Callable[[], object]] = []
        try:
            for subscriber in self.subscribers():
                heard.append(subscriber)
                subscriber()
        except BaseException:
            # A veto: out again, and only those who heard of it hear that.
            handle.forget()
            self._remove(scope, key, entry)
            for subscriber in heard:
                self._tell(subscriber, entry)
            raise

    def _withdraw(self, scope: ScopeNode, key: Key, entry: Any) -> None:
        if self._remove(scope, key, entry):
            for subscriber in self.subscribers():
                self._tell(subscriber, entry)

    def _remove(self, scope: ScopeNode, key: Key, entry: Any) -> bool:
        if self._held(scope, key) is not entry:
            return False
        self._delete(scope, self._layers[scope], key)
        return True

    def _held(self, scope: ScopeNode, key: Key) -> Any:
        """The entry in the scope's own layer, or None."""
        layer = self._layers.get(scope)
        return getattr(layer, key[0]).get(key[1]) if layer is not None else None

    def _delete(self, scope: ScopeNode, layer: Layer, key: Key) -> None:
        table, name = key
        if table == "variables":
            layer.variables.remove(name)
        else:
            del getattr(layer, table)[name]
        self._moved(layer)
        if layer.empty:
            self._layers.pop(scope, None)

    def _tell(self, subscriber: Callable[[], object], entry: Any) -> None:
        try:
            subscriber()
        except Exception:
            _log.exception(
                "A system_prompt_change observer failed on the removal of %s %r; the removal stands.",
                entry.kind,
                entry.name,
            )

    def _moved(self, layer: Layer) -> None:
        layer.generation += 1
        self.generation += 1

    def _refuse_duplicate(self, scope: ScopeNode, entry: Any, taken: Any) -> None:
        if scope.is_root:
            layer, where = "global", "globally"
            remedy = "To override it for one agent, register it through that agent's scope."
        else:
            layer, where = scope.name, f"in scope {scope.name!r}"
            remedy = "The clash is inside this scope: dispose the other registration, or use another name."
        raise DuplicateNameError(
            f"The {entry.kind} {quoted(entry.name)} is already registered {where} by {taken.origin}; "
            f"registered again by {entry.origin}.",
            remedy=remedy,
            kind=entry.kind,
            entry=entry.name,
            layer=layer,
            names=[str(taken.origin), str(entry.origin)],
            **origin_facts(entry.origin),
        )

    # --- reading ------------------------------------------------------------------------------------------------------

    def layers(self) -> dict[ScopeNode, Layer]:
        """The live layers by scope, for reports (X-34)."""
        return dict(self._layers)

    def layer(self, scope: ScopeNode) -> Layer | None:
        """The scope's own layer, never an ancestor's (SCOPE-09)."""
        return self._layers.get(scope)

    def entries(self, scope: ScopeNode) -> list[TextEntry | VariableEntry | ToolEntry | SuppressorEntry]:
        """All entries on the scope's chain, the global layer first, shadowed ones included."""
        found: list[TextEntry | VariableEntry | ToolEntry | SuppressorEntry] = []
        for _, layer in self._chain_layers(scope):
            found += [*layer.sections.values(), *layer.contexts.values(), *layer.variables.values()]
            found += [*layer.tools, *layer.suppressors]
        return found

    def _chain_layers(self, scope: ScopeNode) -> list[tuple[ScopeNode, Layer]]:
        layers = self._layers
        return [(each, layers[each]) for each in reversed(scope.chain()) if each in layers]

    def view(self, scope: ScopeNode) -> View:
        """What the scope sees now; the last view again where nothing that it sees has changed."""
        view = cast("View | None", scope.attachments.get(self))
        tree = scope.tree.generation
        if view is not None:
            if view.generation == self.generation and view.tree == tree:
                return view
            stamps = [(layer, layer.generation) for _, layer in self._chain_layers(scope)]
            if view.stamps == stamps and view.revision == self._revision:
                view.generation, view.tree = self.generation, tree
                return view
        fresh = View(self._chain_layers(scope), self.overrides_for(scope))
        if view is not None:
            fresh.take_over(view, reordered=view.revision != self._revision)
        fresh.generation, fresh.tree, fresh.revision = self.generation, tree, self._revision
        scope.attachments[self] = fresh
        return fresh

    def overrides_for(self, scope: ScopeNode) -> Overrides:
        """What the composition says of the contributions that a scope sees; the nearest scope's word counts."""
        merged: dict[tuple[str, str], Override] = {}
        if self.overrides:
            for each in reversed(scope.chain()):
                merged.update(self.overrides.get(each, {}))
        return merged

    # --- a change of several tables (see `StagedTable`) ---------------------------------------------------------------

    def taken(self, scope: ScopeNode, key: Hashable) -> tuple[Any, Origin] | None:
        entry = self._held(scope, cast("Key", key))
        return (entry, entry.origin) if entry is not None else None

    def insert(self, scope: ScopeNode, key: Key, value: Any, origin: Origin | None = None) -> None:
        layer = self._layers.get(scope)
        if layer is None:
            layer = self._layers[scope] = Layer()
        table, name = key
        getattr(layer, table)[name] = value
        self._moved(layer)

    def drop(self, goes: Callable[[Origin], bool]) -> None:
        for scope, layer in list(self._layers.items()):
            for table, entries in layer.tables():
                for name, entry in list(entries.items()):
                    if goes(entry.origin):
                        self._delete(scope, layer, (table, name))

    def arrange(self, position: Position) -> None:
        for layer in self._layers.values():
            for table, entries in layer.tables():
                names = arranged(entries, lambda name, of=entries: of[name].origin, self._first(position))  # type: ignore[misc]
                if names != list(entries):
                    ordered = {name: entries[name] for name in names}
                    entries.clear()
                    entries.update(ordered)
                    self._moved(layer)
                if table == "variables":
                    for entry in layer.variables.values():
                        entry.number = self.next_serial()

    def _first(self, position: Position) -> Position:
        """The registry's own entries stand first."""
        own = self._builtins.origin
        return lambda origin: -1 if origin is own else position(origin)

    def snapshot(self) -> Any:
        layers = {scope: layer.copy() for scope, layer in self._layers.items()}
        return layers, self.settings, self.overrides, self._builtins

    def restore(self, snapshot: Any) -> None:
        layers, self.settings, self.overrides, self._builtins = snapshot
        self._layers = {scope: layer.copy() for scope, layer in layers.items()}
        self._revision += 1
        self.generation += 1

    def announce(self) -> None:
        for subscriber in self.subscribers():
            subscriber()
