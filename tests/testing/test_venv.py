"""Environments of their own: a plugin's folder is built and installed with pip, and runs beside nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness_core.errors import HarnessError
from harness_core.host.discovery import core_version
from harness_core.testing import FreshVenv, run_in_fresh_venv
from harness_core.testing.venv import _running_harness

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "weather-plugin"
version = "1.0"
dependencies = ["pluggy-harness>=0.1"]

[project.entry-points."harness.plugins"]
weather = "weather_plugin"
"""
MODULE = """
from harness_core import hookimpl


@hookimpl
def harness_setup(ctx):
    ctx.prompt.section("weather:how", "Ask first.", order=120)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "weather_plugin").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (folder / "weather_plugin" / "__init__.py").write_text(MODULE, encoding="utf-8")
    return folder


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="what pip does is the same on every Python")
def test_a_project_is_installed_and_is_the_only_plugin_there(project: Path, tmp_path: Path) -> None:
    done = run_in_fresh_venv(tmp_path, "harness", "plugins", install=[project], offline=True)
    assert done.returncode == 0, done.stderr
    assert "weather weather-plugin 1.0  active\n" in done.stdout
    assert "workspace" not in done.stdout


def test_what_is_installed_as_the_harness_is_this_one() -> None:
    wanted = _running_harness()
    assert wanted == f"pluggy-harness=={core_version()}" or wanted.startswith("pluggy-harness @ file:///")


def test_an_environment_answers_and_keeps_what_is_this_process_s_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    made = FreshVenv(tmp_path / "venv", offline=True)
    code = (
        "import json, os, sys, harness_core; from harness_core.host.discovery import core_version, discover;"
        "print(json.dumps([sys.prefix, 'PYTHONWARNINGS' in os.environ, os.environ['CITY'], core_version(),"
        " [s.name for s in discover()]]))"
    )
    prefix, warns, city, version, plugins = made.ask(code, env={"CITY": "Rome"})
    assert Path(prefix) == made.folder
    assert (warns, city, plugins) == (False, "Rome", [])
    assert version
    assert made.run("-c", "import sys; sys.exit(3)").returncode == 3
    assert made.run("python", "-c", "print(1)").stdout == "1\n"
    with pytest.raises(HarnessError, match="status 0 and printed no JSON"):
        made.ask("print('hello')")
    with pytest.raises(HarnessError, match="pip could not install nowhere-to-be-found"):
        made.install("nowhere-to-be-found")
