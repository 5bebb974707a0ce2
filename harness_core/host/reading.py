"""Reading a composition: documents into the composition's classes, with everything that is wrong with them at once.

Imports no plugin, except a preset that is extended. Which plugins are installed is not looked at.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import attrs

from harness_core._text import nearest, quoted_list
from harness_core.errors import CompositionError, HarnessError
from harness_core.host.composition import Composition, PluginTable
from harness_core.host.config import ConfigProblem, structure_config
from harness_core.host.discovery import discover
from harness_core.host.documents import Documents, Find, collect
from harness_core.host.references import concealed, is_reference, resolve

__all__ = ["FILE_NAME", "PLUGINS_VARIABLE", "find_composition", "read_composition", "selected", "structured"]

FILE_NAME = "harness.toml"
PLUGINS_VARIABLE = "HARNESS_PLUGINS"
"""Names, with commas between them, of the only plugins to load; empty for none."""


def find_composition(folder: Path) -> Path | None:
    """The composition of a folder: its harness.toml, or its pyproject.toml where that has a [tool.harness] table."""
    own = folder / FILE_NAME
    if os.path.lexists(own):  # a link that leads nowhere was meant to lead somewhere
        return own
    project = folder / "pyproject.toml"
    return project if project.is_file() and _speaks_of_harness(project) else None


def _speaks_of_harness(project: Path) -> bool:
    """Has it a [tool.harness] table? Where it cannot be read, reading it as a composition will say so."""
    try:
        text = project.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return True
    if "harness" not in text:
        return False
    try:
        tool = tomllib.loads(text).get("tool")
    except (ValueError, RecursionError):
        return re.search(r"^\s*\[\s*tool\s*\.\s*harness\s*[].]", text, re.MULTILINE) is not None
    return isinstance(tool, dict) and "harness" in tool


def read_composition(path: Path, find: Find = discover) -> Composition:
    """The composition in a file, with what it extends.

    Raises:
        CompositionError: it cannot be read, is no TOML, or holds what no composition can hold; names file, line and
            table path, and carries all problems (`CompositionError.problems`).
    """
    return structured(collect(path, find))


def structured(documents: Documents, environment: Mapping[str, str] | None = None) -> Composition:
    """The composition that documents describe. References to the environment in a plugin's settings stay as they are:
    they are resolved when the plugin is installed, so that one that is switched off needs no variables.

    Raises:
        CompositionError: see `read_composition`.
    """
    data, problems = _resolved(documents, documents.merged(), (), environment)
    if problems:
        raise _together(problems)
    made = structure_config(data, Composition)
    if isinstance(made, list):
        problems = [_at(documents, each.path, each.problem.removesuffix("."), each) for each in made]
    else:
        problems = [_at(documents, each.path, concealed(each.problem, data), each) for each in _inconsistencies(made)]
        try:
            made.settings()
        except HarnessError as error:
            path = f"prompt.{error.entry or ''}".rstrip(".")
            problems.append(_at(documents, path, concealed(error.message, data), error))
    if problems:
        raise _together(problems)
    assert isinstance(made, Composition)
    return made


def selected(composition: Composition, variable: str | None = None, switched: Iterable[str] = ()) -> Composition:
    """The composition with plugins switched on and off from outside, the way pytest's users know it.

    ``variable`` is the content of HARNESS_PLUGINS (None where it is not set); ``switched`` holds ``no:NAME`` to leave a
    plugin out and ``NAME`` to load one that is installed.
    """
    result = attrs.evolve(composition, plugins=dict(composition.plugins), agents=dict(composition.agents))
    if variable is not None:
        only = {name.strip() for name in variable.split(",")} - {""}
        result.autoload = False
        others = {name for _, name, table, _ in result.tables() if only.isdisjoint({name, table.plugin})}
        _switch(result, others, False)
        known = {each for _, name, table, _ in result.tables() for each in (name, table.plugin)}
        for name in sorted(only - known):
            result.plugins[name] = PluginTable()
    for each in switched:
        off, name = each.startswith("no:"), each.removeprefix("no:")
        named = {key for _, key, _, _ in result.tables()}
        # A plugin may run under another name: then that is switched on, and not a second one.
        its = {key for _, key, table, _ in result.tables() if table.plugin == name}
        if (name not in named and not its) or (off and name not in result.plugins):
            result.plugins[name] = PluginTable(enabled=not off)
        if off:
            _switch(result, {name, *its}, False)
        else:
            _switch(result, {name} if name in named else its, True)
    return result


def _switch(composition: Composition, names: Set[str], on: bool) -> None:
    def switched(tables: Mapping[str, PluginTable]) -> dict[str, PluginTable]:
        return {name: attrs.evolve(table, enabled=on) if name in names else table for name, table in tables.items()}

    composition.plugins = switched(composition.plugins)
    for name, agent in composition.agents.items():
        composition.agents[name] = attrs.evolve(agent, plugins=switched(agent.plugins))


def _resolved(
    documents: Documents, value: Any, keys: tuple[str, ...], environment: Mapping[str, str] | None
) -> tuple[Any, list[CompositionError]]:
    """A value with its references replaced, those in plugins' settings excepted, and what is wrong with them."""
    if keys[-1:] == ("config",) and keys[:-2] in (("plugins",), ("agents", *keys[1:2], "plugins")):
        return value, []
    if not isinstance(value, Mapping) or is_reference(value):
        try:
            # A text in the place of a table is refused when it is structured.
            return resolve(value, ".".join(keys), environment), []
        except CompositionError as error:
            return value, [_at(documents, error.entry or "", error.message.partition(": ")[2], error)]
    done: dict[str, Any] = {}
    problems: list[CompositionError] = []
    for key, each in value.items():
        done[key], found = _resolved(documents, each, (*keys, key), environment)
        problems += found
    return done, problems


def _inconsistencies(composition: Composition) -> Iterator[ConfigProblem]:
    """What each table may say, but not all of them together."""
    agents = composition.agents
    for path, _, plugin_table, _ in composition.tables():
        if plugin_table.scope in ("", "global"):
            yield ConfigProblem(f"{path}.scope", "no scope can be called so; remove the key for the scope of everybody")
    for path, number in _numbers(composition):
        if not math.isfinite(number):
            yield ConfigProblem(path, "expected a finite number")
    for name, table in agents.items():
        if not name or name == "global":
            yield ConfigProblem(f"agents.{name}", "no agent can be called so: that is the scope of everybody")
        if table.parent is not None and table.parent not in agents:
            near = nearest(table.parent, agents)
            meant = f"did you mean {near!r}?" if near else f"known: {quoted_list(agents)}"
            yield ConfigProblem(
                f"agents.{name}.parent", f"there is no agent called {table.parent!r}; {meant}", tuple(agents)
            )
        elif name in (circle := _ancestors(composition, name)):
            yield ConfigProblem(
                f"agents.{name}.parent", f"these agents are each other's parents: {' -> '.join([name, *circle])}"
            )
        for plugin, its in table.plugins.items():
            if its.scope is not None:
                yield ConfigProblem(
                    f"agents.{name}.plugins.{plugin}.scope", "the plugins of an agent are for its scope; remove the key"
                )
    for kind, tables in _placements(composition):
        for name, placement in tables.items():
            if placement == type(placement)(plugin=placement.plugin):
                yield ConfigProblem(f"{kind}.{name}", "it says nothing; give it exclude, order, before or after")
    named = {name for _, name, _, _ in composition.tables()}
    for index, name in enumerate(composition.outermost):
        # An installed plugin may be meant that the file does not name; a name that is nearly one of the file's is not.
        near = nearest(name, named) if name not in named else None
        if near is not None:
            yield ConfigProblem(
                f"outermost[{index}]", f"no plugin here is called {name!r}; did you mean {near!r}?", tuple(named)
            )


def _numbers(composition: Composition) -> Iterator[tuple[str, float]]:
    """The numbers that a model or an order is given: TOML has more than these can take."""
    models = {"model": composition.model} | {f"agents.{name}.model": a.model for name, a in composition.agents.items()}
    for path, model in models.items():
        yield from ((f"{path}.{key}", value) for key, value in attrs.asdict(model).items() if isinstance(value, float))
    for kind, tables in _placements(composition):
        yield from ((f"{kind}.{name}.order", each.order) for name, each in tables.items() if each.order is not None)


def _ancestors(composition: Composition, name: str) -> list[str]:
    found: list[str] = []
    at = composition.agents[name].parent
    while at is not None and at in composition.agents and at not in found:
        found.append(at)
        at = composition.agents[at].parent
    return found


def _placements(composition: Composition) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "sections", composition.sections
    yield "contexts", composition.contexts
    for name, table in composition.agents.items():
        yield f"agents.{name}.sections", table.sections
        yield f"agents.{name}.contexts", table.contexts


def _at(documents: Documents, path: str, problem: str, about: ConfigProblem | HarnessError) -> CompositionError:
    place = documents.place(path)
    remedy = about.remedy if isinstance(about, HarnessError) and about.remedy else "Correct the file."
    return CompositionError(
        f"{place.source}: {path or 'the table itself'}: {problem.removesuffix('.')}{f' (line {place.line})' if place.line else ''}.",
        remedy=remedy,
        file=place.source,
        line=place.line,
        entry=path,
        names=[path],
        known=about.known,
    )


def _together(problems: list[CompositionError]) -> CompositionError:
    """One error that says all of them; it stands where the first one does."""
    first = problems[0]
    if len(problems) == 1:
        first.problems = (first,)
        return first
    text = first.message.removesuffix(".")
    for other in problems[1:]:
        said = other.message.removesuffix(".")
        text += f"; {said.removeprefix(f'{first.file}: ')}"
    error = CompositionError(
        f"{text}.",
        remedy=first.remedy,
        file=first.file,
        line=first.line,
        entry=first.entry,
        names=[problem.entry or "" for problem in problems],
        known=first.known,
    )
    error.problems = tuple(problems)
    return error
