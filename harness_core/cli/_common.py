"""What all subcommands share: their options, how a harness is made for them, and how failures are shown.

Failures are shown as message, remedy and notes, never as a traceback unless ``--debug`` asks for one.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import attrs
import click

from harness_core._text import clean, printable
from harness_core.errors import CompositionError, HarnessError
from harness_core.host import Harness
from harness_core.host.composition import Composition
from harness_core.host.documents import Documents, collect
from harness_core.host.reading import FILE_NAME, PLUGINS_VARIABLE, find_composition, selected, structured

__all__ = ["Chosen", "common_options", "emit_json", "fail", "write_file", "write_json"]

F = TypeVar("F", bound=Callable[..., Any])

FAILED = 1
"""Exit status of findings and failed turns."""


@attrs.define(kw_only=True, slots=False)
class Chosen:
    """What the common options choose: the composition is read when it is first asked for."""

    folder: Path
    file: Path | None
    as_json: bool
    switched: tuple[str, ...] = ()

    @cached_property
    def documents(self) -> Documents | None:
        """The files and presets that the composition is made of; None where there is no composition.

        Raises:
            CompositionError: they cannot be used.
        """
        if self.file is not None and not self.file.exists():
            raise CompositionError(
                f"There is no composition file {self.file}.",
                remedy="Correct the path after --composition.",
                file=str(self.file),
            )
        found = self.file if self.file is not None else find_composition(Path())  # relative, as people would name it
        return collect(found) if found is not None else None

    @cached_property
    def composition(self) -> Composition:
        """The composition, with what is switched on and off from outside.

        Raises:
            CompositionError: it cannot be used.
        """
        read = structured(self.documents) if self.documents is not None else Composition()
        return selected(read, os.environ.get(PLUGINS_VARIABLE), self.switched)

    def again(self) -> Chosen:
        """The same choice, with the files as they are now."""
        return attrs.evolve(self)

    def harness(self, **options: Any) -> Harness:
        return Harness.from_composition(self.composition, self.folder, **options)


def common_options(function: F) -> F:
    """Adds ``--composition``, ``-p no:NAME``, ``--json`` and ``--debug``, and shows failures the common way."""

    @click.option(
        "--composition",
        "file",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"The composition file; {FILE_NAME} (or pyproject.toml) of the current folder by default.",
    )
    @click.option(
        "-p", "switched", multiple=True, metavar="[no:]NAME", help="Load an installed plugin, or with no: leave it out."
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
    @click.option("--debug", is_flag=True, help="Show tracebacks.")
    @functools.wraps(function)
    def command(file: Path | None, switched: tuple[str, ...], as_json: bool, debug: bool, **rest: Any) -> Any:
        _show_warnings(debug)
        if any(each in ("", "no:") for each in switched):
            raise click.UsageError("-p takes the name of a plugin, or no: and a name.")
        try:
            # Sessions belong to the folder that the command works in, wherever the composition comes from.
            chosen = Chosen(folder=Path.cwd(), file=file, as_json=as_json, switched=switched)
            return function(chosen, **rest)
        except HarnessError as error:
            if debug:
                traceback.print_exception(error)
            fail(error, as_json)

    return command  # type: ignore[return-value]


class _Plain(logging.Formatter):
    """One line for each record: tracebacks are what ``--debug`` is for."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(f"harness: {record.getMessage()}")


def _show_warnings(debug: bool) -> None:
    handler = logging.StreamHandler()
    if not debug:
        handler.setFormatter(_Plain())
    logging.getLogger("harness").handlers[:] = [handler]


def emit_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(clean(json.dumps(value, ensure_ascii=False, indent=2)))


def write_json(path: Path, value: Any) -> None:
    """One JSON document in a file.

    Raises:
        CompositionError: it cannot be written.
    """
    write_file(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def write_file(path: Path, content: str) -> None:
    """A file that an option of a command names.

    Raises:
        CompositionError: it cannot be written.
    """
    try:
        path.write_text(clean(content), encoding="utf-8")
    except OSError as error:
        raise CompositionError(
            f"{path} cannot be written: {error.strerror}.", remedy="Name another file.", file=str(path)
        ) from None


def fail(error: HarnessError, as_json: bool) -> NoReturn:
    """Show an error and exit with status 1."""
    notes = list(getattr(error, "__notes__", ()))
    if as_json:
        facts = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(error).items()
            if value not in (None, (), "") and isinstance(value, (str, int, float, tuple))
        }
        emit_json({"error": {"code": error.code, "message": error.message, **facts, "notes": notes}})
    else:
        click.echo(printable(f"harness: {error}"), err=True)
        for note in notes:
            click.echo(printable(f"  {note}"), err=True)
    sys.exit(FAILED)
