"""Distributions that tests write: found by their metadata like installed ones, importable, and gone after the test."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Written = Callable[..., None]

METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: 1.0
{more}
{readme}
"""
COMPLETE = "Keywords: pluggy-harness\nRequires-Python: >=3.11\nRequires-Dist: pluggy-harness>=0.1\n"


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """``distribution(code, readme="...", ...)``: a distribution ``weather-plugin`` with the module ``weather_plugin``."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")])))

    def write(
        code: str,
        *,
        readme: str = "The weather.",
        metadata: str = COMPLETE,
        typed: bool = True,
        plugins: str = "weather = weather_plugin:Weather",
        name: str = "weather-plugin",
    ) -> None:
        package = name.replace("-", "_")
        folder = site / package
        folder.mkdir()
        (folder / "__init__.py").write_text(textwrap.dedent(code), encoding="utf-8")
        if typed:
            (folder / "py.typed").touch()
        info = site / f"{package}-1.0.dist-info"
        info.mkdir()
        text = METADATA.format(name=name, more=metadata, readme=readme)
        (info / "METADATA").write_text(text, encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[harness.plugins]\n{plugins}\n", encoding="utf-8")

    variables = dict(os.environ)
    yield write
    for name in {*os.environ} - {*variables}:  # what a plugin set when it was imported here
        del os.environ[name]
    for module in [name for name in sys.modules if name.partition(".")[0] in ("weather_plugin", "other_plugin")]:
        del sys.modules[module]
