"""Reading, listing, searching and writing files below a root. Everything is bounded; nothing here knows of tools."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from harness_workspace._paths import PathRefusedError, open_file, resolve, shown

__all__ = ["edit", "list_folder", "read", "search", "write"]

SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv", ".tox"})
"""Folders that hold no sources of their own, and many files."""
MAX_LINES = 2000
"""Lines of one `read` unless it asks for fewer: more than a model reads with profit."""
MAX_ENTRIES = 1000
"""Entries of one `list`."""
MAX_MATCHES = 200
"""Matches of one `search`."""
MAX_FILE_BYTES = 8 * 1024 * 1024
"""Files larger than this are searched and read no further."""
MAX_SEARCHED_FILES = 20_000
_BINARY_PROBE = 8192


def _content(root: Path, real: Path, limit: int) -> bytes:
    descriptor = open_file(root, real)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit)


def _text(data: bytes, name: str) -> str:
    if b"\0" in data[:_BINARY_PROBE]:
        raise PathRefusedError(f"{name} is a binary file.")
    return data.decode("utf-8", errors="replace")


def read(root: Path, named: str, offset: int = 1, limit: int = MAX_LINES) -> str:
    """Lines of a text file with their numbers, from line ``offset`` on.

    Raises:
        PathRefusedError: outside the root, no regular file, or binary.
        OSError: it cannot be read.
    """
    real = resolve(root, named)
    name = shown(root, real)
    data = _content(root, real, MAX_FILE_BYTES + 1)
    lines = _text(data[:MAX_FILE_BYTES], name).splitlines()
    chosen = lines[offset - 1 : offset - 1 + limit]
    if not chosen:
        return f"{name} has {len(lines)} lines; there is nothing from line {offset} on."
    numbered = "\n".join(f"{number:>5}  {line}" for number, line in enumerate(chosen, start=offset))
    rest = len(lines) - (offset - 1 + len(chosen))
    notice = f"\n[{rest} more lines; read on with offset {offset + len(chosen)}]" if rest > 0 else ""
    if len(data) > MAX_FILE_BYTES:
        notice += f"\n[the file is larger than {MAX_FILE_BYTES} bytes; the rest is left out]"
    return numbered + notice


def list_folder(root: Path, named: str = ".", depth: int = 1) -> str:
    """What is in a folder, directories first, down to ``depth`` levels."""
    real = resolve(root, named)
    if not real.is_dir():
        raise PathRefusedError(f"{named!r} is no directory.")
    lines: list[str] = []
    total = _list_into(lines, real, depth, 0)
    if total > len(lines):
        lines.append(f"[{total - len(lines)} more entries are left out]")
    return "\n".join(lines) or "(empty)"


def _list_into(lines: list[str], folder: Path, depth: int, level: int) -> int:
    try:
        entries = sorted(os.scandir(folder), key=lambda e: (not e.is_dir(follow_symlinks=False), e.name))
    except OSError as error:
        lines.append(f"{'  ' * level}[not readable: {error.strerror}]")
        return 1
    total = 0
    for entry in entries:
        total += 1
        is_folder = entry.is_dir(follow_symlinks=False)
        mark = "/" if is_folder else "@" if entry.is_symlink() else ""
        if len(lines) < MAX_ENTRIES:
            lines.append(
                f"{'  ' * level}{entry.name.encode('unicode_escape').decode() if not entry.name.isprintable() else entry.name}{mark}"
            )
        if is_folder and depth > 1 and entry.name not in SKIPPED_FOLDERS:
            total += _list_into(lines, folder / entry.name, depth - 1, level + 1)
    return total


def search(root: Path, pattern: str, named: str = ".", glob: str = "*") -> str:
    """Lines that match a regular expression, as ``file:line: text``.

    Raises:
        PathRefusedError: the pattern is no regular expression, or the path lies outside.
    """
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise PathRefusedError(f"The pattern is no regular expression: {error}.") from None
    matches: list[str] = []
    for count, real in enumerate(_files_below(root, resolve(root, named))):
        if count >= MAX_SEARCHED_FILES:
            matches.append(f"[stopped after {MAX_SEARCHED_FILES} files]")
            break
        name = shown(root, real)
        if not (fnmatch.fnmatch(real.name, glob) or fnmatch.fnmatch(name, glob)):
            continue
        with contextlib.suppress(OSError, PathRefusedError):
            for number, line in enumerate(_text(_content(root, real, MAX_FILE_BYTES), name).splitlines(), start=1):
                if wanted.search(line):
                    matches.append(f"{name}:{number}: {line[:400]}")
                    if len(matches) >= MAX_MATCHES:
                        return "\n".join([*matches, f"[stopped after {MAX_MATCHES} matches]"])
    return "\n".join(matches) or "No matches."


def _files_below(root: Path, start: Path) -> Iterator[Path]:
    if start.is_file():
        yield start
        return
    for folder, folders, files in os.walk(start, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            path = Path(folder) / name
            if not path.is_symlink():
                yield path


def write(root: Path, named: str, content: str) -> str:
    """Write a whole file: beside it first, then moved into its place, so that it is never half there."""
    real = resolve(root, named)
    if real.is_dir():
        raise PathRefusedError(f"{named!r} is a directory.")
    real.parent.mkdir(parents=True, exist_ok=True)
    beside = real.with_name(f".{real.name}.{secrets.token_hex(4)}.new")
    data = content.encode("utf-8")
    descriptor = open_file(root, beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        if real.exists():
            os.chmod(beside, real.stat().st_mode & 0o7777)
        os.replace(beside, real)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    return f"Wrote {len(data)} bytes to {shown(root, real)}."


def edit(root: Path, named: str, old: str, new: str) -> str:
    """Replace the one occurrence of a text in a file.

    Raises:
        PathRefusedError: the text does not occur, or occurs more than once.
    """
    real = resolve(root, named)
    name = shown(root, real)
    data = _content(root, real, MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise PathRefusedError(f"{name} is too large to edit.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise PathRefusedError(f"{name} is not UTF-8 text; editing would damage it.") from None
    count = text.count(old) if old else 0
    if count != 1:
        raise PathRefusedError(f"The old text occurs {count} times in {name}; it must occur exactly once.")
    write(root, named, text.replace(old, new))
    return f"Edited {name}."
