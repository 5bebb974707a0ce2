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
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import attrs
import click

from harness_core.errors import CompositionError, HarnessError
from harness_core.host import Harness
from harness_core.host.composition import Composition
from harness_core.host.documents import Documents, collect
from harness_core.host.reading import FILE_NAME, PLUGINS_VARIABLE, find_composition, selected, structured

__all__ = ["Chosen", "chosen_of", "common_options", "emit_json", "fail", "write_json"]

F = TypeVar("F", bound=Callable[..., Any])

FAILED = 1
"""Exit status of findings and failed turns."""


@attrs.frozen(kw_only=True)
class Chosen:
    """The composition that a command works with."""

    composition: Composition
    folder: Path
    file: Path | None
    as_json: bool
    documents: Documents | None = None
    switched: tuple[str, ...] = ()

    def again(self) -> Chosen:
        """The same choice with the composition as its files are now.

        Raises:
            CompositionError: they cannot be used any more.
        """
        return chosen_of(self.file, self.switched, self.as_json)

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
        try:
            return function(chosen_of(file, switched, as_json), **rest)
        except HarnessError as error:
            if debug:
                traceback.print_exception(error)
            fail(error, as_json)

    return command  # type: ignore[return-value]


class _Plain(logging.Formatter):
    """One line for each record: tracebacks are what ``--debug`` is for."""

    def format(self, record: logging.LogRecord) -> str:
        return f"harness: {record.getMessage()}"


def _show_warnings(debug: bool) -> None:
    handler = logging.StreamHandler()
    if not debug:
        handler.setFormatter(_Plain())
    logging.getLogger("harness").handlers[:] = [handler]


def chosen_of(file: Path | None, switched: tuple[str, ...], as_json: bool) -> Chosen:
    """What the common options choose.

    Raises:
        CompositionError: the composition cannot be used.
    """
    here = Path.cwd()
    found = file if file is not None else find_composition(here)
    if file is not None and not file.is_file():
        raise CompositionError(
            f"There is no composition file {file}.", remedy="Correct the path after --composition.", file=str(file)
        )
    documents = collect(found) if found is not None else None
    composition = structured(documents) if documents is not None else Composition()
    composition = selected(composition, os.environ.get(PLUGINS_VARIABLE), switched)
    # Sessions belong to the folder that the command works in, wherever the composition comes from.
    return Chosen(
        composition=composition, folder=here, file=found, as_json=as_json, documents=documents, switched=switched
    )


def emit_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def write_json(path: Path, value: Any) -> None:
    """One JSON document in a file.

    Raises:
        CompositionError: it cannot be written.
    """
    try:
        path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
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
        click.echo(f"harness: {error}", err=True)
        for note in notes:
            click.echo(f"  {note}", err=True)
    sys.exit(FAILED)
