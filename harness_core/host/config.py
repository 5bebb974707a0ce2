"""Structuring configuration into attrs classes, strictly, with an error that gives the path of every bad value.

Nothing is converted behind the author's back: "5" is no int, True is no number, unknown keys are refused. Values of
secrets never reach a message: it gives the kind of a value, not the value.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

import attrs
import cattrs
from cattrs.cols import list_structure_factory, mapping_structure_factory
from cattrs.errors import BaseValidationError, ForbiddenExtraKeysError, StructureHandlerNotFoundError
from cattrs.gen import make_dict_structure_fn
from cattrs.strategies import configure_union_passthrough

from harness_core._text import nearest, quoted_list
from harness_core.errors import HarnessError
from harness_core.host.references import EnvText, concealed

__all__ = ["ConfigProblem", "config_converter", "structure_config"]

T = TypeVar("T")


@attrs.frozen
class ConfigProblem:
    """One value that does not fit: its path, such as ``retry.delays[2]``, and why."""

    path: str
    problem: str
    known: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path or 'the table itself'}: {self.problem}"


def _strict(kind: type) -> Any:
    def structure(value: object, _: object) -> object:
        if type(value) is EnvText:
            return _from_environment(value, kind)
        if type(value) is kind or (kind is float and type(value) is int):
            return kind(value)  # type: ignore[call-arg]
        raise TypeError(f"expected {_WORDS[kind]}, got {_kind_of(value)}")

    return structure


_TRUTH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def _from_environment(text: EnvText, kind: type) -> object:
    """A variable's text as the type that a field declares: an environment holds nothing but texts."""
    try:
        return _TRUTH[text.strip().lower()] if kind is bool else kind(str(text))
    except (KeyError, ValueError):
        raise TypeError(f"expected {_WORDS[kind]}, got another text from the variable {text.variable}") from None


def _is_list(kind: Any) -> bool:
    return kind is list or get_origin(kind) is list


def _list(kind: Any, converter: cattrs.BaseConverter) -> Any:
    """Lists from lists alone: a text would become a list of its characters."""
    structured = list_structure_factory(kind, converter)

    def structure(value: object, _: object) -> object:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"expected a list, got {_kind_of(value)}")
        return structured(value, kind)

    return structure


def _is_literal(kind: Any) -> bool:
    return get_origin(kind) is Literal


def _one_of(kind: Any, _: cattrs.BaseConverter) -> Any:
    """Of literals, what is right is said, and what was given is not."""
    choices = get_args(kind)

    def structure(value: object, _: object) -> object:
        for choice in choices:
            if value == choice and (type(value) is type(choice) or type(value) is EnvText):
                return choice
        raise TypeError(
            f"expected one of {quoted_list(choices)}, got {'another' if type(value) is str else _kind_of(value)}"
        )

    return structure


def _is_dict(kind: Any) -> bool:
    return (get_origin(kind) or kind) is dict


def _table(kind: Any, converter: cattrs.Converter) -> Any:
    """What is no table is refused before cattrs asks it for its items."""
    if attrs.has(kind):
        structured = make_dict_structure_fn(
            kind, converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=True
        )
    else:
        structured = mapping_structure_factory(kind, converter, structure_to=dict)

    def structure(value: object, _: object) -> object:
        if isinstance(value, kind if attrs.has(kind) else ()):
            return value
        if not isinstance(value, Mapping):
            raise TypeError(f"expected a table, got {_kind_of(value)}")
        return structured(dict(value), kind)

    return structure


_WORDS = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def _kind_of(value: object) -> str:
    words = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "a list", dict: "a table",
             EnvText: "a text from the environment"}  # fmt: skip
    return "nothing" if value is None else words.get(type(value), f"a {type(value).__name__}")


def config_converter() -> cattrs.Converter:
    """A converter for configuration: strict types, no unknown keys, all problems at once."""
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind in (str, int, float, bool):
        converter.register_structure_hook(kind, _strict(kind))
    converter.register_structure_hook_factory(_is_list, _list)
    converter.register_structure_hook_factory(attrs.has, _table)
    converter.register_structure_hook_factory(_is_dict, _table)
    converter.register_structure_hook_factory(_is_literal, _one_of)
    configure_union_passthrough(str | int | float | bool | None, converter)
    return converter


_converter = config_converter()


def structure_config(data: Mapping[str, Any], kind: type[T]) -> T | list[ConfigProblem]:
    """``data`` as an instance of ``kind``, or everything that is wrong with it."""
    if not isinstance(data, Mapping):  # a whole table may come from the environment, as a text
        return [ConfigProblem("", f"expected a table, got {_kind_of(data)}")]
    try:
        return _converter.structure(dict(data), kind)
    except (BaseValidationError, StructureHandlerNotFoundError, TypeError, ValueError, HarnessError) as error:
        return [attrs.evolve(each, problem=concealed(each.problem, data)) for each in _problems(error, "")]


def _problems(error: Any, path: str) -> list[ConfigProblem]:
    if isinstance(error, ForbiddenExtraKeysError):
        fields = tuple(field.name for field in attrs.fields(error.cl)) if attrs.has(error.cl) else ()
        return [ConfigProblem(_join(path, key), _unknown(key, fields), fields) for key in sorted(error.extra_fields)]
    if isinstance(error, BaseValidationError):
        return [problem for each in error.exceptions for problem in _problems(each, _place(each, path))]
    if isinstance(error, KeyError):
        return [ConfigProblem(_join(path, str(error.args[0])), "is missing and has no default")]
    if isinstance(error, StructureHandlerNotFoundError):
        return [ConfigProblem(path, f"the config class declares a type that no value can be given for ({error.type_})")]
    name = _validated_field(error)
    text = error.message if isinstance(error, HarnessError) else str(error.args[0] if error.args else "")
    return [ConfigProblem(_join(path, name) if name else path, text or type(error).__name__)]


def _validated_field(error: BaseException) -> str | None:
    """The field whose validator raised: attrs passes it to every validator, whatever the validator then says of it."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            if isinstance(value, attrs.Attribute):
                return value.name
    return None


def _unknown(key: str, fields: tuple[str, ...]) -> str:
    near = nearest(key, fields)
    if near is not None:
        return f"unknown key; did you mean {near!r}?"
    return f"unknown key; known: {', '.join(fields) or 'none'}"


def _place(error: BaseException, path: str) -> str:
    for note in getattr(error, "__notes__", ()):
        name = getattr(note, "name", None)  # cattrs' AttributeValidationNote
        if name is not None:
            return path if isinstance(error, KeyError) else _join(path, name)
        index = getattr(note, "index", None)  # and IterableValidationNote
        if index is not None:
            return f"{path}[{index}]" if isinstance(index, int) else _join(path, str(index))
    return path


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
