"""The distributions as a stranger gets them: wheels of their own, installed into an environment of their own."""

from __future__ import annotations

import email.parser
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PLUGINS = sorted(path.parent for path in ROOT.glob("harness_plugins/*/pyproject.toml"))
CORE = "core"
MODULES = {CORE: "harness_core"} | {folder.name: next((folder / "src").glob("harness_*")).name for folder in PLUGINS}


def project(folder: Path) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def build(folder: Path, into: Path, kind: str = "wheel") -> Path:
    """A distribution built as pip would, only with the build backend that is here already."""
    into.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(into), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    [made] = into.iterdir()
    return made


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copies of the folders that distributions are built from: building leaves nothing behind in the checkout."""
    top = tmp_path_factory.mktemp("sources")
    core = top / CORE
    core.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, core / name)
    clutter = shutil.ignore_patterns("__pycache__", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT / "harness_core", core / "harness_core", ignore=clutter)
    for folder in PLUGINS:
        shutil.copytree(folder, top / folder.name, ignore=clutter)
    return {folder.name: folder for folder in top.iterdir()}


@pytest.fixture(scope="module")
def wheels(sources: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    into = tmp_path_factory.mktemp("wheels")
    return {name: build(folder, into / name) for name, folder in sources.items()}


class Environment:
    """A virtual environment that has the dependencies of this one, and none of this project's distributions."""

    def __init__(self, folder: Path, *wheels: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = folder / "bin" / "python"
        [self.site] = folder.glob("lib/python3.*/site-packages")
        for wheel in wheels:
            command = [sys.executable, "-m", "pip", "--python", str(self.python), "install"]
            done = subprocess.run(
                [*command, "--no-deps", "--no-index", "--quiet", str(wheel)],
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
        # Dependencies come last on the path, without what this project itself has installed there.
        self.dependencies = folder / "dependencies"
        self.dependencies.mkdir()
        here = {Path(path) for path in sys.path if path.endswith("-packages")}
        for site in here:
            for entry in site.iterdir():
                ours = entry.name.startswith(("harness_", "pluggy_harness", "_pluggy_harness", "__editable__"))
                if not ours and entry.suffix != ".pth":
                    (self.dependencies / entry.name).symlink_to(entry)
        (self.site / "dependencies.pth").write_text(f"{self.dependencies}\n", encoding="utf-8")

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        return subprocess.run(
            [str(self.python), *arguments],
            cwd=cwd,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def ask(self, code: str, cwd: Path) -> Any:
        """What a program prints as JSON."""
        done = self.run("-c", code, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def core_alone(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("core"), wheels[CORE])


@pytest.fixture(scope="module")
def everything(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("all"), *wheels.values())


def test_importing_the_core_loads_neither_the_command_line_nor_any_client(
    core_alone: Environment, tmp_path: Path
) -> None:
    facts = core_alone.ask(
        "import json, sys; before = set(sys.modules); import harness_core; from importlib.metadata import version;"
        "print(json.dumps([harness_core.__file__, sorted(set(sys.modules) - before), version('pluggy-harness')]))",
        tmp_path,
    )
    file, loaded, version = facts
    assert Path(file).is_relative_to(core_alone.site)
    assert version == project(ROOT)["version"]
    tops = {name.partition(".")[0] for name in loaded}
    assert {"httpx", "click", "rich", "jsonschema", "harness_core.cli"}.isdisjoint({*tops, *loaded})


def test_the_core_alone_answers_and_has_no_plugins(core_alone: Environment, tmp_path: Path) -> None:
    done = core_alone.run("-m", "harness_core.cli", "run", "Hello", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no workspace tools are installed" in done.stdout


def test_the_core_alone_begins_a_plugin_with_the_texts_of_licences(core_alone: Environment, tmp_path: Path) -> None:
    for licence in ("MIT", "Apache-2.0", "BSD-3-Clause"):
        name = licence.partition("-")[0].lower()
        done = core_alone.run("-m", "harness_core.cli", "new-plugin", name, "--licence", licence, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"harness-{name}" / "LICENSE").read_text(encoding="utf-8").strip()


def test_each_plugin_is_found_by_its_entry_points_and_by_nothing_else(everything: Environment, tmp_path: Path) -> None:
    found = everything.ask(
        "import json; from harness_core.host.discovery import discover;"
        "print(json.dumps({s.name: [s.distribution, s.version, bool(s.load())] for s in discover()}))",
        tmp_path,
    )
    declared = {
        name: [table["name"], table["version"], True]
        for table in map(project, PLUGINS)
        for name in table["entry-points"]["harness.plugins"]
    }
    assert found == declared


def test_the_command_runs_with_everything_installed(everything: Environment, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Kitchen\n", encoding="utf-8")
    script = everything.python.with_name("harness")
    done = everything.run(str(script), "run", "What is here?", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "'# Kitchen'" in done.stdout


@pytest.mark.parametrize("name", MODULES)
def test_a_wheel_holds_its_package_with_types_and_licence_and_no_tests(
    wheels: dict[str, Path], sources: dict[str, Path], name: str
) -> None:
    module = MODULES[name]
    with zipfile.ZipFile(wheels[name]) as wheel:
        names = wheel.namelist()
        metadata_name = next(each for each in names if each.endswith(".dist-info/METADATA"))
        metadata = email.parser.Parser().parsestr(wheel.read(metadata_name).decode())
    assert f"{module}/py.typed" in names
    assert any(each.endswith("/licenses/LICENSE") for each in names)
    assert {each.partition("/")[0] for each in names} == {module, metadata_name.partition("/")[0]}
    package = sources[name] / module if name == CORE else sources[name] / "src" / module
    expected = {str(path.relative_to(package.parent)) for path in package.rglob("*.py")}
    assert {each for each in names if each.endswith(".py")} == expected
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_a_plugin_has_the_common_shape(folder: Path) -> None:
    table = project(folder)
    assert table["name"] == f"pluggy-harness-{folder.name}"
    assert "pluggy-harness>=0.1" in table["dependencies"]
    assert all(
        target.startswith(f"{MODULES[folder.name]}:") for target in table["entry-points"]["harness.plugins"].values()
    )
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (folder / "README.md").read_text(encoding="utf-8").startswith(f"# {table['name']}\n")
    assert f"(harness_plugins/{folder.name}/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert list((folder / "tests").glob("test_*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_a_source_distribution_builds_the_same_wheel(
    sources: dict[str, Path], wheels: dict[str, Path], name: str, tmp_path: Path
) -> None:
    with tarfile.open(build(sources[name], tmp_path / "sdist", "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    [unpacked] = (tmp_path / "unpacked").iterdir()
    again = build(unpacked, tmp_path / "wheel")
    with zipfile.ZipFile(again) as second, zipfile.ZipFile(wheels[name]) as first:
        assert sorted(second.namelist()) == sorted(first.namelist())


@pytest.mark.skipif("TOX_ENV_NAME" not in os.environ, reason="outside tox, an editable core is fine")
def test_what_is_tested_is_what_is_installed() -> None:
    import harness_core

    assert "site-packages" in Path(harness_core.__file__).parts
