"""Searching files below a root by regular expression, with limits on time, files, and matches.

Patterns come from a model and may be ones that take forever. The regex module gives each match a time limit and lets
other threads run meanwhile, neither of which the standard library's does.
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Callable, Iterator

import regex

from harness_workspace._page import Page
from harness_workspace._paths import PathRefusedError, Place, resolve
from harness_workspace._reading import MAX_FILE_BYTES, SKIPPED_FOLDERS, lines_of, text_of

__all__ = ["search"]

MAX_MATCHES = 200
"""Matches of one `search`."""
MAX_FILES = 20_000
"""Files that one `search` opens."""
MAX_SECONDS = 20.0
"""Time that one `search` may take."""
_WINDOW = 400
"""Characters that are shown of a matching line, around the match."""


def _nothing() -> None: ...


def search(
    root: str | os.PathLike[str],
    pattern: str,
    named: str = ".",
    glob: str = "*",
    *,
    budget: int = 48_000,
    check: Callable[[], object] = _nothing,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Lines that match a regular expression, as ``file:line: text``; ``check`` is called often, and may raise to stop.

    Raises:
        PathRefusedError: the pattern is no regular expression, or the path lies outside or is neither file nor folder.
        OSError: the path does not exist.
    """
    try:
        wanted = regex.compile(pattern)
    except regex.error as error:
        raise PathRefusedError(f"The pattern is no regular expression: {error}.") from None
    page = Page(budget)
    end = clock() + MAX_SECONDS
    opened = unreadable = partly = 0
    for place in _files_below(resolve(root, named)):
        check()
        if not (fnmatch.fnmatch(place.parts[-1], glob) or fnmatch.fnmatch(place.shown, glob)):
            continue
        opened += 1
        if opened > MAX_FILES:
            page.notice(f"stopped after {MAX_FILES} files")
            break
        try:
            found = text_of(place)
        except PathRefusedError:
            continue  # binary, or not a file any more
        except OSError:
            unreadable += 1
            continue
        partly += not found.is_whole
        try:
            whole = _search_text(page, place.shown, found.text, wanted, lambda: end - clock())
        except TimeoutError:
            page.notice(
                f"stopped after {MAX_SECONDS:.0f} seconds, in {place.shown}; use a simpler pattern or fewer files"
            )
            break
        if not whole:
            page.notice(f"stopped after {len(page)} matches")
            break
    if unreadable:
        page.notice(f"{unreadable} files could not be read")
    if partly:
        page.notice(f"{partly} files were searched only in their first {MAX_FILE_BYTES} bytes")
    return page.text("No matches.")


def _search_text(page: Page, name: str, text: str, wanted: regex.Pattern[str], left: Callable[[], float]) -> bool:
    """Add the matches of one file; False when no more fit.

    Raises:
        TimeoutError: no time is left.
    """
    for number, line in enumerate(lines_of(text), start=1):
        seconds = left()
        if seconds <= 0:
            raise TimeoutError
        match = wanted.search(line, concurrent=True, timeout=seconds)
        if match is None:
            continue
        start = max(0, min(match.start() - _WINDOW // 2, len(line) - _WINDOW))
        shown = f"{'...' if start else ''}{line[start : start + _WINDOW]}{'...' if start + _WINDOW < len(line) else ''}"
        if len(page) >= MAX_MATCHES or not page.add(f"{name}:{number}: {shown}"):
            return False
    return True


def _files_below(start: Place) -> Iterator[Place]:
    """The files below a folder, or the file itself; each folder's files by name, then its folders."""
    if not start.is_folder():
        yield start
        return
    waiting = [start]
    while waiting:
        folder = waiting.pop()
        try:
            entries = folder.entries()
        except (OSError, PathRefusedError):
            if folder is start:
                raise
            continue
        yield from (folder.child(each.name) for each in entries if not each.is_folder and not each.is_link)
        folders = [each.name for each in entries if each.is_folder and each.name not in SKIPPED_FOLDERS]
        waiting += [folder.child(name) for name in reversed(folders)]
