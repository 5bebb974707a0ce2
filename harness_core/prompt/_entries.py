"""Registration entries: what the registry keeps for each contribution, frozen at registration (X-03).

An entry owns the last record that was made from it, so that a record keeps its identity while nothing changes, in
whatever view or scope it is seen.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal as OneOf, TypeAlias

import attrs

from harness_core._text import quoted
from harness_core.errors import (
    InvalidNameError,
    InvalidOrderError,
    InvalidTextError,
    InvalidVariableNameError,
    ProviderContractError,
    RegistrationError,
)
from harness_core.prompt._lanes import VARIABLE_NAME
from harness_core.prompt.records import (
    ASYNC_REMEDY,
    AssembleContext,
    ContextEntry,
    Section,
    Text,
    ToolProvider,
    VariableProvider,
    as_text,
    origin_facts,
)
from harness_core.scopes import Origin

__all__ = ["Missing", "SuppressorEntry", "TextEntry", "ToolEntry", "VariableEntry", "caller_place", "check_provider"]

Missing: TypeAlias = OneOf["error", "empty", "literal"]

Place: TypeAlias = tuple[str, int] | None


def caller_place(depth: int = 2) -> Place:
    """File and line of whoever registers, ``depth`` frames up."""
    frame = sys._getframe(depth)
    return (frame.f_code.co_filename, frame.f_lineno)


def checked_order(order: object, kind: str, name: str, origin: Origin) -> float:
    """The order, if it is a finite int or float (REG-04).

    Raises:
        InvalidOrderError: anything else, bool included.
    """
    if type(order) is int or type(order) is float:
        try:
            if math.isfinite(order):
                return order
        except OverflowError:
            pass  # an int beyond what a float holds: no order either
    raise InvalidOrderError(
        f"The order of {kind} {quoted(name)} must be a finite int or float, not {order!r:.60} ({type(order).__name__}); "
        f"registered by {origin}.",
        remedy="Small numbers such as 100 are enough; negative and fractional ones are fine.",
        kind=kind,
        entry=name,
        **origin_facts(origin),
    )


def checked_name(name: object, kind: str, origin: Origin) -> str:
    """The name, if it is a non-empty str (X-01).

    Raises:
        InvalidNameError: anything else.
    """
    if isinstance(name, str) and name:
        return name
    raise InvalidNameError(
        f"A {kind} needs a non-empty str as its name, not {name!r:.60} ({type(name).__name__}); registered by {origin}.",
        kind=kind,
        entry=str(name),
        **origin_facts(origin),
    )


def checked_variable_name(name: object, origin: Origin) -> str:
    """The name, if a reference can spell it (REG-08).

    Raises:
        InvalidVariableNameError: anything else.
    """
    if isinstance(name, str) and VARIABLE_NAME.fullmatch(name):
        return name
    raise InvalidVariableNameError(
        f"{name!r:.60} is no variable name; registered by {origin}.",
        remedy="A name is one lower-case ASCII letter, then lower-case ASCII letters, digits and underscores.",
        kind="variable",
        entry=str(name),
        **origin_facts(origin),
    )


def check_provider(provider: object, kind: str, name: str, origin: Origin) -> None:
    """Refuse what cannot be a provider (D4).

    Raises:
        InvalidTextError: not callable, or a coroutine function or (async) generator function.
    """
    target: Any = provider
    while isinstance(target, functools.partial):
        target = target.func
    if not inspect.isroutine(target):
        target = getattr(target, "__call__", target)  # noqa: B004
    waits = inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target)
    if callable(provider) and not waits and not inspect.isgeneratorfunction(target):
        return
    sort = "coroutine function" if waits else "generator function" if callable(provider) else type(provider).__name__
    raise InvalidTextError(
        f"The provider of {kind} {quoted(name)} is a {sort}; it must be a plain function of the AssembleContext. "
        f"Registered by {origin}.",
        remedy=ASYNC_REMEDY if waits else "Pass a function that returns the value.",
        kind=kind,
        entry=name,
        **origin_facts(origin),
    )


def note_provider(error: BaseException, kind: str, name: str, origin: Origin, layer: str) -> None:
    """Say on a provider's exception whose it was (UC-26, X-05)."""
    error.add_note(f"raised by the provider of {kind} {quoted(name)} of {origin}, layer {layer!r}")


@attrs.define(eq=False)
class TextEntry:
    """A registered section or context."""

    kind: str
    name: str
    order: float
    origin: Origin
    layer: str
    place: Place
    provider: Callable[[AssembleContext], Any] | None
    interpolate: bool = True
    complete: bool = False
    tools: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    formerly: Mapping[str, str] = attrs.field(factory=dict)
    """Its earlier names, each with the version of the distribution that no longer knows it."""
    fixed: Text = ""
    """The text of an entry without a provider."""
    record: Section | ContextEntry | None = None
    """The last record that was made."""
    noticed: set[str] = attrs.field(factory=set)
    """Earlier names that were told of already: those that it uses, and those that a composition uses for it."""

    def made(self, text: Text) -> Section | ContextEntry:
        """The record of this entry with that text; the last one where the text is the same."""
        record = self.record
        if record is None or record.text != text:
            kind = Section if self.kind == "section" else ContextEntry
            record = kind(self.name, text, order=self.order, interpolate=self.interpolate, origin=self.origin)
            self.record = record
        return record

    def settled(self, value: object) -> Text:
        """What a provider returned, as a text.

        Raises:
            ProviderContractError: it is none (X-11).
        """
        return as_text(value, self.kind, self.name, self.origin, ProviderContractError)


@attrs.define(eq=False)
class VariableEntry:
    """A registered variable."""

    name: str
    provider: VariableProvider
    origin: Origin
    layer: str
    place: Place
    missing: Missing
    number: int
    """The registration's serial number: iteration is live, in this order (ASM-05)."""
    kind: str = "variable"

    def settled(self, value: object) -> str | None:
        """What stands for a value that is not exactly a str.

        Raises:
            ProviderContractError: neither str nor None (X-04).
        """
        if value is None:
            return None if self.missing == "error" else "" if self.missing == "empty" else f"{{{{{self.name}}}}}"
        if isinstance(value, str):
            return str(value)
        waits = inspect.isawaitable(value)
        if inspect.iscoroutine(value):
            value.close()
        raise ProviderContractError(
            f"Variable {self.name!r} of {self.origin}, layer {self.layer!r}, got a {type(value).__name__}; a variable is a "
            "str, or None for no value.",
            remedy=ASYNC_REMEDY if waits else "Convert the value to str.",
            kind="variable",
            entry=self.name,
            layer=self.layer,
            **origin_facts(self.origin),
        )


@attrs.define(eq=False)
class ToolEntry:
    """A registered tool-schema provider; it has no name of its own, and never shadows another (SCOPE-15)."""

    provider: ToolProvider
    origin: Origin
    layer: str
    place: Place
    kind: str = "tools"
    name: str = "tools"


@attrs.define(eq=False)
class SuppressorEntry:
    """A token that suppresses all contexts of a scope and those below it (ASM-11)."""

    origin: Origin
    layer: str
    place: Place
    kind: str = "suppressor"
    name: str = "runtime context"


def checked_missing(missing: object, name: str) -> Missing:
    """The policy for a variable without a value.

    Raises:
        RegistrationError: it is none of the three.
    """
    if missing in ("error", "empty", "literal"):
        return missing
    raise RegistrationError(
        f"missing={missing!r} of variable {name!r} must be 'error', 'empty' or 'literal'.", kind="variable", entry=name
    )


def checked_flag(value: object, flag: str, kind: str, name: str) -> bool:
    """A flag, if it is a bool (ASM-13).

    Raises:
        RegistrationError: anything else.
    """
    if isinstance(value, bool):
        return value
    raise RegistrationError(
        f"{flag} of {kind} {quoted(name)} must be True or False, not {value!r:.60}.", kind=kind, entry=name
    )
