"""Lossless JSON values: freezing, canonical text, and the immutable containers that hold them.

Owns the rule of what counts as JSON here (D14, LOG-02, X-12). A frozen value is safe to share between the registry,
listeners, headers and the log; an attempt to change one raises and says what to do instead.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeAlias, cast

from harness_core.errors import JsonValueError

__all__ = [
    "MAX_DEPTH",
    "FrozenDict",
    "FrozenList",
    "JsonObject",
    "JsonValue",
    "canonical",
    "freeze",
    "freeze_object",
    "thaw",
]

JsonValue: TypeAlias = Any
JsonObject: TypeAlias = Mapping[str, Any]

MAX_DEPTH = 200
"""Nesting that is still accepted: JSON readers and writers recurse, and share the interpreter's limit of 1000 frames."""

_REMEDY = "Frozen records are shared: build a changed copy (attrs.evolve, or a with_... method) and put it in the old one's place."


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(f"this {type(self).__name__} cannot be changed. {_REMEDY}")


class FrozenDict(dict[str, Any]):
    """A JSON object that cannot be changed; compares and serialises like the dict it is."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (dict(self),))

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return cast("dict[str, Any]", thaw(self))

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(canonical(self))


class FrozenList(list[Any]):
    """A JSON array that cannot be changed; compares and serialises like the list it is."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = _refuse
    insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return cast("list[Any]", thaw(self))

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(canonical(self))


def freeze(value: JsonValue, *, what: str = "value", path: str = "$") -> JsonValue:
    """A deeply immutable copy of a JSON value; what is frozen already is returned as it is.

    Raises:
        JsonValueError: the value holds something that JSON cannot carry without loss; ``entry`` is its path.
    """
    return _freeze(value, what, path, 0)


def freeze_object(value: object, *, what: str = "value") -> FrozenDict:
    """Like `freeze`, for a value that must be an object."""
    if not isinstance(value, Mapping):
        raise JsonValueError(f"{what} must be a JSON object, not {type(value).__name__}.", entry="$")
    return cast("FrozenDict", freeze(value if isinstance(value, dict) else dict(value), what=what))


def _freeze(value: Any, what: str, path: str, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        if not value.isascii():
            _check_text(value, what, path)
        return value
    if value is None or kind is bool or kind is int or kind is FrozenDict or kind is FrozenList:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise JsonValueError(f"{what} holds {value!r} at {path}, which JSON has no way to write.", entry=path)
        return value
    if depth >= MAX_DEPTH:
        raise JsonValueError(f"{what} is nested deeper than {MAX_DEPTH} levels (or contains itself).", entry=path[:200])
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                raise JsonValueError(
                    f"{what} has the key {key!r} of type {type(key).__name__} at {path}; JSON keys are strings.",
                    entry=path,
                )
            if not key.isascii():
                _check_text(key, what, path)
        return FrozenDict({key: _freeze(item, what, f"{path}.{key}", depth + 1) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([_freeze(item, what, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)])
    raise JsonValueError(
        f"{what} holds a {kind.__name__} at {path}; only dict, list, str, int, float, bool and None are JSON.",
        entry=path,
    )


def _check_text(text: str, what: str, path: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise JsonValueError(
            f"{what} holds a lone surrogate at {path} (character {error.start}), which UTF-8 cannot carry.", entry=path
        ) from None


def thaw(value: JsonValue) -> JsonValue:
    """A plain, mutable copy of a JSON value."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in cast("Iterable[Any]", value)]
    return value


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def canonical(value: JsonValue) -> str:
    """The one text of a JSON value: no spaces, keys in their own order, which is part of the value (HDR-02)."""
    return _encoder.encode(value)
