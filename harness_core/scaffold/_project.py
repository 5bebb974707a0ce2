"""The files of a new plugin beside its code: project table, README, workflow of continuous integration, licence."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib import resources
from string import Template

from packaging.version import Version

from harness_core.scaffold._parts import Part
from harness_core.scaffold._source import keys_of, package_files, parts_of, test_files
from harness_core.scaffold.choices import HOOKS, LANES, Choices, ScaffoldError

__all__ = ["project_files"]


def project_files(choices: Choices) -> dict[str, str]:
    """All files of the distribution, by their path below its folder.

    Raises:
        ScaffoldError: the plugin would do nothing.
    """
    if not choices.lanes and not choices.hooks:
        raise ScaffoldError(
            "A plugin without a lane and without a hook would do nothing.",
            remedy=f"Choose a lane ({', '.join(LANES)}) or a hook ({', '.join(HOOKS)}).",
        )
    parts = parts_of(choices)
    files = {
        ".github/workflows/ci.yml": _WORKFLOW.replace("DISTRIBUTION", choices.distribution),
        ".gitignore": _IGNORED,
        "LICENSE": _licence(choices),
        "README.md": _readme(choices, parts),
        "pyproject.toml": _pyproject(choices),
        **{f"src/{choices.module}/{name}": text for name, text in package_files(choices).items()},
        **{f"tests/{name}": text for name, text in test_files(choices).items()},
    }
    return {path: text for path, text in files.items() if text or path.endswith("py.typed")}


def _licence(choices: Choices) -> str:
    """The text, with who holds the rights; nothing where the plugin has no licence."""
    if choices.licence == "none":
        return ""
    text = resources.files("harness_core.scaffold").joinpath("licences", f"{choices.licence}.txt")
    author = re.sub(r"\s*<[^>]*>", "", choices.author) or f"the {choices.distribution} authors"
    return Template(text.read_text(encoding="utf-8")).safe_substitute(year=choices.year, author=author)


# --- pyproject.toml ---------------------------------------------------------------------------------------------------


def _pyproject(choices: Choices) -> str:
    """The project table.

    The range of the core begins with the minor version that the plugin is made with: hooks gain arguments in minor
    versions and lose none, so there is no upper end before the next major one.
    """
    version = Version(choices.core)
    code = "\n".join(package_files(choices).values())
    least = version.public if version.is_prerelease else f"{version.major}.{version.minor}"
    requires = [f"pluggy-harness>={least}"]
    if "import attrs" in code:
        requires.append("attrs>=24.1")
    licence = [f'license = "{choices.licence}"', 'license-files = ["LICENSE"]']
    author = re.fullmatch(r"\s*(.*?)\s*(?:<\s*([^<>\s]+@[^<>\s]+)\s*>)?\s*", choices.author)
    name, mail = (author[1], author[2]) if author is not None else (choices.author, None)
    fields = [f"{key} = {_toml(value)}" for key, value in (("name", name), ("email", mail)) if value]
    private = ["Private :: Do Not Upload"] if choices.licence == "none" else []
    classifiers = [
        "Development Status :: 3 - Alpha",
        "Framework :: AnyIO",
        "Intended Audience :: Developers",
        *private,
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Typing :: Typed",
    ]
    lines = [
        "[build-system]",
        'requires = ["hatchling>=1.27"]',
        'build-backend = "hatchling.build"',
        "",
        "[project]",
        f'name = "{choices.distribution}"',
        'version = "0.1.0"',
        f"description = {_toml(choices.summary)}",
        'readme = "README.md"',
        *(licence if choices.licence != "none" else []),
        *([f"authors = [{{ {', '.join(fields)} }}]"] if fields else []),
        'requires-python = ">=3.11"',
        f"keywords = [{', '.join(_toml(word) for word in sorted({'agents', 'pluggy-harness', 'prompt', choices.name}))}]",
        "classifiers = [",
        *(f'  "{each}",' for each in classifiers),
        "]",
        f"dependencies = [{', '.join(_toml(each) for each in requires)}]",
        "",
        "[project.optional-dependencies]",
        'dev = ["build>=1.2", "mypy>=1.11", "pytest>=8", "ruff>=0.6"]',
        "",
        '[project.entry-points."harness.plugins"]',
        f'{choices.name} = "{choices.module}:{choices.class_name}"',
        "",
        "[tool.hatch.build.targets.wheel]",
        f'packages = ["src/{choices.module}"]',
        "",
        "[tool.hatch.build.targets.sdist]",
        f'include = ["src", "tests", "README.md"{"" if choices.licence == "none" else ", " + _toml("LICENSE")}]',
        "",
        "[tool.pytest.ini_options]",
        'addopts = ["--strict-markers", "--strict-config"]',
        'testpaths = ["tests"]',
        "",
        "[tool.mypy]",
        "strict = true",
        'files = ["src", "tests"]',
        "",
        "[tool.ruff]",
        "line-length = 120",
        "",
        "[tool.ruff.lint]",
        'select = ["B", "E", "F", "I", "N", "PIE", "PT", "RUF", "SIM", "UP", "W"]',
        'ignore = ["E501"]  # the formatter decides where lines break; texts for a model stay whole',
        "",
        "[tool.ruff.lint.isort]",
        "combine-as-imports = true",
    ]
    return "\n".join(lines) + "\n"


def _toml(value: str) -> str:
    """A basic string; printable text needs no other escapes than JSON's."""
    return json.dumps(value, ensure_ascii=False)


# --- README.md --------------------------------------------------------------------------------------------------------


def _readme(choices: Choices, parts: Sequence[Part]) -> str:
    blocks = [
        f"# {choices.distribution}",
        choices.summary if choices.summary[-1:] in ".!?" else f"{choices.summary}.",
        f"A plugin for [pluggy-harness](https://pypi.org/project/pluggy-harness/). "
        f"After `pip install {choices.distribution}` every harness finds it.",
        "## What it contributes",
        _table(("what", "order", "what it does"), [part.row for part in parts]),
        "Sections are ordered among sections, and contexts among contexts; listeners have no order number of their own: they "
        "run in pluggy's order, later installed ones further out.",
    ]
    if choices.config:
        keys = keys_of(parts)
        settings = "\n".join(f"{key.name} = {key.toml}" for key in keys)
        blocks += [
            "## Settings",
            f"In the composition file, `harness.toml`:\n\n```toml\n[plugins.{choices.name}.config]\n{settings}\n```",
            _table(("key", "type", "meaning"), [(f"`{key.name}`", f"`{key.kind}`", key.doc) for key in keys]),
        ]
    blocks += [
        "## Developing",
        "```sh\npython -m venv .venv\n.venv/bin/pip install -e '.[dev]'\n.venv/bin/pytest\n.venv/bin/mypy\n"
        f".venv/bin/ruff check . && .venv/bin/ruff format --check .\n.venv/bin/harness plugin check {choices.distribution} --strict\n```",
    ]
    return "\n\n".join(blocks) + "\n"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


# --- files that are the same for all ----------------------------------------------------------------------------------

_IGNORED = """\
__pycache__/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.venv/
build/
dist/
*.egg-info/
.harness/
"""

_WORKFLOW = """\
name: ci

on:
  push:
  pull_request:

permissions:
  contents: read

jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      fail-fast: false
      matrix:
        python: ["3.11", "3.12", "3.13"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: ${{ matrix.python }}
      - run: python -m pip install '.[dev]'
      - run: pytest
      - run: harness plugin check DISTRIBUTION --strict
      - run: mypy
      - run: ruff check .
      - run: ruff format --check .
      - run: python -m build
"""
