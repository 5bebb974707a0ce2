"""The documents that a composition is made of: a TOML file, the files and presets that it extends, and who says what.

Merging is by table: what is nearer to the composition's own file replaces what is farther, value by value; lists are
replaced whole. Knows TOML and places, and nothing of what the tables mean.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from harness_core._text import nearest, quoted_list
from harness_core.errors import CompositionError, PluginLoadError
from harness_core.host.discovery import PluginSource, discover
from harness_core.host.references import is_reference

__all__ = ["PRESET_GROUP", "Document", "Documents", "Place", "collect", "leaves"]

PRESET_GROUP = "harness.presets"
"""Entry points that name a preset: a mapping, or the path of a TOML file."""

Find = Callable[[str], list[PluginSource]]


@attrs.frozen
class Place:
    """Where something is said: a file or preset, and the line where that is known."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@attrs.frozen
class Document:
    """One file or preset. ``text`` is empty where there is no TOML text; ``folder`` is what paths in it start from."""

    source: str
    data: Mapping[str, Any] = attrs.field(repr=False)
    text: str = attrs.field(default="", repr=False)
    folder: Path | None = None
    file: Path | None = None

    def place(self, path: str) -> Place:
        """Where it says something about a table path."""
        return Place(self.source, line_of(self.text, path) if self.text else None)


@attrs.frozen
class Documents:
    """All documents of a composition, the farthest first, the composition's own last."""

    all: tuple[Document, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(document.file for document in self.all if document.file is not None)

    def merged(self) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for document in self.all:
            result = _merged(result, document.data)
        return result

    def place(self, path: str) -> Place:
        """Where a value, or the table that it would stand in, comes from."""
        keys = path
        while True:
            for document in reversed(self.all):
                if _has(document.data, keys):
                    return document.place(path)
            if not keys:
                return Place(self.all[-1].source)
            keys = _shorter(keys)

    def values(self) -> Iterator[tuple[str, Any, Place]]:
        """Each effective value with its path and its place."""
        for path, value in leaves(self.merged(), ""):
            yield path, value, self.place(path)


def collect(path: Path, find: Find = discover) -> Documents:
    """The documents of the composition in a file.

    Raises:
        CompositionError: one cannot be read or is no TOML, a preset is not installed, or they extend each other.
    """
    return Documents(tuple(_with_bases(read_document(path), (), find)))


def read_document(path: Path) -> Document:
    """One TOML file; of a pyproject.toml its ``[tool.harness]`` table.

    Raises:
        CompositionError: it cannot be read, or is no TOML.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise CompositionError(
            f"{path} cannot be read: {reason}.", remedy="Name a TOML file that can be.", file=str(path)
        ) from None
    try:
        data: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        raise CompositionError(
            f"{path} is no valid TOML: {error}.",
            remedy="Correct the line.",
            file=str(path),
            line=int(found[1]) if found else None,
        ) from None
    except RecursionError:
        raise CompositionError(f"{path} nests its values too deeply.", file=str(path)) from None
    if path.name == "pyproject.toml":
        tool = data.get("tool", {})
        data = tool.get("harness", {}) if isinstance(tool, dict) else {}
        if not isinstance(data, dict):
            raise CompositionError(
                f"{path}: tool.harness is no table.",
                remedy="Write [tool.harness].",
                file=str(path),
                entry="tool.harness",
            )
    return Document(str(path), data, text, path.parent, path)


def _with_bases(document: Document, chain: tuple[str, ...], find: Find) -> Iterator[Document]:
    if document.source in chain:
        circle = " -> ".join([*chain[chain.index(document.source) :], document.source])
        raise CompositionError(
            f"These compositions extend each other: {circle}.",
            remedy="Remove one of the extends.",
            file=chain[-1],
            entry="extends",
        )
    extends = document.data.get("extends", [])
    names = [extends] if isinstance(extends, str) else extends
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        return (yield from _refuse_extends(document))
    for name in names:
        base = _file_base(document, name) if name.endswith(".toml") else _preset(document, name, find)
        yield from _with_bases(base, (*chain, document.source), find)
    yield document


def _refuse_extends(document: Document) -> Iterator[Document]:
    place = document.place("extends")
    raise CompositionError(
        f"{place}: extends must be a string or a list of strings.",
        remedy="Name files that end in .toml, or installed presets.",
        file=place.source,
        line=place.line,
        entry="extends",
    )


def _file_base(document: Document, name: str) -> Document:
    place = document.place("extends")
    if document.folder is None:
        raise CompositionError(
            f"{place}: a preset that is no file cannot extend the file {name!r}.",
            remedy="Extend another preset by its name.",
            file=place.source,
            entry="extends",
        )
    path = Path(name).expanduser()
    path = path if path.is_absolute() else document.folder / path
    if not path.is_file():
        raise CompositionError(
            f"{place}: there is no file {path}, which it extends.",
            remedy="Correct the path; it is relative to the file that names it.",
            file=place.source,
            line=place.line,
            entry="extends",
            names=[name],
        )
    # One spelling for each file, so that a circle is seen.
    return read_document(Path(*path.parts) if ".." not in path.parts else path.resolve())


def _preset(document: Document, name: str, find: Find) -> Document:
    offered = {source.name: source for source in find(PRESET_GROUP)}
    source = offered.get(name)
    place = document.place("extends")
    if source is None:
        near = nearest(name, offered)
        raise CompositionError(
            f"{place}: no installed distribution offers a preset called {name!r}.",
            remedy=f"Did you mean {near!r}?"
            if near
            else f"Known presets: {quoted_list(offered)}. A file ends in .toml.",
            file=place.source,
            line=place.line,
            entry="extends",
            names=[name],
            known=offered,
        )
    made = _imported(source, place)
    label = f"preset {name!r} ({source.distribution} {source.version})"
    if isinstance(made, Mapping):
        return Document(label, made)
    if isinstance(made, (str, Path)) or hasattr(made, "read_text"):
        file = Path(str(made))
        return attrs.evolve(read_document(file), source=f"{label} {file}")
    raise CompositionError(
        f"{label} is a {type(made).__name__}; a preset is a mapping, or the path of a TOML file.",
        remedy=f"Repair the distribution {source.distribution!r}, or do not extend it.",
        entry="extends",
        file=place.source,
        line=place.line,
        **source.facts(),
    )


def _imported(source: PluginSource, place: Place) -> Any:
    try:
        return source.imported()
    except PluginLoadError as error:
        raise CompositionError(
            f"{place}: the preset {source.name!r} cannot be had: {error.message}",
            remedy=error.remedy,
            entry="extends",
            file=place.source,
            line=place.line,
            **source.facts(),
        ) from error


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        mine: Any = result.get(key)
        # A reference to the environment is one value, not a table to be mixed with another.
        tables = isinstance(mine, Mapping) and isinstance(value, Mapping)
        result[key] = _merged(mine, value) if tables and not is_reference(mine) and not is_reference(value) else value
    return result


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value in nested tables, with its path; a reference to the environment, a list and an empty table are values."""
    if isinstance(value, Mapping) and value and not is_reference(value):
        for key, each in value.items():
            yield from leaves(each, f"{path}.{key}" if path else key)
    else:
        yield path, value


def _shorter(path: str) -> str:
    cut = max(path.rfind("."), path.rfind("["))
    return path[:cut] if cut > 0 else ""


def _has(data: Any, path: str) -> bool:
    """Does a table hold a path? Keys may have dots in them themselves."""
    if not path:
        return False
    if not isinstance(data, Mapping):
        return False
    if path in data:
        return True
    return any(path.startswith(f"{key}.") and _has(value, path[len(key) + 1 :]) for key, value in data.items())


def line_of(text: str, path: str) -> int | None:
    """The line that sets the key at the end of a table path, or that begins the nearest table around it.

    tomllib keeps no lines; headers and keys are found here well enough for messages.
    """
    wanted = re.sub(r"\[\d+\]", "", path)
    table = ""
    around: tuple[int, int] | None = None
    below: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\[?\s*(.+?)\s*\]\]?\s*(#.*)?$", line)
        if header:
            table = _spelled(header[1])
            table = re.sub(r"^tool\.harness\.?", "", table)
            here = table
        else:
            key = re.match(
                r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*=",
                line,
            )
            if not key:
                continue
            here = ".".join(part for part in (table, _spelled(key[1])) if part)
        if here == wanted:
            return number
        if here and wanted.startswith(f"{here}.") and (around is None or len(here) >= around[0]):
            around = (len(here), number)
        if below is None and here.startswith(f"{wanted}."):
            below = number
    if below is not None:
        return below  # a table that only its parts are written of
    return around[1] if around is not None else None


def _spelled(header: str) -> str:
    """A dotted key without its quotes."""
    parts: Iterable[str] = re.findall(r"[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'", header)
    return ".".join(part.strip("\"'") for part in parts)
