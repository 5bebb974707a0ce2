"""The prompt registry: the five tables, who may file into them, and the notices of change (REG-*, SCOPE-*).

Filing is synchronous and all or nothing: checks, entry, undo, notice. The registry knows scopes and owners, and
neither plugins nor hooks: whoever wants notices gives it the functions to call.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

from harness_core._text import quoted
from harness_core.errors import DuplicateNameError
from harness_core.prompt._entries import SuppressorEntry, TextEntry, ToolEntry, VariableEntry
from harness_core.prompt._layers import Layer
from harness_core.prompt._placement import Overrides
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

__all__ = ["PromptRegistry"]

_log = logging.getLogger("harness")


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
        self._overrides: Overrides = {}
        self._serial = 0
        self._layers: dict[ScopeNode, Layer] = {}
        self._register_builtins()

    def _register_builtins(self) -> None:
        builtins = self.root.effects.nested("the built-in prompt sections")
        builtins.origin = Origin(scope=self.root.name, plugin="harness")
        prompt = ScopedPrompt(self, self.root, builtins)
        if self.settings.identity:
            prompt.section(IDENTITY_SECTION, IDENTITY_TEXT, order=IDENTITY_ORDER)
        # The persona is the deployment's own template: whoever configures it may refer to variables (RND-05).
        prompt.section(PERSONA_SECTION, self.settings.persona, order=PERSONA_ORDER)
        if not self.settings.runtime_context:
            prompt.suppress_runtime_context()

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
        layer = self._layers.get(scope)
        key = entry if table in ("tools", "suppressors") else entry.name
        if layer is None:
            layer = Layer()  # filed away below, so that a refused entry leaves no layer behind (SCOPE-16)
        entries: dict[Any, Any] = getattr(layer, table)
        if key in entries:
            self._refuse_duplicate(scope, entry, entries[key])
        self._layers[scope] = layer
        entries[key] = entry if table in ("sections", "contexts", "variables") else None
        self._moved(layer)
        handle = owner.add(
            partial(self._withdraw, scope, layer, table, key, entry), f"{entry.kind} {quoted(entry.name)}"
        )
        self._announce(scope, layer, table, key, entry, handle)
        return handle

    def _announce(self, scope: ScopeNode, layer: Layer, table: str, key: Any, entry: Any, handle: Handle) -> None:
        heard: list[Callable[[], object]] = []
        try:
            for subscriber in self.subscribers():
                heard.append(subscriber)
                subscriber()
        except BaseException:
            # A veto: out again, and only those who heard of it hear that.
            handle.forget()
            self._remove(scope, layer, table, key, entry)
            for subscriber in heard:
                self._tell(subscriber, entry)
            raise

    def _withdraw(self, scope: ScopeNode, layer: Layer, table: str, key: Any, entry: Any) -> None:
        if self._remove(scope, layer, table, key, entry):
            for subscriber in self.subscribers():
                self._tell(subscriber, entry)

    def _remove(self, scope: ScopeNode, layer: Layer, table: str, key: Any, entry: Any) -> bool:
        entries: dict[Any, Any] = getattr(layer, table)
        if key not in entries or (entries[key] is not entry and key is not entry):
            return False
        if table == "variables":
            layer.variables.remove(key)
        else:
            del entries[key]
        self._moved(layer)
        if layer.empty:
            self._layers.pop(scope, None)
        return True

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

    @property
    def overrides(self) -> Overrides:
        """What a composition says of single contributions."""
        return self._overrides

    @overrides.setter
    def overrides(self, overrides: Overrides) -> None:
        self._overrides = dict(overrides)
        for scope in list(self._layers) or [self.root]:
            self._moved(self._layers.setdefault(scope, Layer()))

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
            if view.stamps == stamps:
                view.generation, view.tree = self.generation, tree
                return view
        fresh = View(self._chain_layers(scope), self._overrides)
        if view is not None:
            fresh.take_over(view)
        fresh.generation, fresh.tree = self.generation, tree
        scope.attachments[self] = fresh
        return fresh
