"""The registrar: the calls by which plugins and hosts contribute to the prompt, bound to a scope and an owner (REG-01)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness_core.errors import RegistrationError
from harness_core.prompt._entries import (
    Missing,
    SuppressorEntry,
    TextEntry,
    ToolEntry,
    VariableEntry,
    caller_place,
    check_provider,
    checked_flag,
    checked_missing,
    checked_name,
    checked_order,
    checked_variable_name,
)
from harness_core.prompt.records import (
    Literal,
    Text,
    TextProvider,
    ToolProvider,
    VariableProvider,
    as_text,
)
from harness_core.scopes import Effects, Handle, Origin, ScopeNode

if TYPE_CHECKING:
    from harness_core.prompt.registry import PromptRegistry

__all__ = ["ScopedPrompt"]


class ScopedPrompt:
    """Contributes to the prompt of one scope, on behalf of one owner.

    Every call takes effect at once and returns a handle whose ``dispose()`` undoes exactly that; everything is undone
    with the owner. All calls raise `InactiveOwnerError` when the owner or the scope is gone or going.
    """

    __slots__ = ("_owner", "_registry", "scope")

    def __init__(self, registry: PromptRegistry, scope: ScopeNode, owner: Effects) -> None:
        self._registry = registry
        self._owner = owner
        self.scope = scope

    def section(
        self,
        name: str,
        text: Text | Sequence[str | Literal] | TextProvider,
        *,
        order: float,
        complete: bool = False,
        interpolate: bool = True,
        tools: Iterable[str] = (),
        before: str | Iterable[str] = (),
        after: str | Iterable[str] = (),
        formerly: Mapping[str, str] | None = None,
    ) -> Handle:
        """A stable part of the instructions.

        Args:
            text: a template, a `Literal`, a sequence of both, or a plain function of the `AssembleContext`.
            order: ascending; the deployment's persona is at 0, equal orders keep their order of registration.
            complete: this section alone is the whole prompt (ASM-13).
            interpolate: False takes the text as it is, double braces included.
            tools: the section is empty while none of these tools is visible to the assembled scope.
            before, after: names of sections that this one must precede or follow, where they exist.
            formerly: earlier names of this section, each with the version of your distribution that no longer knows it.
                Whoever still uses one is understood, and warned.

        Raises:
            InvalidOrderError, InvalidNameError, InvalidTextError, DuplicateNameError.
        """
        return self._text("section", name, text, order, interpolate, complete, tools, before, after, formerly)

    def context(
        self,
        name: str,
        text: Text | Sequence[str | Literal] | TextProvider,
        *,
        order: float,
        interpolate: bool = True,
        tools: Iterable[str] = (),
        before: str | Iterable[str] = (),
        after: str | Iterable[str] = (),
        formerly: Mapping[str, str] | None = None,
    ) -> Handle:
        """A volatile fact: part of the runtime-context snapshot that is appended when it changed.

        The arguments mean what they mean for a section.

        Raises:
            InvalidOrderError, InvalidNameError, InvalidTextError, DuplicateNameError.
        """
        return self._text("context", name, text, order, interpolate, False, tools, before, after, formerly)

    def _text(
        self,
        kind: str,
        name: str,
        text: Any,
        order: float,
        interpolate: bool,
        complete: bool,
        tools: Iterable[str],
        before: str | Iterable[str],
        after: str | Iterable[str],
        formerly: Mapping[str, str] | None,
    ) -> Handle:
        origin = self._origin
        checked_name(name, kind, origin)
        provider = text if callable(text) else None
        entry = TextEntry(
            kind=kind,
            name=name,
            order=checked_order(order, kind, name, origin),
            origin=origin,
            layer=self.scope.name,
            place=caller_place(3),
            provider=provider,
            interpolate=checked_flag(interpolate, "interpolate", kind, name),
            complete=checked_flag(complete, "complete", kind, name),
            tools=frozenset(_names(tools)),
            before=_names(before),
            after=_names(after),
            formerly=dict(formerly or {}),
        )
        if provider is not None:
            check_provider(provider, kind, name, origin)
        else:
            entry.fixed = as_text(text, kind, name, origin)
            entry.made(entry.fixed)
        return self._registry.file(self.scope, self._owner, f"{kind}s", entry)

    def suppress_runtime_context(self) -> Handle:
        """Leave out all contexts in this scope and below it, while the handle is not disposed (ASM-11)."""
        entry = SuppressorEntry(self._origin, self.scope.name, caller_place())
        return self._registry.file(self.scope, self._owner, "suppressors", entry)

    def tools(self, provider: ToolProvider) -> Handle:
        """Tool schemas: ``provider`` is a plain function of the `AssembleContext` that returns `ToolSchema` records.

        Return the same records while nothing changed: comparing them then costs nothing.

        Raises:
            InvalidTextError: the provider is no plain function.
        """
        origin = self._origin
        check_provider(provider, "tools", "tools", origin)
        entry = ToolEntry(provider, origin, self.scope.name, caller_place())
        return self._registry.file(self.scope, self._owner, "tools", entry)

    def variable(self, name: str, provider: VariableProvider, *, missing: Missing = "error") -> Handle:
        """A value that texts refer to as ``{{name}}``; ``provider`` returns a str, or None for "no value".

        Args:
            missing: what a reference without a value becomes: ``"error"``, ``"empty"`` text, or the reference as a
                ``"literal"``.

        Raises:
            InvalidVariableNameError, InvalidTextError, RegistrationError, DuplicateNameError.
        """
        origin = self._origin
        checked_variable_name(name, origin)
        if isinstance(provider, str):
            raise RegistrationError(
                f"Variable {name!r} needs a provider, not the text itself.",
                remedy=f"Write variable({name!r}, lambda context: {provider[:20]!r}).",
                kind="variable",
                entry=name,
            )
        check_provider(provider, "variable", name, origin)
        entry = VariableEntry(
            name=name,
            provider=provider,
            origin=origin,
            layer=self.scope.name,
            place=caller_place(),
            missing=checked_missing(missing, name),
            number=self._registry.next_serial(),
        )
        return self._registry.file(self.scope, self._owner, "variables", entry)

    @property
    def _origin(self) -> Origin:
        return self._owner.origin


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
