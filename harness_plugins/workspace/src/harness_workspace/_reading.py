"""Reading and listing below a root. Everything is bounded; nothing here knows of tools."""

from __future__ import annotations

import os

import attrs

from harness_workspace._page import Page
from harness_workspace._paths import PathRefusedError, Place, resolve, visible

__all__ = ["SKIPPED_FOLDERS", "Text", "list_folder", "read", "text_of"]

SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv", ".tox"})
"""Folders that hold no sources of their own, and many files; entered only where they are named."""
MAX_LINES = 2000
"""Lines of one `read` unless it asks for fewer: more than a model reads with profit."""
MAX_LINE = 2000
"""Characters of one line; longer ones are minified or data, and would push everything else off the page."""
MAX_ENTRIES = 1000
"""Entries of one `list`."""
MAX_FILE_BYTES = 8 * 1024 * 1024
"""Files are read and searched no further than this."""
_BINARY_PROBE = 8192
"""A NUL this early marks a binary file; the same rule as git's."""


@attrs.frozen(kw_only=True)
class Text:
    """A file's text. ``damaged``: some bytes were no UTF-8; ``size``: bytes of the whole file."""

    text: str
    damaged: bool
    size: int

    @property
    def is_whole(self) -> bool:
        return self.size <= MAX_FILE_BYTES


def text_of(place: Place) -> Text:
    """The text of a file, as far as files are read.

    Raises:
        PathRefusedError: no regular file, or binary.
        OSError: it cannot be read.
    """
    with place.open() as file:
        data = file.read(MAX_FILE_BYTES)
        size = max(os.fstat(file.fileno()).st_size, len(data))
    if b"\0" in data[:_BINARY_PROBE]:
        raise PathRefusedError(f"{place.shown!r} is a binary file of {size} bytes.")
    try:
        return Text(text=data.decode("utf-8"), damaged=False, size=size)
    except UnicodeDecodeError as error:
        # The last character may be cut in two, which is no damage.
        cut = size > len(data) and error.start >= len(data) - 3
        return Text(text=data.decode("utf-8", errors="ignore" if cut else "replace"), damaged=not cut, size=size)


def lines_of(text: str) -> list[str]:
    """Lines as editors count them: separated by line feeds only, without the carriage return before one."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read(
    root: str | os.PathLike[str], named: str, offset: int = 1, limit: int = MAX_LINES, *, budget: int = 48_000
) -> str:
    """Lines of a text file with their numbers, from line ``offset`` on.

    Raises:
        PathRefusedError: outside the root, no regular file, or binary.
        OSError: it cannot be read.
    """
    place = resolve(root, named)
    found = text_of(place)
    lines = lines_of(found.text)
    if offset > max(len(lines), 1):
        return f"{place.shown} has {len(lines)} lines; there is nothing from line {offset} on."
    page = Page(budget)
    for number, line in enumerate(lines[offset - 1 : offset - 1 + min(limit, MAX_LINES)], start=offset):
        if not page.add(f"{number:>5}  {line[:MAX_LINE]}"):
            break
        if len(line) > MAX_LINE:
            page.notice(f"lines are cut after {MAX_LINE} characters")
    rest = len(lines) - (offset - 1) - len(page)
    if rest > 0:
        page.notice(f"{rest} more lines; read on with offset {offset + len(page)}")
    if found.damaged:
        page.notice("bytes that are not UTF-8 are shown as \ufffd")
    if not found.is_whole:
        page.notice(f"only the first {MAX_FILE_BYTES} of {found.size} bytes can be read")
    return page.text(f"{place.shown} is empty.")


def list_folder(root: str | os.PathLike[str], named: str = ".", depth: int = 1, *, budget: int = 48_000) -> str:
    """What is in a folder, folders first, down to ``depth`` levels; ``/`` marks folders and ``@`` links.

    Raises:
        PathRefusedError: outside the root, or no folder.
        OSError: it cannot be listed.
    """
    place = resolve(root, named)
    page = Page(budget)
    if not _list_into(page, place, depth, 0):
        page.notice("more entries are left out; list a folder further down")
    return page.text("(empty)")


def _list_into(page: Page, folder: Place, depth: int, level: int) -> bool:
    """Add a folder's entries; False when they do not all fit."""
    try:
        entries = folder.entries()
    except (OSError, PathRefusedError):
        if level == 0:
            raise
        return page.add(f"{'  ' * level}(not readable)")
    for entry in entries:
        mark = "/" if entry.is_folder else "@" if entry.is_link else ""
        if len(page) >= MAX_ENTRIES or not page.add(f"{'  ' * level}{visible(entry.name)}{mark}"):
            return False
        enter = entry.is_folder and depth > level + 1 and entry.name not in SKIPPED_FOLDERS
        if enter and not _list_into(page, folder.child(entry.name), depth, level + 1):
            return False
    return True
