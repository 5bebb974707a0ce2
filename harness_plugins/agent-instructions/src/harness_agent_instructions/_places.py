"""Places: the project's root, the directories whose files count, and how they are shown. Reads no content."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache

import attrs

from harness_agent_instructions._reading import Found, Reader
from harness_agent_instructions._state import FileKey
from harness_agent_instructions.config import USER_FILE, Settings

__all__ = ["ROOT", "Candidate", "Directory", "Project", "find_project", "touched_directories"]

ROOT = "."
"""How the project's root is shown."""
MOST_LEVELS = 64
"""Levels below the working directory that one touched file can make us look at: far deeper than any source tree."""
_REMEMBERED = 512
"""Places whose names are kept worked out: they are looked at before every step."""


@attrs.frozen
class Candidate:
    """A file that counts if it exists: how it is told apart, how it is shown, and where it is."""

    key: FileKey
    path: str
    place: str


@attrs.frozen
class Directory:
    """A directory whose instruction files count. ``shown`` is relative to the root, and None for the user's folder."""

    path: str
    shown: str | None
    candidates: tuple[Candidate, ...]

    def former(self, name: str) -> FileKey | None:
        """The key of a file that is no candidate any more; None where it is one."""
        if any(candidate.key.name == name for candidate in self.candidates):
            return None
        return FileKey(self.shown, name)


@attrs.frozen
class Project:
    """Where a session works: its root, and the directories that its first list of instructions is made of."""

    root: str
    cwd: str
    base: tuple[Directory, ...]
    """The user's folder, then the root and so on down to the working directory."""
    settings: Settings
    identity: str
    """What must be equal for a list of instructions to be still the right one."""

    def nested(self, paths: Iterable[str], shown: Iterable[str]) -> list[Directory]:
        """The directories at these paths and under these shown names that are no base ones, broadest first."""
        known = {directory.path for directory in self.base}
        found = {*paths, *(os.path.normpath(os.path.join(self.root, each)) for each in shown)} - known
        directories = [_directory(path, self.root, self.settings) for path in found]
        return sorted(directories, key=lambda each: (each.shown or "").split("/"))


def _relative(path: str, start: str) -> str:
    """A relative path in POSIX style and valid Unicode, whatever bytes the file system has in its names."""
    relative = os.path.relpath(path, start).replace(os.sep, "/")
    return relative.encode("utf-8", "backslashreplace").decode("utf-8")


@lru_cache(_REMEMBERED)
def _directory(path: str, root: str, settings: Settings) -> Directory:
    shown = _relative(path, root)
    prefix = "" if shown == ROOT else f"{shown}/"
    # What is loaded as the user's own file is not loaded a second time as the project's.
    names = [name for name in settings.candidates if (path, name) != (settings.home, USER_FILE)]
    return Directory(
        path,
        shown,
        tuple(Candidate(FileKey(shown, name), f"{prefix}{name}", os.path.join(path, name)) for name in names),
    )


@lru_cache(_REMEMBERED)
def _project(root: str, cwd: str, settings: Settings) -> Project:
    user_file = Candidate(
        FileKey(None, USER_FILE), f"{settings.home_label}/{USER_FILE}", os.path.join(settings.home, USER_FILE)
    )
    chain = _chain(cwd)
    base = [_directory(path, root, settings) for path in chain[chain.index(root) :]]
    user = Directory(settings.home, None, (user_file,))
    return Project(root, cwd, (user, *base), settings, settings.identity(_relative(root, cwd)))


@lru_cache(_REMEMBERED)
def _chain(cwd: str) -> tuple[str, ...]:
    """The directories from the file system's root down to this one."""
    chain = [cwd]
    while (parent := os.path.dirname(chain[-1])) != chain[-1]:
        chain.append(parent)
    return tuple(reversed(chain))


@lru_cache(_REMEMBERED)
def _marks(cwd: str, markers: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Where a marker would make which directory the root, nearest first."""
    return tuple((os.path.join(path, marker), path) for path in reversed(_chain(cwd)) for marker in markers)


async def find_project(reader: Reader, cwd: str, settings: Settings) -> Project:
    """The project around a working directory; its root is looked for anew each time."""
    cwd = os.path.abspath(cwd)  # noqa: ASYNC240  # looks at no file
    marks = _marks(cwd, settings.markers)
    await reader.look_ahead([mark for mark, _ in marks])
    for mark, directory in marks:
        if isinstance(await reader.probe(mark, any_kind=True), Found):
            return _project(directory, cwd, settings)
    return _project(cwd, cwd, settings)


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
