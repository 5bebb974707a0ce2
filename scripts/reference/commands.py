"""The page of the command line, from the commands themselves."""

from __future__ import annotations

import click

from harness_core.cli._app import COMMANDS, app

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
    commands = {name: app.get_command(group, name) for name in sorted(COMMANDS)}
    first = next(command for command in commands.values() if command is not None)
    parts = [INTRODUCTION, "## Options of every command\n", table(first, common=True)]
    for name, command in commands.items():
        assert command is not None
        context = click.Context(command, info_name=name, parent=group)
        usage = " ".join(["harness", name, *command.collect_usage_pieces(context)])
        text = "\n".join(line.strip() for line in (command.help or "").splitlines())
        parts += [f"## harness {name}\n", f"`{usage}`\n", f"{text.strip()}\n", table(command, common=False)]
    return "\n".join(part for part in parts if part)


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
