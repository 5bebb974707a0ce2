"""Places: the project's root, the directories whose files count, and how they are shown. Reads no content."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import attrs

from harness_agent_instructions._reading import Found, Reader
from harness_agent_instructions.config import USER_FILE, Settings

__all__ = ["ROOT", "Directory", "Project", "find_project", "touched_directories"]

ROOT = "."
"""How the project's root is shown."""
MOST_LEVELS = 64
"""Levels below the working directory that one touched file can make us look at: far deeper than any source tree."""


@attrs.frozen
class Directory:
    """A directory whose instruction files count. ``shown`` is relative to the root, and None for the user's folder."""

    path: str
    shown: str | None
    names: tuple[str, ...]

    def label(self, name: str, settings: Settings) -> str:
        """A file of this directory as it is shown, in the text and in the message's source."""
        if self.shown is None:
            return f"{settings.home_label}/{name}"
        return name if self.shown == ROOT else f"{self.shown}/{name}"

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)


@attrs.frozen
class Project:
    """Where a session works: its root, and the directories that its first list of instructions is made of."""

    root: str
    cwd: str
    base: tuple[Directory, ...]
    """The user's folder, then the root and so on down to the working directory."""
    settings: Settings

    @property
    def identity(self) -> str:
        return self.settings.identity(_relative(self.root, self.cwd))

    def nested(self, paths: Iterable[str], shown: Iterable[str]) -> list[Directory]:
        """The directories at these paths and under these shown names that are no base ones, broadest first."""
        known = {directory.path for directory in self.base}
        found: dict[str, Directory] = {}
        for path in [*paths, *(os.path.normpath(os.path.join(self.root, each)) for each in shown)]:
            if path not in known and path not in found:
                found[path] = Directory(path, _relative(path, self.root), self.settings.candidates)
        return sorted(found.values(), key=lambda each: tuple((each.shown or "").split("/")))


def _relative(path: str, start: str) -> str:
    """A relative path in POSIX style and valid Unicode, whatever bytes the file system has in its names."""
    relative = os.path.relpath(path, start).replace(os.sep, "/")
    return relative.encode("utf-8", "backslashreplace").decode("utf-8")


async def find_project(reader: Reader, cwd: str, settings: Settings) -> Project:
    """The project around a working directory; its root is looked for anew each time."""
    chain = _chain_to_root(os.path.abspath(cwd))  # noqa: ASYNC240  # looks at no file
    cwd = root = chain[-1]
    for directory in reversed(chain):
        if await _is_marked(reader, directory, settings.markers):
            root = directory
            break
    base = [Directory(settings.home, None, (USER_FILE,))]
    for path in chain[chain.index(root) :]:
        # What is loaded as the user's own file is not loaded a second time as the project's.
        names = [name for name in settings.candidates if (path, name) != (settings.home, USER_FILE)]
        base.append(Directory(path, _relative(path, root), tuple(names)))
    return Project(root, cwd, tuple(base), settings)


def _chain_to_root(cwd: str) -> list[str]:
    chain = [cwd]
    while (parent := os.path.dirname(chain[-1])) != chain[-1]:
        chain.append(parent)
    return chain[::-1]


async def _is_marked(reader: Reader, directory: str, markers: Sequence[str]) -> bool:
    for marker in markers:
        if isinstance(await reader.probe(os.path.join(directory, marker), any_kind=True), Found):
            return True
    return False


def touched_directories(cwd: str, file_path: object) -> tuple[str, ...]:
    """The directories strictly below ``cwd`` down to the parent of a file that a tool was given, broadest first.

    Compares path parts, so that a name which only begins with two dots is a name like any other (X-06).
    """
    if not isinstance(file_path, str) or not file_path.strip() or "\0" in file_path:
        return ()
    cwd = os.path.abspath(cwd)
    parent = os.path.dirname(os.path.normpath(os.path.join(cwd, file_path)))
    try:
        parent.encode("utf-8")  # other names could not be told of in a log
        parts = os.path.relpath(parent, cwd).split(os.sep)
    except ValueError:  # also another drive
        return ()
    if parts[0] in (os.curdir, os.pardir):
        return ()
    return tuple(os.path.join(cwd, *parts[:count]) for count in range(1, min(len(parts), MOST_LEVELS) + 1))
