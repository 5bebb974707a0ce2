"""The documents that a composition is made of: a TOML file, the files and presets that it extends, and who says what.

Merging is by table: what is nearer to the composition's own file replaces what is farther, value by value; lists are
replaced whole. Knows TOML and places, and nothing of what the tables mean.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import attrs

from harness_core._text import nearest, quoted_list
from harness_core.errors import CompositionError, PluginLoadError
from harness_core.host.discovery import PluginSource, discover
from harness_core.host.lines import lines_of
from harness_core.host.references import is_reference

__all__ = ["PRESET_GROUP", "Document", "Documents", "Place", "collect", "leaves"]

PRESET_GROUP = "harness.presets"
"""Entry points that name a preset: a mapping, or the path of a TOML file."""
DEEPEST = 64
"""How deep values may be nested."""
MOST = 200
"""How many documents a composition may be made of, with repetitions."""

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
    """One file or preset. ``text`` is empty where there is no TOML text, whose table ``within`` the data is; ``folder`` is
    what paths in it start from.
    """

    source: str
    data: Mapping[str, Any] = attrs.field(repr=False)
    text: str = attrs.field(default="", repr=False)
    folder: Path | None = None
    file: Path | None = None
    within: str = ""

    @property
    def identity(self) -> str:
        """The same for one file under any name."""
        return os.path.realpath(self.file) if self.file is not None else self.source

    def place(self, path: str) -> Place:
        """Where it says something about a table path."""
        lines = lines_of(self.text)
        path = ".".join(part for part in (self.within, path) if part)
        while path and path not in lines:
            path = _shorter(path)
        return Place(self.source, lines.get(path))


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
    return Documents(tuple(_Reader(find).with_bases(read_document(path), ())))


def read_document(path: Path) -> Document:
    """One TOML file; of a pyproject.toml its ``[tool.harness]`` table.

    Raises:
        CompositionError: it cannot be read, is no TOML, or nests too deeply.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise CompositionError(
            f"{path} cannot be read: {reason}.", remedy="Name a TOML file that can be.", file=str(path)
        ) from None
    try:
        data: Any = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits
        found = re.search(r"line (\d+)", str(error))
        problem = "it nests its values too deeply" if isinstance(error, RecursionError) else str(error)
        raise CompositionError(
            f"{path} is no valid TOML: {problem}.",
            remedy="Correct the line." if found else "Correct the file.",
            file=str(path),
            line=int(found[1]) if found else None,
        ) from None
    within = ""
    if path.name == "pyproject.toml":
        within = "tool.harness"
        data = data.get("tool", {})
        data = data.get("harness", {}) if isinstance(data, dict) else {}
    return _plain(Document(str(path), data, text, path.parent, path, within))


def _plain(document: Document) -> Document:
    """The document with its data in dicts and lists of its own.

    Raises:
        CompositionError: it holds what no file could say, or what nests too deeply to be looked through.
    """

    def refused(path: str, problem: str) -> CompositionError:
        place = document.place(path)
        return CompositionError(
            f"{place.source}: {path or document.within or 'the preset'}: {problem}{f' (line {place.line})' if place.line else ''}.",
            remedy="Correct the file." if document.text else "Repair the distribution, or do not extend it.",
            file=place.source,
            line=place.line,
            entry=path or document.within,
        )

    def copied(value: Any, path: str, depth: int) -> Any:
        if depth > DEEPEST:
            top = re.split(r"[.\[]", path)[0]
            raise refused(top, f"values are nested more than {DEEPEST} deep")
        if isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    raise refused(path, f"the key {key!r} is no string")
            return {key: copied(each, f"{path}.{key}" if path else key, depth + 1) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [copied(each, f"{path}[{index}]", depth + 1) for index, each in enumerate(value)]
        if isinstance(value, int) and value.bit_length() > 64:
            raise refused(path, "an integer has at most 64 bits")
        return value

    if not isinstance(document.data, Mapping):
        raise refused("", "it is no table")
    return attrs.evolve(document, data=copied(document.data, "", 0))


@attrs.define
class _Reader:
    """Reads what a document extends, and what that extends."""

    find: Find
    read: int = 0

    def with_bases(self, document: Document, chain: tuple[Document, ...]) -> Iterator[Document]:
        self.read += 1
        earlier = [each.identity for each in chain]
        if document.identity in earlier:
            circle = [each.source for each in (*chain[earlier.index(document.identity) :], document)]
            _refuse(chain[-1].place("extends"), f"these compositions extend each other: {' -> '.join(circle)}")
        extends = document.data.get("extends", [])
        names = [extends] if isinstance(extends, str) else extends
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            place = document.place("extends")
            remedy = "Name files that end in .toml, or installed presets."
            _refuse(place, "extends must be a string or a list of strings", remedy)
        for index, name in enumerate(names):
            place = document.place(f"extends[{index}]")
            if self.read >= MOST:
                _refuse(place, f"the composition is made of more than {MOST} files and presets")
            base = _file_base(document, name, place) if name.endswith(".toml") else _preset(name, self.find, place)
            yield from self.with_bases(base, (*chain, document))
        yield document


def _refuse(place: Place, problem: str, remedy: str = "Remove one of the extends.", **facts: Any) -> NoReturn:
    raise CompositionError(
        f"{place}: {problem}.", remedy=remedy, file=place.source, line=place.line, entry="extends", **facts
    )


def _file_base(document: Document, name: str, place: Place) -> Document:
    if document.folder is None:
        problem = f"a preset that is no file cannot extend the file {name!r}"
        _refuse(place, problem, "Extend another preset by its name.")
    try:
        path = document.folder / Path(name).expanduser()
        there = path.is_file()
    except (OSError, RuntimeError) as error:  # a name that is too long; a home that nobody has
        reason = str(error).rstrip(".")
        _refuse(place, f"{name!r} cannot be looked for: {reason}", "Correct the path.", names=[name])
    if not there:
        remedy = "Correct the path; it is relative to the file that names it."
        _refuse(place, f"there is no file {path}, which it extends", remedy, names=[name])
    return read_document(path.resolve() if ".." in path.parts else path)


def _preset(name: str, find: Find, place: Place) -> Document:
    offered = {source.name: source for source in find(PRESET_GROUP)}
    source = offered.get(name)
    if source is None:
        near = nearest(name, offered)
        meant = f"Did you mean {near!r}?" if near else f"Known presets: {quoted_list(offered)}. A file ends in .toml."
        problem = f"no installed distribution offers a preset called {name!r}"
        _refuse(place, problem, meant, names=[name], known=offered)
    made = _imported(source, place)
    label = f"preset {name!r} ({source.distribution} {source.version})"
    if isinstance(made, Mapping):
        return _plain(Document(label, made))
    if isinstance(made, (str, Path)) or hasattr(made, "read_text"):
        file = Path(str(made))
        return attrs.evolve(read_document(file), source=f"{label} {file}")
    problem = f"{label} is a {type(made).__name__}; a preset is a mapping, or the path of a TOML file"
    remedy = f"Repair the distribution {source.distribution!r}, or do not extend it."
    _refuse(place, problem, remedy, **source.facts())


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
