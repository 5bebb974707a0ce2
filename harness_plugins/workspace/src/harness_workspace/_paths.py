"""Paths inside a root: resolving what a model names, and opening it without ever leaving the root.

Links are resolved first and judged by where they lead. Opening then walks from the root one directory at a time,
following no link at all, so that a folder that is swapped for a link meanwhile is refused instead of followed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["PathRefusedError", "open_file", "resolve"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathRefusedError(Exception):
    """The path cannot be used; the message is meant for the model and names no place outside the root."""


def resolve(root: Path, named: str) -> Path:
    """The real path of what was named, relative to the root or absolute; it need not exist.

    Raises:
        PathRefusedError: it lies outside the root, or cannot be resolved.
    """
    if not named.strip() or "\0" in named:
        raise PathRefusedError("A path must be a non-empty text without NUL characters.")
    real_root = Path(os.path.realpath(root))
    try:
        real = Path(os.path.realpath(real_root / named, strict=False))
    except OSError as error:
        raise PathRefusedError(f"{named!r} cannot be resolved: {os.strerror(error.errno or errno.EINVAL)}.") from None
    if real != real_root and real_root not in real.parents:
        raise PathRefusedError(f"{named!r} lies outside the workspace.")
    return real


def shown(root: Path, real: Path) -> str:
    """A resolved path as the model sees it: relative to the root, with forward slashes."""
    return real.relative_to(os.path.realpath(root)).as_posix()


def open_file(root: Path, real: Path, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """A descriptor of a regular file below the root; ``real`` comes from `resolve`.

    Raises:
        PathRefusedError: it is no regular file, or something on the way was replaced by a link.
        OSError: it does not exist, or may not be opened.
    """
    parts = real.relative_to(os.path.realpath(root)).parts
    if not parts:
        raise PathRefusedError("The workspace itself is a directory.")
    folder = os.open(os.path.realpath(root), _DIRECTORY)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, _DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = deeper
        # O_NONBLOCK: opening a FIFO must not wait for somebody at its other end.
        descriptor = os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise PathRefusedError(f"{real.name!r} is a link or no regular file.") from None
        raise
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PathRefusedError(f"{real.name!r} is no regular file.")
    return descriptor
