"""What pages show of the command line is what one gets: their console blocks are typed, and the output is compared.

A block with a title is a file, and is written first. In expected output, ``...`` alone on a line stands for any lines,
within a line for any characters.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("harness_plugins/*/README.md")])
SHORT = {page: str(page.relative_to(ROOT)) for page in PAGES}

FENCE = re.compile(r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL)


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


def harness(command: str, folder: Path) -> tuple[str, int]:
    words = shlex.split(command)
    assert words[0] == "harness", f"only the harness command can be checked, not {words[0]!r}; use a sh block"
    kept = {name: value for name, value in os.environ.items() if not name.endswith("API_KEY")}
    done = subprocess.run(
        [sys.executable, "-m", "harness_core.cli", *words[1:]],
        cwd=folder,
        env={**kept, "COLUMNS": "120", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout, done.returncode


def test_a_block_is_compared_line_by_line() -> None:
    assert typed("$ a\nb\n$ c\n") == [("a", "b\n"), ("c", "")]
    assert pattern("a\n...\nb ... d\n").fullmatch("a\nx\ny\nb c d\n")
    assert pattern("...\nb\n").fullmatch("b\n")
    assert not pattern("a\nb\n").fullmatch("a\nc\nb\n")
    assert not pattern("").fullmatch("a\n")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```console" in page.read_text(encoding="utf-8")], ids=SHORT.get
)
def test_the_output_on_a_page_is_the_output_of_the_command(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        if fence["title"]:
            file = folder / fence["title"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(fence["body"], encoding="utf-8")
        elif fence["language"] == "console":
            for command, shown in typed(fence["body"]):
                output, _ = harness(command, folder)
                assert pattern(shown).fullmatch(output), f"$ {command}\n{output}"
