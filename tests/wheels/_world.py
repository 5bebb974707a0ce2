"""A fresh environment, wheels of invented plugins, and what the commands report about them."""

from __future__ import annotations

import json
import os
import textwrap
from contextlib import chdir
from pathlib import Path

import attrs
import hatchling.build

from harness_core.testing.venv import FreshVenv

GOOD = """
from harness_core import ToolSchema, hookimpl


class Weather:
    @hookimpl
    def harness_setup(self, ctx):
        ctx.prompt.section("weather:how", "Speak of the weather.", order=20)
        ctx.prompt.section("weather:tone", "Be cheerful.", order=30)
        ctx.prompt.context("weather:sky", "The sky is blue.", order=50)
        ctx.tools.register(ToolSchema("forecast", "The forecast."), lambda call: "Rain.")

    @hookimpl
    def agent_pre_step(self, step):
        return None
"""

# Runs commands one after another in one process, each as `harness` itself would: starting Python takes longest.
_RUN = """
import contextlib, io, json, sys, traceback
from harness_core.cli import main
answers = []
for words in json.loads(sys.argv[1]):
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["harness", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""


@attrs.frozen
class Report:
    """What a command printed. ``text`` has its white space folded: where lines break says nothing."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return " ".join(self.out.split())


class World:
    """One environment for all tests of a module; each installs what it needs over what was there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._built: dict[tuple[str, ...], Path] = {}
        self.venv = FreshVenv(folder / "venv", offline=True)
        self.project = folder / "project"
        self.project.mkdir()
        self._lock = self.project / "harness.lock.json"
        self._kept = ""
        self.compose("")

    def keep_lock(self) -> None:
        """Begin every test with the lock that is there now."""
        self._kept = self._lock.read_text(encoding="utf-8")

    def start(self) -> None:
        """Begin a test: an empty composition, and the kept lock."""
        self.compose("")
        self._lock.write_text(self._kept, encoding="utf-8")

    def compose(self, text: str) -> None:
        (self.project / "harness.toml").write_text(textwrap.dedent(text), encoding="utf-8")

    def wheel(
        self,
        version: str,
        code: str = GOOD,
        *,
        name: str = "acme-weather",
        entry: str | None = None,
        requires: str = "pluggy-harness>=0.1",
    ) -> Path:
        """A wheel of a distribution with one module, built by a backend that people use."""
        module = name.replace("-", "_")
        source = self._folder / f"{name}-{version}"
        source.mkdir(exist_ok=True)
        (source / f"{module}.py").write_text(code, encoding="utf-8")
        (source / "pyproject.toml").write_text(
            f'[project]\nname = "{name}"\nversion = "{version}"\ndependencies = ["{requires}"]\n'
            f'[project.entry-points."harness.plugins"]\nweather = "{entry if entry is not None else module + ":Weather"}"\n'
            f'[tool.hatch.build.targets.wheel]\nonly-include = ["{module}.py"]\n',
            encoding="utf-8",
        )
        with chdir(source):
            return source / hatchling.build.build_wheel(os.fspath(source))

    def install(self, version: str, code: str = GOOD, **options: str) -> None:
        wheel = self.wheel(version, code, **options)
        self._pip("install", "--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check", str(wheel))

    def uninstall(self, name: str) -> None:
        self._pip("uninstall", "--yes", name)

    def _pip(self, *arguments: str) -> None:
        # The environment sees this one's pip: in half the time of one pip that starts another in there.
        done = self.venv.run("-m", "pip", *arguments)
        assert done.returncode == 0, done.stderr

    def metadata(self, file: str = "METADATA") -> Path:
        """A file of the metadata that pip left of the installed plugin."""
        [found] = self.venv.folder.glob(f"lib/*/site-packages/acme_weather-*.dist-info/{file}")
        return found

    def reports(self, *commands: str) -> list[Report]:
        """What commands report. None of them may show a traceback, in whatever state the environment is."""
        words = json.dumps([command.split() for command in commands])
        done = self.venv.run("-c", _RUN, words, cwd=self.project, env={"COLUMNS": "200"})
        assert done.returncode == 0, done.stderr
        found = [Report(*answer) for answer in json.loads(done.stdout)]
        for report in found:
            assert "Traceback" not in report.out + report.err, report.out + report.err
        return found

    def statuses(self, report: Report) -> dict[str | None, dict[str, object]]:
        """The plugins called "weather" by distribution, from ``plugins --json``."""
        assert report.code == 0
        listed = json.loads(report.out)["plugins"]
        return {each.get("distribution"): each for each in listed if each["name"] == "weather"}
