"""The fields of attrs classes as rows for people: type, default, and the text that stands below each in the source."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from harness_core.host.descriptions import descriptions

_IDS = re.compile(r"\s*\((?:[A-Z]+-?\d+(?: ff)?(?:, )?)+\)")
_WORDS = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "table", Any: "any value"}


@attrs.frozen
class Field:
    """One field: ``default`` is None where there is none, ``kind`` the class of the records that it holds, if any."""

    name: str
    type: str
    default: str | None
    text: str
    kind: type | None
    many: bool
    """Does it hold any number of these records, by name or in a list?"""


def prose(text: str | None) -> str:
    """A docstring, or a part of one, for readers who know no identifiers of the specification."""
    return _IDS.sub("", " ".join((text or "").split())).replace("``", "`")


def fields(kind: type) -> Iterator[Field]:
    """The fields of an attrs class, in its order."""
    hints, texts = get_type_hints(kind), descriptions(kind)
    for each in attrs.fields(kind):  # type: ignore[misc]
        if each.init:
            held, many = _held(hints[each.name])
            text = prose(texts.get(each.name))
            yield Field(each.name, type_words(hints[each.name]), _default(each.default), text, held, many)


def type_words(hint: Any) -> str:
    """A type in words, None left out: a field that may be absent says so by its default."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " or ".join(f"`{json.dumps(each)}`" for each in arguments if each is not None)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_words(each) for each in arguments if each is not types.NoneType))
    if origin in (list, tuple):
        return f"list of {_plural(type_words(arguments[0]))}"
    if origin is dict and arguments[1] is not Any:
        return f"table of {_plural(type_words(arguments[1]))}"
    return _WORDS.get(origin or hint) or f"`{hint.__name__}`"


def _plural(words: str) -> str:
    return words if words.startswith(("`", "any ", "list", "table")) else f"{words}s"


def _held(hint: Any) -> tuple[type | None, bool]:
    if attrs.has(hint):
        return hint, False
    for each in get_args(hint):
        held, many = _held(each)
        if held is not None:
            return held, many or get_origin(hint) in (list, tuple, dict)
    return None, False


def _default(value: Any) -> str | None:
    if value is attrs.NOTHING:
        return None
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]
        value = value.factory()
    if value is None or attrs.has(type(value)):
        return ""
    try:
        return f"`{json.dumps(value)}`" if value not in ([], {}, ()) else ""
    except TypeError:
        return ""
