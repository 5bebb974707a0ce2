"""Showing what inspections found: changes, listeners and times as rich's trees and tables. Decides nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from harness_core.cli._common import write_file
from harness_core.hooks import Listener
from harness_core.inspect import Change, DispatchTrace, Failure, ListenerRun, conflicts
from harness_core.inspect.difference import facts
from harness_core.inspect.texts import text_diff
from harness_core.inspect.trace import in_milliseconds

__all__ = ["change_text", "console", "dispatch_tree", "listener_text", "place_text", "plain_table", "write_page"]

_SIGNS = {"=": "", "-": "red strike", "+": "green"}
_EXCERPT = 40
"""Characters shown of what stayed on each side of a difference."""


def console() -> Console:
    """Standard output, without rich's own colouring of numbers and names."""
    return Console(highlight=False)


def plain_table(*columns: str, numbers: Iterable[str] = (), title: str = "") -> Table:
    """A table without a frame; the columns in ``numbers`` stand to the right."""
    right = set(numbers)
    table = Table(title=title or None, title_justify="left", title_style="bold", show_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def place_text(file: str | None, line: int | None) -> str:
    """File and line; the file as it would be imported, or from the current folder, where that is shorter."""
    if file is None:
        return ""
    path = Path(file)
    shown = str(path)
    for folder in (*sys.path, str(Path.cwd())):
        if folder and path.is_absolute() and path.is_relative_to(folder):
            shown = min(shown, str(path.relative_to(folder)), key=len)
    return f"{shown}:{line}"


def listener_text(listener: Listener) -> Text:
    """Plugin, version, style and scope on one line."""
    text = Text(listener.plugin, style="bold")
    if listener.version is not None:
        package = f"{listener.distribution} " if listener.distribution != listener.plugin else ""
        text.append(f" ({package}{listener.version})", style="dim")
    text.append(f"  {listener.style.value}, scope {listener.scope.name}", style="dim")
    return text


def change_text(change: Change, by: str = "") -> Text:
    """A change and, below it, what is different."""
    text = Text(f"{change.lane}: ")
    text.append(change.name, style="cyan")
    text.append(f" {change.kind}")
    if change.kind == "moved":
        one, two = change.places
        text.append(f" from place {(one or 0) + 1} to {(two or 0) + 1}")
    if by:
        text.append(f" by {by}")
    if change.fields:
        for name, (old, new) in change.fields.items():
            text.append(f"\n  {name}: ", style="dim")
            text.append_text(diff_text(old, new))
    elif change.kind in ("added", "removed"):
        element = change.after if change.kind == "added" else change.before
        for name, value in facts(element).items() if element is not None else ():
            text.append(f"\n  {name}: ", style="dim")
            text.append(_short(value), style=_SIGNS["+" if change.kind == "added" else "-"])
    return text


def diff_text(old: str, new: str) -> Text:
    """Two versions of a text as one."""
    text = Text()
    for sign, stretch in text_diff(old, new, _EXCERPT):
        shown = stretch if sign != "-" else f"[-{stretch}-]"
        text.append(shown if sign != "+" else f"{{+{stretch}+}}", style=_SIGNS[sign])
    return text


_ELEMENT = 200


def _short(value: str) -> str:
    return value if len(value) <= _ELEMENT else f"{value[:_ELEMENT]}… ({len(value)} characters)"


def failure_text(label: str, failure: Failure) -> Text:
    """An exception with its notes."""
    text = Text(f"{label} {failure}", style="red")
    for note in failure.notes:
        text.append(f"\n  {note}", style="dim")
    return text


def dispatch_tree(dispatch: DispatchTrace) -> Tree:
    """A dispatch, each listener inside of the ones around it."""
    head = Text(dispatch.hook, style="bold")
    head.append(f"  {in_milliseconds(dispatch.total)}, {dispatch.given} -> {dispatch.result or 'nothing'}", style="dim")
    tree = Tree(head)
    branches: list[Tree] = []
    waiting: list[tuple[Tree, ListenerRun]] = []
    for run in dispatch.runs:
        parent = tree if run.parent is None else branches[run.parent]
        while waiting and waiting[-1][1].number != run.parent:
            _way_out(*waiting.pop())
        branch = parent.add(_run_text(run))
        branches.append(branch)
        for change in run.inward:
            branch.add(change_text(change))
        waiting.append((branch, run))
    while waiting:
        _way_out(*waiting.pop())
    for listener in dispatch.unreached:
        tree.add(listener_text(listener).append("  not reached: the dispatch ended before it", style="yellow"))
    for conflict in conflicts(dispatch):
        tree.add(Text(f"conflict: {conflict}", style="yellow"))
    if dispatch.failure is not None:
        tree.add(failure_text("failed with", dispatch.failure))
    return tree


def _way_out(branch: Tree, run: ListenerRun) -> None:
    if run.caught is not None:
        branch.add(failure_text("caught", run.caught))
    for change in run.outward:
        branch.add(change_text(change).append("  (on the way out)", style="dim"))
    if run.raised is not None:
        branch.add(failure_text("raised", run.raised))


def _run_text(run: ListenerRun) -> Text:
    text = listener_text(run.listener)
    text.append(f"  {in_milliseconds(run.own)} own, {in_milliseconds(run.total)} in all", style="dim")
    if run.answered:
        text.append("  answered: nobody further in was asked", style="yellow")
    if run.handed_other:
        text.append("  handed another value inwards", style="yellow")
    text.append(f"\n{place_text(run.listener.file, run.listener.line)}", style="dim")
    return text


def write_page(path: Path, content: str) -> None:
    """Write a page and say where it is.

    Raises:
        CompositionError: it cannot be written.
    """
    write_file(path, content)
    click.echo(f"wrote {path}", err=True)
