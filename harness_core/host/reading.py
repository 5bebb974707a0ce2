"""Reading a composition: documents into the composition's classes, with everything that is wrong with them at once.

Imports no plugin, except a preset that is extended. Which plugins are installed is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from harness_core._text import nearest, quoted_list
from harness_core.errors import CompositionError, HarnessError
from harness_core.host.composition import Composition, PluginTable
from harness_core.host.config import ConfigProblem, structure_config
from harness_core.host.discovery import discover
from harness_core.host.documents import Documents, Find, collect
from harness_core.host.references import resolve

__all__ = ["FILE_NAME", "PLUGINS_VARIABLE", "find_composition", "read_composition", "selected", "structured"]

FILE_NAME = "harness.toml"
PLUGINS_VARIABLE = "HARNESS_PLUGINS"
"""Names, with commas between them, of the only plugins to load; empty for none."""


def find_composition(folder: Path) -> Path | None:
    """The composition of a folder: its harness.toml, or its pyproject.toml where that has a [tool.harness] table."""
    own = folder / FILE_NAME
    if own.is_file():
        return own
    project = folder / "pyproject.toml"
    if project.is_file() and re.search(r"^\[tool\.harness\b", project.read_text(encoding="utf-8"), re.MULTILINE):
        return project
    return None


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
    data = documents.merged()
    problems: list[CompositionError] = []
    try:
        data = _resolved(data, environment)
    except CompositionError as error:
        raise _at(documents, error.entry or "", error.message.partition(": ")[2], error) from None
    made = structure_config(data, Composition)
    if isinstance(made, list):
        problems = [_at(documents, each.path, each.problem.removesuffix("."), each) for each in made]
    else:
        problems = [_at(documents, each.path, each.problem, each) for each in _inconsistencies(made)]
        try:
            made.settings()
        except HarnessError as error:
            problems.append(_at(documents, f"prompt.{error.entry or ''}".rstrip("."), error.message, error))
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
        _switch(result, lambda name, table: name in only or (table.plugin or name) in only)
        for name in sorted(only - {name for _, name, _, _ in result.tables()}):
            result.plugins[name] = PluginTable()
    for each in switched:
        off, name = each.startswith("no:"), each.removeprefix("no:")
        table = result.plugins.get(name, PluginTable())
        result.plugins[name] = attrs.evolve(table, enabled=not off)
        if off:
            _switch(result, lambda other, table, name=name: name not in (other, table.plugin))
    return result


def _switch(composition: Composition, stays: Any) -> None:
    def switched(tables: Mapping[str, PluginTable]) -> dict[str, PluginTable]:
        return {
            name: table if stays(name, table) else attrs.evolve(table, enabled=False) for name, table in tables.items()
        }

    composition.plugins = switched(composition.plugins)
    for name, agent in composition.agents.items():
        composition.agents[name] = attrs.evolve(agent, plugins=switched(agent.plugins))


def _resolved(data: Mapping[str, Any], environment: Mapping[str, str] | None) -> dict[str, Any]:
    """The data with its references replaced, those in plugins' settings excepted."""
    rest = {key: value for key, value in data.items() if key not in ("plugins", "agents")}
    done: dict[str, Any] = resolve(rest, "", environment)
    if "plugins" in data:
        done["plugins"] = _plugins(data["plugins"], "plugins", environment)
    agents = data.get("agents")
    if isinstance(agents, Mapping):
        done["agents"] = {name: _agent(table, f"agents.{name}", environment) for name, table in agents.items()}
    elif "agents" in data:
        done["agents"] = agents
    return done


def _agent(table: Any, path: str, environment: Mapping[str, str] | None) -> Any:
    if not isinstance(table, Mapping):
        return table
    rest: dict[str, Any] = resolve({k: v for k, v in table.items() if k != "plugins"}, path, environment)
    if "plugins" in table:
        rest["plugins"] = _plugins(table["plugins"], f"{path}.plugins", environment)
    return rest


def _plugins(tables: Any, path: str, environment: Mapping[str, str] | None) -> Any:
    if not isinstance(tables, Mapping):
        return tables
    done = {}
    for name, table in tables.items():
        if isinstance(table, Mapping):
            config = {"config": table["config"]} if "config" in table else {}
            rest = {key: value for key, value in table.items() if key != "config"}
            table = {**resolve(rest, f"{path}.{name}", environment), **config}
        done[name] = table
    return done


def _inconsistencies(composition: Composition) -> Iterator[ConfigProblem]:
    """What each table may say, but not all of them together."""
    agents = composition.agents
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
