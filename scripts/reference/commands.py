"""The page of the command line, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator

import click

from harness_core.cli._app import app

COMMON = {"--composition", "-p", "--json", "--debug"}
"""Options that every command has; they are described once."""

INTRODUCTION = """\
# The command line

This page is written by `python scripts/write_reference.py`, from the commands themselves.

Every command works in the current folder, with the composition that it finds there: `harness.toml`, or a
`[tool.harness]` table in `pyproject.toml`. Answers go to standard output, everything about them to standard error. The
exit status is 0 when all is well, 1 for findings, a failed turn or an error, and 2 for wrong usage.
"""


def page() -> str:
    group = click.Context(app, info_name="harness")
    commands = dict(_commands(group, "harness"))
    first = next(iter(commands.values()))
    parts = [INTRODUCTION, "## Options of every command\n", table(first, common=True)]
    for name, command in commands.items():
        usage = " ".join([name, *command.collect_usage_pieces(click.Context(command, info_name=name))])
        text = "\n".join(line.strip() for line in (command.help or "").splitlines())
        parts += [f"## {name}\n", f"`{usage}`\n", f"{text.strip()}\n", table(command, common=False)]
    return "\n".join(part for part in parts if part)


def _commands(context: click.Context, path: str) -> Iterator[tuple[str, click.Command]]:
    """Each command that does something, with its whole name; a group stands for those in it."""
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(click.Context(command, info_name=name, parent=context), f"{path} {name}")
        else:
            yield f"{path} {name}", command


def table(command: click.Command, *, common: bool) -> str:
    rows = [
        f"| {' '.join(f'`{each}`' for each in option.opts)}{value(option)} | {option.help or ''} |"
        for option in command.params
        if isinstance(option, click.Option) and bool(COMMON.intersection(option.opts)) == common
    ]
    return "\n".join(["| option | |", "|---|---|", *rows, ""]) if rows else ""


def value(option: click.Option) -> str:
    if option.is_flag:
        return ""
    if isinstance(option.type, click.Choice):
        return f" {' or '.join(f'`{each}`' for each in option.type.choices)}"
    return f" *{option.metavar or option.type.name}*"
