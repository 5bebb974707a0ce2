"""``harness new-plugin``: begin a plugin, with source, tests, README and project files that fit what it is to do."""

from __future__ import annotations

import datetime
import shlex
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click

from harness_core.cli._common import emit_json, fail
from harness_core.host.discovery import core_version
from harness_core.scaffold import (
    HOOKS,
    LANES,
    LICENCES,
    Choices,
    ScaffoldError,
    check_free,
    check_writable,
    checked_name,
    project_files,
    write_folder,
)

__all__ = ["new_plugin"]

S = TypeVar("S")
T = TypeVar("T")

NONE = "none"


@click.command("new-plugin")
@click.argument("name", required=False)
@click.option("--description", metavar="TEXT", help="What it is for, in one line.")
@click.option("--author", metavar="TEXT", help="Who writes it, such as 'Ada <ada@example.org>'.")
@click.option("--licence", "--license", type=click.Choice(LICENCES), help="Its licence; MIT by default.")
@click.option(
    "--lanes", metavar="LIST", help=f"{', '.join(LANES)}, separated by commas, or none; section,tools by default."
)
@click.option("--hooks", metavar="LIST", help="Hooks to implement, separated by commas, or none, which is the default.")
@click.option("--config/--no-config", default=None, help="Should it have settings? By default it has.")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where the folder is made; here by default.",
)
@click.option("-y", "--yes", is_flag=True, help="Ask nothing; what is not said has its default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs, and ask nothing.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def new_plugin(
    name: str | None,
    description: str | None,
    author: str | None,
    licence: str | None,
    lanes: str | None,
    hooks: str | None,
    config: bool | None,
    into: Path,
    yes: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Begin a plugin called NAME: a folder harness-NAME with source, tests and project files.

    On a terminal, asks for what is not said. What is written depends on the lanes and hooks, passes its own tests and
    type checks as it is, and is yours to change. Nothing is written where anything is in the way.
    """
    questions = _Questions(ask=_on_terminal() and not yes and not as_json)
    if name is None and not questions.ask:
        raise click.UsageError("Missing argument 'NAME'.")
    try:
        plugin = questions.answer(name, "Name", None, checked_name)
        choices = Choices(name=plugin, core=core_version() or "0", year=datetime.date.today().year)
        check_free(choices)
        target = into / choices.distribution
        check_writable(target)
        for field, given, question, default, convert in (
            ("description", description, "What it is for, in one line", "", str),
            ("author", author, "Author, such as Ada <ada@example.org>", "", str),
            ("licence", licence, f"Licence ({', '.join(LICENCES)})", choices.licence, str),
            ("lanes", lanes, f"Lanes ({', '.join(LANES)})", ",".join(choices.lanes), _names),
            ("hooks", hooks, f"Hooks ({', '.join(HOOKS)})", NONE, _names),
        ):
            choices = questions.chosen(choices, field, given, question, default, convert)
        choices = attrs.evolve(choices, config=questions.confirmed(config, "Settings", choices.config))
        files = _usage(project_files, choices)
        write_folder(target, files)
    except ScaffoldError as error:
        if debug:
            traceback.print_exception(error)
        fail(error, as_json)
    _show(choices, target, sorted(files), as_json)


def _on_terminal() -> bool:
    return sys.stdin.isatty()


@attrs.frozen
class _Questions:
    """What was not said as an option is asked for, again until it will do, or has its default where nobody is asked."""

    ask: bool

    def answer(self, given: str | None, question: str, default: str | None, convert: Callable[[str], T]) -> T:
        if given is None and self.ask:
            answer: T = click.prompt(
                question,
                default=default,
                show_default=bool(default),
                value_proc=lambda text: _usage(convert, text),
                err=True,
            )
            return answer
        return _usage(convert, given if given is not None else default or "")

    def chosen(
        self,
        choices: Choices,
        field: str,
        given: str | None,
        question: str,
        default: str,
        convert: Callable[[str], Any],
    ) -> Choices:
        """The choices with one more field chosen."""
        return self.answer(given, question, default, lambda text: attrs.evolve(choices, **{field: convert(text)}))

    def confirmed(self, given: bool | None, question: str, default: bool) -> bool:
        if given is None and self.ask:
            return click.confirm(question, default=default, err=True)
        return default if given is None else given


def _usage(convert: Callable[[S], T], value: S) -> T:
    """A wrong answer is wrong usage: it is asked for again, or ends the command with 2."""
    try:
        return convert(value)
    except ScaffoldError as error:
        raise click.UsageError(str(error)) from error


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    return [] if names == [NONE] else [name for name in names if name]


def _show(choices: Choices, target: Path, files: list[str], as_json: bool) -> None:
    if as_json:
        emit_json(
            {
                "plugin": choices.name,
                "distribution": choices.distribution,
                "module": choices.module,
                "class": choices.class_name,
                "folder": str(target),
                "files": files,
            }
        )
        return
    click.echo(f"Wrote {target}, the plugin {choices.name!r}:")
    for file in files:
        click.echo(f"    {file}")
    click.echo("Go on with:")
    click.echo(f"    cd {shlex.quote(str(target))}")
    click.echo("    pip install -e '.[dev]'")
    click.echo("    pytest")
    click.echo(f"    harness plugin check {choices.distribution} --strict")
