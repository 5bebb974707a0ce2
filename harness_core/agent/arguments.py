"""The arguments of a tool call: from the text that the model wrote to a value, and whether it fits the tool's schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from harness_core._json import FrozenDict, JsonValue, freeze
from harness_core.errors import JsonValueError
from harness_core.models import ToolSchema

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["misfit", "parsed"]

_MENTIONED = 5
"""Problems named in one refusal: enough to repair a call, few enough to read."""
_LONGEST = 300
"""Characters of one problem; some repeat the whole value."""

_NO_ARGUMENTS = FrozenDict()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def parsed(text: str) -> JsonValue:
    """The object that the text spells; no text means no arguments. Anything else comes back as the text (TOOLX-01)."""
    if not text.strip():
        return _NO_ARGUMENTS
    try:
        value = _DECODER.decode(text)
        return freeze(value) if isinstance(value, dict) else text
    except (ValueError, RecursionError, JsonValueError):
        return text


def misfit(schema: ToolSchema, arguments: JsonValue) -> str | None:
    """What is wrong with the arguments, for the model to read; None when they fit."""
    if not isinstance(arguments, dict):
        return "The arguments are not a valid JSON object."
    quick = schema.encoded(_quick_check)
    if quick is not None and quick(arguments):
        return None
    problems = schema.encoded(_validator).iter_errors(arguments)
    named = [_spoken(problem) for problem, _ in zip(problems, range(_MENTIONED), strict=False)]
    return f"The arguments do not fit the tool's schema: {'; '.join(named)}." if named else None


def _spoken(problem: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem.absolute_path)
    message = str(problem.message)
    return f"{f'at {path[1:]}: ' if path else ''}{message if len(message) <= _LONGEST else message[:_LONGEST] + '…'}"


def _validator(schema: ToolSchema) -> Validator:
    # Imported here: it takes longer than all the rest of the package, and most programs start without calling a tool.
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    kind = validator_for(schema.parameters, default=Draft202012Validator)
    registry: Registry[Any] = Registry()  # of its own: a schema must not make anybody fetch something
    made: Validator = kind(schema.parameters, registry=registry)
    return made


# --- the common case --------------------------------------------------------------------------------------------------

_KINDS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: type(value) is str,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) is int or type(value) is float,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_WORDS_ONLY = frozenset({"type", "title", "description", "default", "examples"})
_OBJECT_WORDS = _WORDS_ONLY | {"properties", "required", "additionalProperties"}


def _quick_check(schema: ToolSchema) -> Callable[[dict[str, Any]], bool] | None:
    """For a flat schema, as nearly all are, a check whose yes is final; its no says nothing, and the validator speaks.

    None where the schema has more in it than names and plain types.
    """
    parameters = schema.parameters
    if not parameters:
        return lambda arguments: True
    properties, required = parameters.get("properties", {}), parameters.get("required", [])
    closed = parameters.get("additionalProperties", True)
    flat = (
        parameters.keys() <= _OBJECT_WORDS
        and parameters.get("type", "object") == "object"
        and isinstance(properties, dict)
        and isinstance(required, list)
        and isinstance(closed, bool)
        and all(isinstance(each, dict) and each.keys() <= _WORDS_ONLY for each in properties.values())
        and all(each.get("type") is None or _is_kind(each["type"]) for each in properties.values())
    )
    if not flat:
        return None
    checks = {name: _KINDS[each["type"]] if "type" in each else _anything for name, each in properties.items()}
    needed = frozenset(required)
    other = _nothing if closed is False else _anything

    def fits(arguments: dict[str, Any]) -> bool:
        return needed <= arguments.keys() and all(checks.get(name, other)(value) for name, value in arguments.items())

    return fits


def _is_kind(value: object) -> bool:
    return isinstance(value, str) and value in _KINDS


def _anything(value: object) -> bool:
    return True


def _nothing(value: object) -> bool:
    return False
