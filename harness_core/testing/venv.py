"""Environments of their own for tests of real installs: a virtual environment with the harness, and what pip puts into it.

Owns the folder it is given. Offline, the packages of the running environment stand in for an index, the plugins that are
installed there left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import importlib_metadata

import harness_core
from harness_core.errors import HarnessError
from harness_core.host.discovery import CORE_DISTRIBUTION, ENTRY_POINT_GROUP, core_version

__all__ = ["FreshVenv", "run_in_fresh_venv"]

_TIMEOUT = 300.0
"""Seconds: an install over a slow network; a test that hangs is worse than one that fails."""


class FreshVenv:
    """A virtual environment in which the harness is installed, and nothing of what this process has besides.

    Args:
        folder: where it is made; a temporary folder of the test.
        offline: use no index: what a plugin depends on is taken from the running environment, and so is the backend that
            builds it (``hatchling``, ``setuptools``); else pip installs everything as it would for a stranger.
        harness: what pip installs as the harness, where ``offline`` is false; by default what this process runs from.

    Raises:
        HarnessError: the environment could not be made; the message has pip's output.
    """

    def __init__(self, folder: str | os.PathLike[str], *, offline: bool = False, harness: str | None = None) -> None:
        self.folder = Path(folder)
        self.offline = offline
        # Without an index, this environment's pip does the work; a new one would have to be unpacked first.
        venv.create(self.folder, with_pip=not offline, symlinks=os.name != "nt")
        scripts = self.folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = scripts / ("python.exe" if os.name == "nt" else "python")
        """The interpreter of the environment."""
        if offline:
            self._link()
        else:
            self.install(harness if harness is not None else _running_harness())

    def install(self, *requirements: str | os.PathLike[str]) -> None:
        """Install projects (folders), wheels or requirements with pip.

        Raises:
            HarnessError: pip failed; the message has its output.
        """
        words = [os.fspath(each) for each in requirements]
        if self.offline:
            pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install"]
            command = [*pip, "--no-index", "--no-deps", "--no-build-isolation", "--quiet", *words]
        else:
            command = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
        done = _run(command, cwd=self.folder, env={}, timeout=_TIMEOUT)
        if done.returncode != 0:
            raise HarnessError(
                f"pip could not install {', '.join(words)}:\n{done.stderr or done.stdout}",
                remedy="Read pip's message; offline, the build backend must be installed here."
                if self.offline
                else "Read pip's message.",
                entry=words[0] if words else None,
            )

    def run(
        self,
        *command: str | os.PathLike[str],
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = _TIMEOUT,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command there: ``harness ...``, another script of the environment, or arguments of its Python.

        Nothing of this process's own ``PYTHON...`` variables gets there. A failing command is an answer like others: look
        at ``returncode``.
        """
        words = [os.fspath(each) for each in command]
        if words and words[0] == "harness":
            words = [str(self.python), "-m", "harness_core.cli", *words[1:]]
        elif words and (found := self.python.with_name(words[0])).exists():
            words[0] = str(found)
        else:
            words = [str(self.python), *words]
        return _run(words, cwd=Path(cwd) if cwd is not None else self.folder, env=env or {}, timeout=timeout)

    def ask(self, code: str, **options: Any) -> Any:
        """What a Python program prints as JSON.

        Raises:
            HarnessError: it failed, or printed something else.
        """
        done = self.run("-c", code, **options)
        try:
            if done.returncode == 0:
                return json.loads(done.stdout)
        except ValueError:
            pass
        raise HarnessError(
            f"The program ended with status {done.returncode} and printed no JSON document.\n{done.stdout}{done.stderr}",
            remedy="Print one JSON document to standard output.",
        )

    def _link(self) -> None:
        """Make importable here what is installed in the running environment, but for its plugins."""
        folder = self.folder / "dependencies"
        folder.mkdir()
        hidden = _files_of_plugins()
        for site in dict.fromkeys(Path(path) for path in sys.path if path.endswith("-packages")):
            for entry in site.iterdir():
                target = folder / entry.name
                ours = entry.name in hidden or entry.name.startswith("__editable__") or entry.suffix == ".pth"
                if not (ours or target.is_symlink()):
                    target.symlink_to(entry, target_is_directory=entry.is_dir())
        core = folder / "harness_core"
        if not core.is_symlink():  # an editable install has the package elsewhere
            core.symlink_to(Path(harness_core.__file__).parent, target_is_directory=True)
        [site] = [*self.folder.glob("lib/python3*/site-packages"), *self.folder.glob("Lib/site-packages")]
        (site / "dependencies.pth").write_text(f"{folder}\n", encoding="utf-8")


def run_in_fresh_venv(
    folder: str | os.PathLike[str],
    *command: str | os.PathLike[str],
    install: Iterable[str | os.PathLike[str]] = (),
    offline: bool = False,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = _TIMEOUT,
) -> subprocess.CompletedProcess[str]:
    """Make an environment in ``folder``, install something into it, and run one command there.

    ``run_in_fresh_venv(tmp_path, "harness", "plugins", install=[project], offline=True)``. See `FreshVenv` for the
    arguments, and for more than one command.

    Raises:
        HarnessError: the environment could not be made, or pip failed.
    """
    made = FreshVenv(Path(folder) / "venv", offline=offline)
    for each in install:
        made.install(each)
    return made.run(*command, cwd=cwd, env=env, timeout=timeout)


def _run(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        list(command),
        cwd=cwd,
        env={**kept, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=timeout,
    )


def _files_of_plugins() -> set[str]:
    """Names in site-packages that belong to distributions that offer plugins."""
    found: set[str] = set()
    for dist in importlib_metadata.distributions():
        name = dist.metadata["Name"] or ""
        if name == CORE_DISTRIBUTION or not dist.entry_points.select(group=ENTRY_POINT_GROUP):
            continue
        found |= {file.parts[0] for file in dist.files or () if file.parts[0] not in ("..", "__pycache__")}
        found.add(f"{re.sub(r'[-_.]+', '_', name).lower()}-{dist.version}.dist-info")
    return found


def _running_harness() -> str:
    """What pip would install to get this harness: the folder that it runs from, or its version from an index."""
    origin = importlib_metadata.distribution(CORE_DISTRIBUTION).read_text("direct_url.json")
    url = str(json.loads(origin).get("url", "")) if origin else ""
    if url.startswith("file:"):
        return f"{CORE_DISTRIBUTION} @ {url}"
    return f"{CORE_DISTRIBUTION}=={core_version()}"
