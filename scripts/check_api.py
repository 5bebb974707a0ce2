"""Compare the public API with what was recorded of it at the last release (docs/reference/api-baseline.json).

Whatever would break a user's code is refused, unless the version in pyproject.toml is raised far enough and a news
fragment tells of it; so is a deprecation that is past its date. ``--record`` writes the record anew; that is a part of
each release. The record is in the tree, so that no history is needed: for each public module what its names are, as a
stub, and for each hook its arguments.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import griffe
from packaging.version import Version

from harness_core.deprecation import deprecated
from harness_core.hooks import HookSpecs

ROOT = Path(__file__).parents[1]
BASELINE = ROOT / "docs" / "reference" / "api-baseline.json"
PACKAGE = "harness_core"
PUBLIC = (
    "",
    "agent",
    "deprecation",
    "errors",
    "hooks",
    "host",
    "inspect",
    "models",
    "prompt",
    "scopes",
    "session",
    "testing",
    "tools",
)
"""The modules whose ``__all__`` is the public API; "" is the package itself, which offers names of the others."""

_SPECIAL = frozenset({"__call__", "__contains__", "__getitem__", "__init__", "__iter__", "__len__"})


@attrs.frozen
class Api:
    """What was or is public: a stub for each module, and the hooks with their arguments."""

    version: str
    modules: dict[str, str]
    hooks: dict[str, list[str]]

    @classmethod
    def recorded(cls, file: Path = BASELINE) -> Api:
        data = json.loads(file.read_text(encoding="utf-8"))
        modules = {name: "\n".join(lines) + "\n" for name, lines in data["modules"].items()}
        return cls(data["version"], modules, data["hooks"])

    def record(self, file: Path = BASELINE) -> None:
        modules = {name: stub.splitlines() for name, stub in self.modules.items()}
        data = {"version": self.version, "hooks": self.hooks, "modules": modules}
        file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# --- what is public now -----------------------------------------------------------------------------------------------


def current(root: Path = ROOT) -> Api:
    """The API of the checkout."""
    loader = griffe.GriffeLoader(search_paths=[str(root)])
    package = loader.load(PACKAGE)
    loader.resolve_aliases(implicit=False, external=False)
    modules = {}
    for name in PUBLIC:
        path = f"{PACKAGE}.{name}" if name else PACKAGE
        module: Any = package[name] if name else package
        modules[path] = stub(module, import_module(path))
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return Api(version, modules, hook_arguments(HookSpecs))


def hook_arguments(specs: type) -> dict[str, list[str]]:
    """Each hook's arguments, in order."""
    return {
        name: list(inspect.signature(function).parameters)[1:]
        for name, function in vars(specs).items()
        if not name.startswith("_")
    }


def stub(module: griffe.Module, running: Any) -> str:
    """The public names of a module; one that is the public name of another module is only named."""
    lines: list[str] = []
    for name in sorted(str(each) for each in module.exports or ()):
        found: Any = module[name]
        target = found.final_target if found.is_alias else found
        if module.path == PACKAGE:
            lines.append(f"{name}: ...")
        elif target.is_class:
            lines += _class(target, getattr(running, name), name)
        elif target.is_function:
            lines.append(_function(target, name))
        else:
            lines.append(_attribute(target, name))
    return "\n".join(lines) + "\n"


def _class(found: griffe.Class, running: type, name: str) -> list[str]:
    bases = [base.__name__ for base in running.__bases__ if base is not object]
    lines = [f"class {name}({', '.join(bases)}):" if bases else f"class {name}:"]
    fields = {each.name for each in attrs.fields(running)} if attrs.has(running) else set()
    if attrs.has(running):
        lines.append(f"    def __init__({_signature(running)}): ...")
    for member, each in sorted(found.all_members.items()):
        public = member in _SPECIAL or not member.startswith("_")
        if not public or (attrs.has(running) and member == "__init__"):
            continue
        target: Any = each.final_target if each.is_alias else each
        if target.is_function:
            lines.append(f"    {_function(target, member)}")
        elif target.is_attribute:
            lines.append(f"    {member}: ..." if member in fields else f"    {_attribute(target, member)}")
    return lines if len(lines) > 1 else [f"{lines[0]} ..."]


def _signature(kind: type) -> str:
    """The arguments of a class whose ``__init__`` is generated."""
    shown = ["self"]
    keywords = False
    for each in inspect.signature(kind).parameters.values():
        if each.kind is each.KEYWORD_ONLY and not keywords:
            keywords = True
            shown.append("*")
        shown.append(each.name if each.default is each.empty else f"{each.name}=...")
    return ", ".join(shown)


def _function(found: griffe.Function, name: str) -> str:
    shown: list[str] = []
    previous = None
    for each in found.parameters:
        kind = each.kind
        if previous is griffe.ParameterKind.positional_only and kind is not previous:
            shown.append("/")
        if kind is griffe.ParameterKind.keyword_only and previous not in (kind, griffe.ParameterKind.var_positional):
            shown.append("*")
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(kind, "")
        optional = each.default is not None and not stars
        shown.append(f"{stars}{each.name}{'=...' if optional else ''}")
        previous = kind
    if previous is griffe.ParameterKind.positional_only:
        shown.append("/")
    return f"{'async ' if 'async' in found.labels else ''}def {name}({', '.join(shown)}): ..."


def _attribute(found: griffe.Attribute, name: str) -> str:
    """A name; with its value where that is a text or number that others may rely on."""
    value = str(found.value) if found.value is not None else ""
    literal = re.fullmatch(r"-?\d+(\.\d+)?|'[^'\\]*'|\"[^\"\\]*\"", value)
    assigned = "class-attribute" in found.labels or "module-attribute" in found.labels
    return f"{name} = {value}" if literal and assigned else f"{name}: ..."


# --- what changed -----------------------------------------------------------------------------------------------------


def breaks(old: Api, new: Api) -> list[str]:
    """What no longer works, one line for each thing, named by its public path."""
    found: list[str] = []
    for name, before in old.modules.items():
        if name not in new.modules:
            found.append(f"{name}: the public module is gone")
            continue
        was, now = griffe.visit(name, Path(name), before), griffe.visit(name, Path(name), new.modules[name])
        found += [_told(each) for each in griffe.find_breaking_changes(was, now)]
        found += _values(was, now)
    for hook, arguments in old.hooks.items():
        if hook not in new.hooks:
            found.append(f"hook {hook}: it is gone")
        else:
            gone = [each for each in arguments if each not in new.hooks[hook]]
            found += [f"hook {hook}: it lost the argument {each!r}" for each in gone]
    return found


def _told(breakage: griffe.Breakage) -> str:
    what = breakage.kind.value.lower()
    details = [f" ({each.name})" for each in (breakage.old_value,) if isinstance(each, griffe.Parameter)]
    if not details and isinstance(breakage.new_value, griffe.Parameter):
        details = [f" ({breakage.new_value.name})"]
    return f"{breakage.obj.path}{''.join(details)}: {what}"


def _values(old: Any, new: Any) -> Iterator[str]:
    for name, was in old.members.items():
        now = new.members.get(name)
        if now is None:
            continue
        if was.is_class and now.is_class:
            yield from _values(was, now)
        elif was.is_attribute and now.is_attribute and was.value is not None and str(was.value) != str(now.value):
            yield f"{was.path}: its value was {was.value} and is {now.value}"


def raised(old: str, new: str) -> bool:
    """May this version break what that one had? The minor version says so below 1.0, the major one from there on."""
    was, now = Version(old).release, Version(new).release
    return now[0] > was[0] or (was[0] == 0 and now[:2] > was[:2])


def told(root: Path, version: str) -> bool:
    """Does a news fragment, or the changelog's part for this version, tell of a breaking change?"""
    if list((root / "changelog.d").glob("*.breaking*.md")):
        return True
    parts = re.split(r"^## ", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return any(part.startswith(f"{version} ") and "### Breaking" in part for part in parts)


def released(root: Path) -> str | None:
    """The newest release that the changelog tells of."""
    found = re.search(r"^## (\S+) \(", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else None


def problems(old: Api, new: Api, root: Path = ROOT) -> list[str]:
    """Why the change cannot be accepted as it is; empty when all is well."""
    last = released(root)
    if last is not None and last != old.version:
        return [f"{last} was released, and the record is of {old.version}: run python scripts/check_api.py --record"]
    found = breaks(old, new)
    if not found:
        return []
    if last is None:
        advice = "as nothing is released yet, run python scripts/check_api.py --record"
    elif not raised(old.version, new.version):
        advice = f"raise the version beyond {old.version} (0.x: the minor, from 1.0: the major version)"
    elif not told(root, new.version):
        advice = "tell users in changelog.d/SLUG.breaking.md"
    else:
        return []
    return [*found, f"This breaks what {old.version} has: keep the old names working, or {advice}."]


# --- what should be gone ----------------------------------------------------------------------------------------------


def overdue(root: Path = ROOT) -> list[str]:
    """The deprecations of each distribution that its version has caught up with, by file and line."""
    found: list[str] = []
    for project in (root / "pyproject.toml", *sorted(root.glob("harness_plugins/*/pyproject.toml"))):
        version = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]
        sources = project.parent / (PACKAGE if project.parent == root else "src")
        for file in sorted(sources.rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                due = [each for each in _dates(node) if Version(version) >= Version(each)]
                found += [
                    f"{file.relative_to(root)}:{node.lineno}: due in {each}, and this is {version}" for each in due
                ]  # type: ignore[attr-defined]
    return found


def _dates(node: ast.AST) -> list[str]:
    """The versions in which a call's deprecations go: ``deprecated(since=...)`` and ``formerly={...}``."""
    if not isinstance(node, ast.Call):
        return []
    given = {each.arg: each.value for each in node.keywords}
    dates = []
    if getattr(node.func, "id", getattr(node.func, "attr", "")) == "deprecated" and "since" in given:
        since = ast.literal_eval(given["since"])
        dates.append(deprecated("", instead="", since=since).gone.split()[-1])
    if isinstance(given.get("formerly"), ast.Dict):
        dates += ast.literal_eval(given["formerly"]).values()
    return dates


def main(arguments: list[str]) -> int:
    new = current()
    if "--record" in arguments:
        old = Api.recorded() if BASELINE.is_file() else new
        if released(ROOT) == old.version == new.version and breaks(old, new):
            print(f"{new.version} is released as it is recorded; raise the version first.")
            return 1
        new.record()
        return 0
    found = [*problems(Api.recorded(), new), *overdue()]
    print("\n".join(found) or "Nothing breaks, and nothing is overdue.")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
