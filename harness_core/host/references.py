"""Environment values in a composition: ``{ "$env" = "NAME" }``, explicit, and resolved only where the value is needed.

A resolved value remembers its variable, so that it can be converted to the type that a field declares and is never
shown: messages name the variable instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from harness_core.errors import CompositionError, HarnessError

__all__ = ["DEFAULT_KEY", "ENV_KEY", "EnvText", "conceal", "concealed", "is_reference", "resolve"]

ENV_KEY = "$env"
DEFAULT_KEY = "default"


class EnvText(str):
    """A text that came from the environment variable ``variable``."""

    __slots__ = ("variable",)
    variable: str

    def __new__(cls, value: str, variable: str) -> EnvText:
        made = super().__new__(cls, value)
        made.variable = variable
        return made

    def __repr__(self) -> str:
        return f"<${self.variable}>"


def is_reference(value: object) -> bool:
    """Is it a table that stands for an environment variable?"""
    return isinstance(value, Mapping) and ENV_KEY in value


def resolve(value: Any, path: str = "", environment: Mapping[str, str] | None = None) -> Any:
    """``value`` with each reference in it replaced; ``path`` is where it stands, for errors.

    Raises:
        CompositionError: a reference is malformed, or its variable is not set and there is no default.
    """
    environment = os.environ if environment is None else environment
    if is_reference(value):
        return _looked_up(value, path, environment)
    if isinstance(value, Mapping):
        return {key: resolve(each, f"{path}.{key}" if path else str(key), environment) for key, each in value.items()}
    if isinstance(value, list):
        return [resolve(each, f"{path}[{index}]", environment) for index, each in enumerate(value)]
    return value


def _looked_up(reference: Mapping[str, Any], path: str, environment: Mapping[str, str]) -> Any:
    variable = reference[ENV_KEY]
    extra = sorted(set(reference) - {ENV_KEY, DEFAULT_KEY})
    if extra or not isinstance(variable, str) or not variable:
        problem = f"unknown key {extra[0]!r}" if extra else "the variable's name is no string, or empty"
        raise CompositionError(
            f"{path}: this reference to the environment is malformed: {problem}.",
            remedy=f'Write {{ "{ENV_KEY}" = "NAME" }}, or {{ "{ENV_KEY}" = "NAME", {DEFAULT_KEY} = ... }}.',
            entry=path,
            names=extra,
            known=(ENV_KEY, DEFAULT_KEY),
        )
    found = environment.get(variable)
    if found is not None:
        return EnvText(found, variable)
    if DEFAULT_KEY in reference:
        return reference[DEFAULT_KEY]
    raise CompositionError(
        f"{path}: the environment variable {variable} is not set.",
        remedy=f"Set it, or give the reference a {DEFAULT_KEY}.",
        entry=path,
        names=[variable],
    )


def _values(value: Any) -> Iterator[EnvText]:
    if isinstance(value, EnvText):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _values(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _values(each)


def concealed(text: str, *configs: Any) -> str:
    """``text`` without the values that ``configs`` took from the environment: what a validator says may quote them."""
    for value in sorted({each for config in configs for each in _values(config)}, key=len, reverse=True):
        # As it is, and as messages quote it.
        for spelled in (str(value), repr(str(value))[1:-1], json.dumps(str(value))[1:-1]):
            if spelled:
                text = text.replace(spelled, f"${value.variable}")
    return text


def conceal(error: HarnessError, *configs: Any) -> None:
    """Take such values out of all that an error says, and with them a cause that quotes one."""
    error.args = (concealed(error.message, *configs), *error.args[1:])
    for name, value in vars(error).items():
        if isinstance(value, str):
            setattr(error, name, concealed(value, *configs))
        elif isinstance(value, (tuple, list)) and all(isinstance(each, str) for each in value):
            setattr(error, name, type(value)(concealed(each, *configs) for each in value))
    cause = error.__cause__ or error.__context__
    while cause is not None:
        told = [str(cause), repr(cause), *getattr(cause, "__notes__", ())]
        if any(concealed(each, *configs) != each for each in told):
            error.__cause__, error.__suppress_context__ = None, True
            return
        cause = cause.__cause__ or cause.__context__
