"""Writing and editing files below a root. A file is replaced as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat

from harness_workspace._paths import PathRefusedError, Place, resolve
from harness_workspace._reading import MAX_FILE_BYTES, text_of

__all__ = ["edit", "write"]


def write(root: str | os.PathLike[str], named: str, content: str) -> str:
    """Write a whole file; folders on the way are made.

    Raises:
        PathRefusedError: outside the root, no regular file, one of git's own, or a content that is no UTF-8.
        OSError: it cannot be written.
    """
    place = resolve(root, named)
    size = _replace(place, content)
    return f"Wrote {size} bytes to {place.shown}."


def edit(root: str | os.PathLike[str], named: str, old: str, new: str) -> str:
    """Replace the one occurrence of a text in a file.

    Raises:
        PathRefusedError: the text does not occur, or occurs more than once; otherwise see `write`.
        OSError: it cannot be read or written.
    """
    place = resolve(root, named)
    found = text_of(place)
    if not found.is_whole:
        raise PathRefusedError(f"{place.shown!r} is larger than {MAX_FILE_BYTES} bytes; that is too large to edit.")
    if found.damaged:
        raise PathRefusedError(f"{place.shown!r} is not UTF-8 text; editing would damage it.")
    count = found.text.count(old) if old else 0
    if count != 1:
        hint = ""
        if count == 0 and "\n" in old and old.replace("\n", "\r\n") in found.text:
            hint = " Its lines end in carriage return and line feed."
        raise PathRefusedError(
            f"The old text occurs {count} times in {place.shown!r}; it must occur exactly once.{hint}"
        )
    _replace(place, found.text.replace(old, new))
    return f"Edited {place.shown}."


def _replace(place: Place, content: str) -> int:
    if any(part.lower() == ".git" for part in place.parts):
        # What is written there is run by the next git command.
        raise PathRefusedError(f"{place.shown!r} belongs to git; its files are not changed here.")
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError:
        raise PathRefusedError("The content holds a lone surrogate, which UTF-8 cannot carry.") from None
    with place.beside(create=True) as folder:
        before = _present(place, folder)
        fresh = f".{secrets.token_hex(8)}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(fresh, flags, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                if before is not None:
                    with contextlib.suppress(PermissionError):
                        os.fchown(descriptor, before.st_uid, before.st_gid)
                    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
            os.replace(fresh, place.parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(fresh, dir_fd=folder)
            raise
    return len(data)


def _present(place: Place, folder: int) -> os.stat_result | None:
    """The file that is there already; opened for writing, so that a read-only one is refused and not replaced."""
    try:
        descriptor = place.open_in(folder, os.O_WRONLY)
    except FileNotFoundError:
        return None
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)
