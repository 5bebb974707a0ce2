"""Writing a new plugin's folder: all of it or nothing. Knows nothing of what the files say."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from harness_core._text import quoted
from harness_core.scaffold.choices import ScaffoldError

__all__ = ["check_writable", "write_folder"]


def check_writable(target: Path) -> None:
    """Refuse a place where a folder cannot be begun.

    Raises:
        ScaffoldError: there is something already, or nothing to put it in.
    """
    if not target.parent.is_dir():
        raise ScaffoldError(
            f"There is no folder {quoted(str(target.parent))} to write to.",
            remedy="Make it, or name another with --into.",
            file=str(target.parent),
        )
    empty = target.is_dir() and not target.is_symlink() and not any(target.iterdir())
    if os.path.lexists(target) and not empty:
        what = "is not empty" if target.is_dir() else "is a file"
        raise ScaffoldError(
            f"{quoted(str(target))} exists and {what}; nothing was written.",
            remedy="Choose another name, or another folder with --into.",
            file=str(target),
        )


def write_folder(target: Path, files: Mapping[str, str]) -> None:
    """Write the files below ``target``, which appears when all of them are there.

    Raises:
        ScaffoldError: the place is taken, also if somebody took it meanwhile, or cannot be written to.
    """
    check_writable(target)
    workshop: Path | None = None
    try:
        # Beside the target, so that renaming stays within one file system.
        workshop = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        made = workshop / target.name
        for name, text in files.items():
            file = made / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        if target.is_dir():
            target.rmdir()  # empty; not every system renames onto an empty folder
        made.rename(target)
    except OSError as error:
        raise ScaffoldError(
            f"{quoted(str(target))} could not be written: {error.strerror or error}.",
            remedy="Nothing is left of it; try another folder with --into.",
            file=str(target),
        ) from error
    finally:
        if workshop is not None:
            shutil.rmtree(workshop, ignore_errors=True)
