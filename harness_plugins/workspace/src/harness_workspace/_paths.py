"""Places inside a workspace: resolving what a model names, and opening it without ever leaving the root.

Links are resolved first and judged by where they lead. Everything is then opened from the root one folder at a time,
each relative to the descriptor before it and following no link, so that a folder that is swapped for a link meanwhile
is refused instead of followed. Nothing here reads or writes content.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

import attrs

__all__ = ["Entry", "PathRefusedError", "Place", "resolve", "visible"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a FIFO must not wait for somebody at its other end.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class PathRefusedError(Exception):
    """What was asked for is refused; the message is meant for the model and names no place outside the root."""


@attrs.frozen(order=True)
class Entry:
    """One name in a folder; folders sort before everything else."""

    rank: int
    name: str
    is_link: bool = attrs.field(order=False)

    @property
    def is_folder(self) -> bool:
        return self.rank == 0


@attrs.frozen
class Place:
    """A place below a root that holds no link as far as was known when it was resolved; it need not exist."""

    root: str
    parts: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The place as a model sees it: relative to the root, with forward slashes, in printable characters."""
        return "/".join(map(visible, self.parts)) or "."

    def child(self, name: str) -> Place:
        return Place(self.root, (*self.parts, name))

    @contextlib.contextmanager
    def inside(self, *, create: bool = False) -> Iterator[int]:
        """The descriptor of this folder; ``create`` makes what is missing of it.

        Raises:
            PathRefusedError: a part of it is no folder, or was replaced by a link.
            OSError: it does not exist, or may not be entered.
        """
        descriptor = os.open(self.root, _FOLDER)
        try:
            for part in self.parts:
                if create:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                try:
                    deeper = os.open(part, _FOLDER, dir_fd=descriptor)
                except OSError as error:
                    # Which of the two a link gives depends on the system.
                    if error.errno in (errno.ELOOP, errno.ENOTDIR):
                        raise PathRefusedError(f"{visible(part)!r} in {self.shown!r} is no folder.") from None
                    raise
                os.close(descriptor)
                descriptor = deeper
            yield descriptor
        finally:
            os.close(descriptor)

    def beside(self, *, create: bool = False) -> contextlib.AbstractContextManager[int]:
        """The descriptor of the folder that this place is in.

        Raises:
            PathRefusedError: this is the workspace itself; otherwise see `inside`.
        """
        if not self.parts:
            raise PathRefusedError("The workspace itself is a folder.")
        return Place(self.root, self.parts[:-1]).inside(create=create)

    def open_in(self, folder: int, flags: int = os.O_RDONLY) -> int:
        """A descriptor of the regular file at this place, opened relative to the folder that it is in.

        Raises:
            PathRefusedError: it is no regular file.
            OSError: it does not exist, or may not be opened.
        """
        try:
            found = os.stat(self.parts[-1], dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):  # asked before opening, which may be felt by a device
                raise self._no_file()
            descriptor = os.open(self.parts[-1], flags | _FILE, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
                raise self._no_file() from None
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise self._no_file()
        return descriptor

    def open(self) -> BinaryIO:
        """The regular file at this place, for reading; raises like `open_in`."""
        with self.beside() as folder:
            return os.fdopen(self.open_in(folder), "rb")

    def is_folder(self) -> bool:
        """Is it a folder?

        Raises:
            OSError: it does not exist, or cannot be looked at.
        """
        if not self.parts:
            return True
        with self.beside() as folder:
            return stat.S_ISDIR(os.stat(self.parts[-1], dir_fd=folder, follow_symlinks=False).st_mode)

    def entries(self) -> list[Entry]:
        """What is in this folder, folders first, by name; raises like `inside`."""
        with self.inside() as folder, os.scandir(folder) as found:
            return sorted(
                Entry(0 if each.is_dir(follow_symlinks=False) else 1, each.name, each.is_symlink()) for each in found
            )

    def _no_file(self) -> PathRefusedError:
        return PathRefusedError(f"{self.shown!r} is no regular file.")


def resolve(root: str | os.PathLike[str], named: str) -> Place:
    """The place of what was named, relative to the root or absolute.

    Raises:
        PathRefusedError: it lies outside the root or cannot be resolved, or there is no root.
    """
    if not named.strip() or "\0" in named:
        raise PathRefusedError("A path must be a non-empty text without NUL characters.")
    try:
        real_root = os.path.realpath(root, strict=True)
    except OSError as error:
        raise PathRefusedError(f"The workspace cannot be used: {_reason(error)}.") from None
    try:
        real = os.path.realpath(os.path.join(real_root, named))
        os.fsencode(real)
    except OSError as error:
        raise PathRefusedError(f"{named!r} cannot be resolved: {_reason(error)}.") from None
    except UnicodeEncodeError:
        raise PathRefusedError(f"{named!r} holds a lone surrogate; no file is called so.") from None
    if os.path.commonpath([real_root, real]) != real_root:
        raise PathRefusedError(f"{named!r} lies outside the workspace.")
    relative = os.path.relpath(real, real_root)
    return Place(real_root, () if relative == "." else tuple(relative.split(os.sep)))


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or errno.EINVAL)


def visible(name: str) -> str:
    """A file's name in printable characters: names may hold line breaks, and bytes that are not UTF-8."""
    if name.isprintable():
        return name
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in name)
