"""``harness lock`` and ``harness diff``: keep what the model gets under review, and see what an upgrade changed."""

from __future__ import annotations

import difflib
import json
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
import click
from rich.console import Console
from rich.text import Text

from harness_core._text import counted
from harness_core.cli._common import FAILED, Chosen, common_options, emit_json
from harness_core.host.lock import LOCK_FILE, Change, differences, lock_of, read_lock, write_lock

__all__ = ["diff", "lock"]

_file_option = click.option(
    "--file", "path", type=click.Path(dir_okay=False, path_type=Path), default=Path(LOCK_FILE), show_default=True
)


@click.command()
@_file_option
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 when something differs.")
@common_options
def lock(chosen: Chosen, path: Path, check: bool) -> None:
    """Write what the model gets in each scope to a file that can be reviewed, or check that it still holds."""
    now = anyio.run(_lock, chosen)
    if not check:
        write_lock(path, now)
        if chosen.as_json:
            emit_json(now)
        else:
            counts = (counted(len(now["scopes"]), "scope"), counted(len(now["plugins"]), "plugin"))
            click.echo(f"Wrote {path}: {', '.join(counts)}.")
        return
    _report(chosen, differences(read_lock(path), now))


@click.command()
@_file_option
@common_options
def diff(chosen: Chosen, path: Path) -> None:
    """Say what changed since the lock was written: in which lane, by which plugin, and whether it breaks the cache."""
    _report(chosen, differences(read_lock(path), anyio.run(_lock, chosen)))


async def _lock(chosen: Chosen) -> dict[str, Any]:
    async with chosen.harness() as harness:
        scopes = [harness.known_scope(name) for name in chosen.composition.scope_names()]
        return await lock_of(harness, [harness.root, *scopes])


def _report(chosen: Chosen, changes: list[Change]) -> None:
    if chosen.as_json:
        emit_json({"changes": [change.to_json() for change in changes]})
    else:
        _show(changes)
    sys.exit(FAILED if changes else 0)


def _show(changes: list[Change]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    same: dict[str, list[Change]] = {}
    for change in changes:
        same.setdefault(json.dumps({**change.to_json(), "scope": None}), []).append(change)
    for change, *others in same.values():
        who = f" of {change.plugin} {change.version or ''}".rstrip() if change.plugin and change.scope else ""
        scopes = ", ".join(each.scope for each in (change, *others))
        where = f" in scope{'s' if others else ''} {scopes}" if change.scope else ""
        console.print(Text(f"{change.what} {change.lane[:-1]} {change.name!r}{who}{where}", style="bold"))
        lines = difflib.unified_diff(_lines(change.before), _lines(change.after), lineterm="", n=1)
        for line in islice(lines, 2, None):  # without the names of files
            if not line.startswith("@@"):
                console.print(Text(f"    {line}", style="green" if line[0] == "+" else "red" if line[0] == "-" else ""))
    broken = sorted({change.scope for change in changes if change.breaks_prefix})
    if broken:
        console.print(Text(f"The prefix cache breaks in: {', '.join(broken)}."))
    elif changes:
        console.print("The stable prefix is as it was.")
    else:
        console.print("Nothing changed.")


def _lines(value: Any) -> list[str]:
    if value is None:
        return []
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return text.splitlines()
