"""What pages show of the command line is what one gets: their console blocks are typed, and the output is compared.

A block with a title is a file, and is written first. In expected output, ``...`` alone on a line stands for any lines,
within a line for any characters. ``harness``, ``pip``, ``pytest`` and ``python`` can be typed, also as
``echo "..." | harness chat``. A page says with a comment
such as ``<!-- environment: core workspace -->`` that it is about a fresh environment with the core and these plugins;
otherwise everything is installed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from tests.docs._pages import ROOT, SHORT, blocks, with_blocks

MODULES = {"harness": "harness_core.cli", "pip": "pip", "pytest": "pytest", "python": None}
"""The programs that can be typed, and the modules that they run."""

OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
"""pip as on the reader's machine, without its way to the package index; building uses the backend that is here."""

PLAIN = {"COLUMNS": "120", "NO_COLOR": "1", "PYTEST_ADDOPTS": "-p no:asyncio -p no:cacheprovider"}
"""How things are shown; without plugins of pytest that happen to be here and warn of their own settings."""

ENVIRONMENT = re.compile(r"^<!-- environment: (?P<plugins>[a-z\- ]+) -->$", re.MULTILINE)


def typed(body: str) -> list[tuple[str, str]]:
    """The commands of a block, each with the output that is shown for it."""
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)
    assert not parts[0].strip(), "a console block begins with a command"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def pattern(shown: str) -> re.Pattern[str]:
    lines = []
    for line in shown.rstrip("\n").splitlines():
        if line == "...":
            lines.append(r"(?:[^\n]*\n)*")
        else:
            lines.append(".*".join(re.escape(part) for part in line.split("...")) + r"[ ]*\n")
    return re.compile("".join(lines))


def run(command: str, folder: Path, python: str = sys.executable) -> str:
    """What a command writes, to wherever, without blank lines at its end."""
    words, said = shlex.split(command), ""
    if words[0] == "echo" and words[2:3] == ["|"]:
        words, said = words[3:], f"{words[1]}\n"
    assert words[0] in MODULES, f"{words[0]!r} cannot be typed here, only {', '.join(MODULES)}; use a sh block"
    module = MODULES[words[0]]
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("API_KEY") and not name.startswith(("PYTHON", "PYTEST", "COV", "PIP_", "HARNESS_"))
    }
    done = subprocess.run(
        [python, *(("-m", module) if module else ()), *words[1:]],
        cwd=folder,
        env={**kept, **OFFLINE, **PLAIN},
        input=said,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return re.sub(r"\n\s*\Z", "\n", done.stdout)


def fresh(folder: Path, plugins: list[str]) -> str:
    """An interpreter that sees this one's dependencies, the core, and only those of the project's plugins."""
    venv.create(folder, with_pip=False, symlinks=True)
    [site] = folder.glob("lib/python3.*/site-packages")
    linked = folder / "linked"
    linked.mkdir()
    for path in {Path(path) for path in sys.path if path.endswith("-packages")}:
        for entry in path.iterdir():
            ours = entry.name.startswith(("harness_", "pluggy_harness", "_pluggy_harness", "__editable__"))
            if not ours and entry.suffix != ".pth":
                (linked / entry.name).symlink_to(entry)
    for name in ["", *(f"-{plugin}" for plugin in plugins)]:
        distribution = importlib.metadata.distribution(f"pluggy-harness{name}")
        project = ROOT / "harness_plugins" / name[1:] if name else ROOT
        table = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert distribution.version == table["version"]
        info = Path(
            str(distribution.locate_file(f"{distribution.name.replace('-', '_')}-{distribution.version}.dist-info"))
        )
        module = next(iter(table.get("entry-points", {}).get("harness.plugins", {"": "harness_core"}).values()))
        package = importlib.util.find_spec(module.partition(":")[0])
        assert package is not None
        assert package.origin is not None
        (linked / info.name).symlink_to(info)
        (linked / Path(package.origin).parent.name).symlink_to(Path(package.origin).parent)
    (site / "linked.pth").write_text(f"{linked}\n", encoding="utf-8")
    return str(folder / "bin" / "python")


def test_a_block_is_compared_line_by_line() -> None:
    assert typed("$ a\nb\n$ c\n") == [("a", "b\n"), ("c", "")]
    assert pattern("a\n...\nb ... d\n").fullmatch("a\nx\ny\nb c d\n")
    assert pattern("...\nb\n").fullmatch("b\n")
    assert not pattern("a\nb\n").fullmatch("a\nc\nb\n")
    assert not pattern("").fullmatch("a\n")


@pytest.mark.parametrize("page", with_blocks("console"), ids=SHORT.get)
def test_the_output_on_a_page_is_the_output_of_the_command(page: Path, tmp_path: Path) -> None:
    if page.name != "README.md" and sys.version_info[:2] != (3, 11):
        pytest.skip("what commands write does not depend on the version of Python")
    folder = tmp_path / "project"
    folder.mkdir()
    environment = ENVIRONMENT.search(page.read_text(encoding="utf-8"))
    python = fresh(tmp_path / "env", environment["plugins"].split()[1:]) if environment else sys.executable
    for block in blocks(page):
        if block.written and block.title:
            file = folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.body, encoding="utf-8")
        elif block.language == "console" and block.reason is None:
            for command, shown in typed(block.body):
                output = run(command, folder, python)
                assert pattern(shown).fullmatch(output), f"$ {command}\n{output}"
