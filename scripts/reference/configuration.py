"""The page of all settings: the composition file's, and those of every plugin that comes with the framework."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from harness_core.host.composition import Composition
from harness_core.host.discovery import PluginSource, discover
from reference.codes import plugin_packages
from reference.fields import Field, fields, prose

INTRODUCTION = """\
# Configuration

This page is written by `python scripts/write_reference.py`, from the classes that the settings are read into.

[The composition file](composition.md) says how the file is found and read. Unknown keys and wrong types are refused,
with the line and the path of every bad value; only what comes from the environment is converted to the type of its key.

## harness.toml
"""


def page() -> str:
    parts = [INTRODUCTION, *_tables(Composition, "")]
    for source in _sources():
        kind = getattr(source.load(), "Config", None)
        parts.append(f"## {source.name}\n")
        offered = f"A plugin of the distribution `{source.distribution}`"
        if kind is None:
            parts.append(f"{offered}. It has no settings.\n")
        else:
            parts.append(f"{offered}. {prose(inspect.getdoc(kind))}\n")
            parts += _tables(kind, f"plugins.{source.name}.config")
    return "\n".join(parts)


def _sources() -> list[PluginSource]:
    packages = plugin_packages()
    return [each for each in discover() if str(each.entry_point).partition(":")[0].partition(".")[0] in packages]


def _tables(kind: type, path: str) -> Iterator[str]:
    """The table of a class, then those of the tables in it."""
    found = list(fields(kind))
    rows = [_row(field) for field in found if field.kind is None]
    if path:
        yield f"### [{path}]\n"
    if rows:
        yield "\n".join(["| key | type | default | |", "|---|---|---|---|", *rows, ""])
    for field in found:
        if field.kind is not None:
            below = f"{path}.{field.name}" if path else field.name
            yield from _tables(field.kind, f"{below}.NAME" if field.many else below)


def _row(field: Field) -> str:
    default = "**required**" if field.default is None else field.default
    return f"| `{field.name}` | {field.type} | {default} | {field.text} |"
