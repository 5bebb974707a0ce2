"""The lists of an assembly: ordinary lists that refuse foreign elements and remember who changed them.

The check runs where the change is made, so that the traceback shows the listener's own line; remembering costs only
those who change something. Reading a lane is reading a list.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from types import CodeType
from typing import Any, ClassVar, Self, SupportsIndex

from harness_core.errors import AssemblyContentError

__all__ = ["VARIABLE_NAME", "Edit", "Lane", "VariableMap", "author_of", "writer_of"]

VARIABLE_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
"""What a reference can spell; always used with ``fullmatch`` (REG-08)."""

_FRAMES_REMEMBERED = 12
"""Enough to reach a listener through a few helper functions of its own."""


class Edit:
    """One change of a lane: what went in, what went out, and the code that was running, innermost first."""

    __slots__ = ("added", "removed", "stack")

    def __init__(self, added: tuple[Any, ...], depth: int, removed: tuple[Any, ...] = ()) -> None:
        self.added = added
        self.removed = removed
        stack: list[tuple[CodeType, int]] = []
        frame = sys._getframe(depth)
        while frame is not None and len(stack) < _FRAMES_REMEMBERED:
            stack.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back  # type: ignore[assignment]
        self.stack = tuple(stack)


class Lane(list[Any]):
    """A list of records of one kind. The plain constructor trusts its items: it is the registry's own way in."""

    __slots__ = ("_edits",)
    kind: ClassVar[type]
    _edits: list[Edit]

    @classmethod
    def of(cls, items: Iterable[Any]) -> Self:
        """A lane made by whoever is calling (a listener, say), checked."""
        if type(items) is cls:
            return items
        lane = cls(items)
        lane._note(tuple(lane))
        return lane

    @property
    def edits(self) -> list[Edit]:
        """All changes so far, oldest first; empty for a lane that nobody touched."""
        return getattr(self, "_edits", [])

    def _note(self, added: tuple[Any, ...], removed: tuple[Any, ...] = ()) -> None:
        kind = self.kind
        for item in added:
            if not isinstance(item, kind):
                raise AssemblyContentError(
                    f"A {type(item).__name__} was put among the {kind.__name__} records of an assembly.",
                    remedy=f"Put in {kind.__name__} records only.",
                    kind=kind.__name__,
                )
        edit = Edit(added, 3, removed)
        try:
            self._edits.append(edit)
        except AttributeError:
            self._edits = [edit]

    def _at(self, index: Any) -> tuple[Any, ...]:
        """What stands there; nothing where the list will refuse the index."""
        try:
            found = self[index]
        except (IndexError, TypeError):
            return ()
        return tuple(found) if isinstance(index, slice) else (found,)

    def append(self, item: Any) -> None:
        self._note((item,))
        super().append(item)

    def insert(self, index: SupportsIndex, item: Any) -> None:
        self._note((item,))
        super().insert(index, item)

    def extend(self, items: Iterable[Any]) -> None:
        added = tuple(items)
        self._note(added)
        super().extend(added)

    def __iadd__(self, items: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(items)
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        added = tuple(value) if isinstance(index, slice) else (value,)
        self._note(added, self._at(index))
        super().__setitem__(index, added if isinstance(index, slice) else value)

    def __delitem__(self, index: Any) -> None:
        self._note((), self._at(index))
        super().__delitem__(index)

    def __imul__(self, times: SupportsIndex) -> Self:
        self._note(tuple(self))
        return super().__imul__(times)

    def pop(self, index: SupportsIndex = -1) -> Any:
        self._note((), self._at(index))
        return super().pop(index)

    def remove(self, item: Any) -> None:
        self._note((), (item,))
        super().remove(item)

    def clear(self) -> None:
        self._note((), tuple(self))
        super().clear()

    def sort(self, **options: Any) -> None:
        self._note(())
        super().sort(**options)

    def reverse(self) -> None:
        self._note(())
        super().reverse()

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))


def writer_of(lane: object, record: object, listeners: Iterable[Any]) -> Any:
    """The listener whose code put ``record`` into the lane, if one did."""
    if isinstance(lane, Lane):
        for edit in reversed(lane.edits):
            if any(added is record for added in edit.added):
                author = author_of(edit, listeners)
                return author[0] if author is not None else None
    return None


def author_of(edit: Edit, listeners: Iterable[Any]) -> tuple[Any, int] | None:
    """The listener whose code made the change, and the line of it that was running; None where it was none of them."""
    by_code = {getattr(listener.function, "__code__", None): listener for listener in listeners}
    return next(((by_code[code], line) for code, line in edit.stack if code in by_code), None)


class VariableMap(dict[str, Any]):
    """The variables of an assembly: legal names to text, or to None for "no value"; checked where they are set."""

    __slots__ = ("_edits",)
    _edits: dict[str, Edit]

    @property
    def edits(self) -> dict[str, Edit]:
        """The last change of each name that was changed; empty for a map that nobody touched."""
        return getattr(self, "_edits", {})

    def _note(self, name: str) -> None:
        edit = Edit((name,), 3)
        try:
            self._edits[name] = edit
        except AttributeError:
            self._edits = {name: edit}

    @classmethod
    def of(cls, values: object) -> VariableMap:
        """A checked map made by whoever is calling."""
        if type(values) is cls:
            return values
        if not isinstance(values, Mapping):
            raise AssemblyContentError(f"The variables of an assembly are a dict, not {type(values).__name__}.")
        made = cls()
        made.update(values)
        return made

    def __setitem__(self, name: str, value: str | None) -> None:
        if not isinstance(name, str) or VARIABLE_NAME.fullmatch(name) is None:
            raise AssemblyContentError(
                f"{name!r} is no variable name: it takes a lower-case letter, then lower-case letters, digits, underscores.",
                kind="variable",
                entry=str(name),
            )
        if value is not None and not isinstance(value, str):
            raise AssemblyContentError(
                f"Variable {name!r} was set to a {type(value).__name__}; variables hold a str, or None for no value.",
                remedy="Convert the value to str.",
                kind="variable",
                entry=name,
            )
        self._note(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        self._note(name)
        super().__delitem__(name)

    def pop(self, name: str, *default: Any) -> Any:
        self._note(name)
        return super().pop(name, *default)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, other: Any) -> VariableMap:  # type: ignore[misc,override]
        self.update(other)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (dict(self),))
