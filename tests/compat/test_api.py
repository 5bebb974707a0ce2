"""The public API is what is recorded of the last release, or says why not; and a change that breaks it is found."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pytest

import harness_core

ROOT = Path(__file__).parents[2]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_api", ROOT / "scripts" / "check_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_api"] = module
    spec.loader.exec_module(module)
    return module


check_api = script()
one_python = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="reads sources, which are the same for each Python"
)


@pytest.fixture(scope="module")
def now() -> Any:
    return check_api.current()


@one_python
def test_nothing_breaks_what_was_released(now: Any) -> None:
    assert check_api.problems(check_api.Api.recorded(), now) == []
    assert check_api.overdue() == []


# --- what is found ----------------------------------------------------------------------------------------------------


def changed(api: Any, module: str, old: str, new: str) -> Any:
    """The API with a line of a stub replaced."""
    stub = api.modules[module]
    assert stub.count(old) == 1, f"{old!r} stands {stub.count(old)} times in the stub of {module}"
    return check_api.attrs.evolve(api, modules={**api.modules, module: stub.replace(old, new)})


INSTALL = (
    "async def install(self, plugin, *, config=..., scope=..., name=..., owner=..., outermost=..., constraints=...)"
)

BREAKS = {
    "a removed parameter": (
        "harness_core.host",
        INSTALL,
        INSTALL.replace(" outermost=...,", ""),
        "harness_core.host.Harness.install (outermost): parameter was removed",
    ),
    "a parameter that is required now": (
        "harness_core.host",
        INSTALL,
        INSTALL.replace("outermost=...", "outermost"),
        "harness_core.host.Harness.install (outermost): parameter is now required",
    ),
    "a removed name": (
        "harness_core.prompt",
        "IDENTITY_SECTION = 'harness:identity'\n",
        "",
        "harness_core.prompt.IDENTITY_SECTION: public object was removed",
    ),
    "a name that the package itself no longer offers": (
        "harness_core",
        "PERSONA_SECTION: ...\n",
        "",
        "harness_core.PERSONA_SECTION: public object was removed",
    ),
    "a constant of another value": (
        "harness_core.prompt",
        "'deployment:persona'",
        "'persona'",
        "harness_core.prompt.PERSONA_SECTION: its value was 'deployment:persona' and is 'persona'",
    ),
    "an error of another code": (
        "harness_core.errors",
        "code = 'duplicate-name'",
        "code = 'duplicate'",
        "harness_core.errors.DuplicateNameError.code: its value was 'duplicate-name' and is 'duplicate'",
    ),
    "a field of a record that is required now": (
        "harness_core.prompt",
        "(self, persona=..., *, identity=...,",
        "(self, persona, *, identity=...,",
        "harness_core.prompt.PromptSettings.__init__ (persona): parameter is now required",
    ),
}


@one_python
@pytest.mark.parametrize("kind", BREAKS)
def test_what_breaks_is_named_by_its_public_path(kind: str, now: Any) -> None:
    module, old, new, told = BREAKS[kind]
    assert check_api.breaks(now, changed(now, module, old, new)) == [told]


@one_python
def test_what_is_added_breaks_nothing(now: Any) -> None:
    more = changed(now, "harness_core.host", INSTALL, INSTALL.replace("outermost=...", "outermost=..., innermost=..."))
    more = check_api.attrs.evolve(more, hooks={**now.hooks, "agent_status": ["agent", "status", "since"], "new": []})
    assert check_api.breaks(now, more) == []


@one_python
def test_hooks_lose_no_argument_and_no_hook_goes(now: Any) -> None:
    less = check_api.attrs.evolve(
        now,
        hooks={**{name: args for name, args in now.hooks.items() if name != "tool_call"}, "agent_status": ["agent"]},
    )
    assert set(check_api.breaks(now, less)) == {
        "hook tool_call: it is gone",
        "hook agent_status: it lost the argument 'status'",
    }


PACKAGE = '''
from collections.abc import Iterable
import attrs

__all__ = ["LIMIT", "Kept", "Record", "made", "retry"]

LIMIT = 3

class _Base:
    def shared(self, value: int) -> int: ...
    def _own(self) -> None: ...

class Kept(_Base):
    """Inherits."""
    def __init__(self, name: str) -> None:
        self.name = name
    @property
    def size(self) -> int: ...
    async def run(self, *names: str, **rest: int) -> None: ...

@attrs.frozen
class Record:
    name: str
    tags: tuple[str, ...] = ()

def made(kind, /, name, *, count=2): ...
def retry(*, count=2): ...
def hidden(): ...
'''


def test_the_stub_of_a_module_is_what_can_be_used_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = griffe.GriffeLoader(search_paths=[str(tmp_path)]).load("planted")
    assert check_api.stub(found, importlib.import_module("planted")).splitlines() == [
        "class Kept(_Base):",
        "    def __init__(self, name): ...",
        "    name: ...",
        "    async def run(self, *names, **rest): ...",
        "    def shared(self, value): ...",
        "    size: ...",
        "LIMIT = 3",
        "class Record:",
        "    def __init__(self, name, tags=...): ...",
        "    name: ...",
        "    tags: ...",
        "def made(kind, /, name, *, count=...): ...",
        "def retry(*, count=...): ...",
    ]


# --- what is accepted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "may"),
    [("0.1.0", "0.1.1", False), ("0.1.3", "0.2.0", True), ("1.2.0", "1.3.0", False), ("1.2.0", "2.0.0", True)],
)
def test_the_version_says_whether_something_may_break(old: str, new: str, may: bool) -> None:
    assert check_api.raised(old, new) is may


def project(folder: Path, changelog: str = "", fragment: str | None = None) -> Path:
    (folder / "changelog.d").mkdir(parents=True)
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}")
    if fragment is not None:
        (folder / "changelog.d" / fragment).write_text("Gone.\n")
    return folder


RELEASED = "## 0.1.0 (2026-01-01)\n\n### Added\n\n- All.\n"


def test_a_break_needs_a_version_and_a_fragment(tmp_path: Path) -> None:
    old = check_api.Api("0.1.0", {"m": "def f(a): ...\n"}, {})
    new = check_api.Api("0.2.0", {"m": "def f(): ...\n"}, {})
    same = check_api.attrs.evolve(new, version="0.1.1")
    silent = project(tmp_path / "silent", RELEASED)
    loud = project(tmp_path / "loud", RELEASED, "f.breaking.md")
    built = project(tmp_path / "built", "## 0.2.0 (2026-02-01)\n\n### Breaking\n\n- Gone.\n\n" + RELEASED)
    assert "raise the version beyond 0.1.0" in check_api.problems(old, same, loud)[-1]
    assert "changelog.d/SLUG.breaking.md" in check_api.problems(old, new, silent)[-1]
    assert check_api.problems(old, new, loud) == []
    assert check_api.told(built, "0.2.0")
    assert check_api.problems(old, new, built) == [
        "0.2.0 was released, and the record is of 0.1.0: run python scripts/check_api.py --record"
    ]
    assert "--record" in check_api.problems(old, new, project(tmp_path / "unreleased", fragment="f.breaking.md"))[-1]
    assert check_api.problems(old, old, silent) == []


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    api = check_api.Api("0.1.0", {"m": "class A:\n    b: ...\n"}, {"hook": ["a"]})
    api.record(tmp_path / "api.json")
    assert check_api.Api.recorded(tmp_path / "api.json") == api


def test_a_deprecation_past_its_date_is_found(tmp_path: Path) -> None:
    for folder, version in ((tmp_path, "0.5.0"), (tmp_path / "harness_plugins" / "weather", "2.0")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
    core, plugin = tmp_path / "harness_core", tmp_path / "harness_plugins" / "weather" / "src"
    core.mkdir()
    plugin.mkdir()
    (core / "hooks.py").write_text(
        'a = deprecated("the hook a", instead="b", since="0.3")\nb = deprecated("c", instead="d", since="0.4")\n'
    )
    (plugin / "weather.py").write_text(
        'ctx.prompt.section("x", "", order=1, formerly={"w": "2.0"})\n'
        'ctx.prompt.section("y", "", order=1, formerly={"v": "3.0"})\n'
    )
    assert check_api.overdue(tmp_path) == [
        "harness_core/hooks.py:1: due in 0.5, and this is 0.5.0",
        "harness_plugins/weather/src/weather.py:1: due in 2.0, and this is 2.0",
    ]


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_of_the_api_covers_every_public_name() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    covered = re.findall(r"^::: harness_core\.(\w+)$", page, re.MULTILINE)
    assert sorted(["", *covered]) == sorted(check_api.PUBLIC)
    assert "members:" not in page, "all public names of a module, not some of them"
    homes = [getattr(importlib.import_module(f"harness_core.{name}"), "__all__") for name in covered]
    assert set(harness_core.__all__) <= {name for names in homes for name in names}


@one_python
def test_every_public_name_is_described() -> None:
    """The page leaves out what has no docstring."""
    loader = griffe.GriffeLoader(search_paths=[str(ROOT)])
    package: Any = loader.load("harness_core")
    loader.resolve_aliases(implicit=False, external=False)
    bare = []
    for name in check_api.PUBLIC[1:]:
        for each in package[name].exports:
            found = package[name][str(each)]
            if not (found.final_target if found.is_alias else found).has_docstring:
                bare.append(f"harness_core.{name}.{each}")
    assert bare == []
