"""The pages of the documentation and the fenced blocks on them, with what a test has to do with each.

What a block says of itself decides, and nothing is passed over in silence:

- ``python`` runs, from the top of the page to its bottom; ``toml`` and ``json`` are parsed; ``console`` is typed, and its
  output compared;
- a block with a title, on a page where something is typed further down, is a file, which is written before;
- a page with the line ``<!-- needs: MODULE -->`` is tested where that module is installed (requirements/loops.txt);
- everything else (``sh``, ``text``) needs a comment on the line above it that says why it is not tested, such as
  ``<!-- not tested: needs the package index -->``. Commands of `harness` in it are looked at nevertheless.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
CODE_PAGES = sorted([*ROOT.glob("docs/reference/errors/*.md"), *ROOT.glob("docs/reference/findings/*.md")])
"""Their examples fail on purpose: a test of their own runs them (test_errors_index.py)."""
PAGES = sorted(
    {ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("harness_plugins/*/README.md")} - set(CODE_PAGES)
)
SHORT = {page: str(page.relative_to(ROOT)) for page in PAGES}

TESTED = frozenset({"python", "toml", "json", "console"})

_OPENING = re.compile(r"^(?P<indent>[ >]*)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
_INFO = re.compile(r'(?P<language>\w+)(?: title="(?P<title>[^"]+)")?')
_NEEDS = re.compile(r"^<!-- needs: (?P<module>\w+) -->$", re.MULTILINE)
_REASON = re.compile(r"<!-- not tested: (?P<reason>.{10,}) -->")


@attrs.frozen
class Block:
    """A fenced block. ``line`` is the first one of its body, counted from 1."""

    language: str
    body: str
    line: int
    title: str | None = None
    reason: str | None = None
    """Why it is not tested."""

    written: bool = False
    """Is it a file that what is typed further down uses? The title of any other block only says what it is about."""

    @property
    def problem(self) -> str | None:
        """What is wrong with the block as a block."""
        if self.written and self.reason is not None:
            return "the file is written, and whatever uses it tests it: it needs no reason not to be tested"
        if not self.written and self.reason is None and self.language not in TESTED:
            return f"a {self.language} block is not tested: say why, in a comment above it"
        return None


def parsed(text: str) -> list[Block]:
    """All fenced blocks of a page.

    Raises:
        ValueError: a fence is not closed, is indented, or says of itself what nobody understands.
    """
    found: list[Block] = []
    lines = text.splitlines(keepends=True)
    number = 0
    while number < len(lines):
        opening = _OPENING.match(lines[number].rstrip("\n"))
        number += 1
        if opening is None:
            continue
        where = f"line {number}"
        if opening["indent"] or opening["fence"] != "```":
            raise ValueError(f"{where}: blocks begin at the margin, with three backticks")
        info = _INFO.fullmatch(opening["info"])
        if info is None:
            raise ValueError(f'{where}: {opening["info"]!r} is no language, nor a language with title="..."')
        above = _REASON.fullmatch(lines[number - 2].strip()) if number > 1 else None
        first = number
        while number < len(lines) and lines[number].rstrip() != "```":
            number += 1
        if number == len(lines):
            raise ValueError(f"{where}: the block has no end")
        reason = above["reason"] if above is not None else None
        found.append(Block(info["language"], "".join(lines[first:number]), first + 1, info["title"], reason))
        number += 1
    typed = max((place for place, block in enumerate(found) if block.language == "console"), default=-1)
    return [attrs.evolve(block, written=block.title is not None and place < typed) for place, block in enumerate(found)]


@cache
def blocks(page: Path) -> list[Block]:
    return parsed(page.read_text(encoding="utf-8"))


def to_check(page: Path, language: str) -> list[Block]:
    """The blocks of a language that are no files, and that are tested."""
    return [each for each in blocks(page) if each.language == language and not each.written and each.reason is None]


def needed(page: Path) -> list[str]:
    """The modules that the Python of a page needs and that are not installed with every Python."""
    return _NEEDS.findall(page.read_text(encoding="utf-8"))


def with_blocks(language: str) -> list[Path]:
    """The pages that have tested blocks of a language. One that cannot be parsed is found by another test."""
    found = []
    for page in PAGES:
        try:
            if to_check(page, language):
                found.append(page)
        except ValueError:
            continue
    return found
