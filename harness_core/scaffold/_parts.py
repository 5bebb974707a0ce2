"""The record that a lane or hook is made into: what it brings to a new plugin's source, settings, tests and README.

Code in a part has the layout that a formatter would give it, for names of every valid length: names stand in constants,
and the lines below them do not grow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import TypeAlias

import attrs

from harness_core.scaffold.choices import Choices

__all__ = ["Imports", "Key", "MakePart", "Part", "own", "WIDTH", "test_head", "topic_key", "value"]

WIDTH = 120
"""Columns of a line of code."""

Imports: TypeAlias = Mapping[str, tuple[str, ...]]
"""Module to names; no names for the module itself."""


@attrs.frozen(kw_only=True)
class Key:
    """A value that is a setting where the plugin has a configuration, and a constant where it has none.

    ``default`` is Python source, ``toml`` the same for a composition file. ``field`` replaces the default in a
    configuration, where it must be made anew for each.
    """

    name: str
    kind: str
    default: str
    doc: str
    toml: str
    field: str | None = None


def _code(text: str) -> str:
    return dedent(text).strip("\n")


@attrs.frozen(kw_only=True)
class Part:
    """One lane or hook; empty texts are left out. ``row`` is what the README says: name, order, what it does."""

    row: tuple[str, str, str]
    imports: Imports
    keys: tuple[Key, ...] = ()
    constants: str = attrs.field(default="", converter=_code)
    state: str = ""
    setup: str = attrs.field(default="", converter=_code)
    methods: str = attrs.field(default="", converter=_code)
    test_imports: Imports
    tests: str = attrs.field(converter=_code)


MakePart: TypeAlias = Callable[[Choices], Part]


def test_head(name: str, *arguments: str) -> str:
    """The first line of a test, or as many as it takes."""
    line = f"async def {name}({', '.join(arguments)}) -> None:"
    return line if len(line) <= WIDTH else f"async def {name}(\n    {', '.join(arguments)}\n) -> None:"


def value(choices: Choices, key: str) -> str:
    """How the set-up refers to a key."""
    return f"config.{key}" if choices.config else key.upper()


def own(choices: Choices, key: str) -> str:
    """How the plugin's other methods refer to a key."""
    return f"self._config.{key}" if choices.config else key.upper()


def topic_key(choices: Choices) -> Key:
    """What the plugin is about; several lanes share it."""
    return Key(
        name="topic",
        kind="str",
        default=f'"{choices.words}"',
        doc="What the plugin is about, in the words that the model reads.",
        toml=f'"{choices.words}"',
    )
