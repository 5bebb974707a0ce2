"""``harness plugins``: what is installed, active, disabled, failed or missing, and what each contributes."""

from __future__ import annotations

import anyio
import click
from rich.console import Console
from rich.markup import escape

from harness_core.cli._common import Chosen, common_options, emit_json
from harness_core.host.check_composition import startable
from harness_core.host.discovery import discover
from harness_core.host.inventory import PluginStatus, inventory

__all__ = ["plugins"]

_STYLES = {"active": "green", "failed": "red", "not installed": "red", "disabled": "dim", "not loaded": "dim"}


@click.command()
@common_options
def plugins(chosen: Chosen) -> None:
    """List the plugins: installed, active, disabled, failed (and why), with what each contributes now."""
    statuses = anyio.run(_inventory, chosen)
    if chosen.as_json:
        emit_json({"plugins": [status.to_json() for status in statuses]})
        return
    console = Console(highlight=False, soft_wrap=True)
    for status in statuses:
        _show(console, status)
    if not statuses:
        console.print("No plugins are installed. Install one with pip, such as pluggy-harness-workspace.")


async def _inventory(chosen: Chosen) -> list[PluginStatus]:
    installed = discover()
    listed = {name: table for _, name, table, _ in chosen.composition.tables()}
    # What is not installed is told as such; everything else can still be looked at.
    chosen.composition = startable(chosen.composition, installed)
    async with chosen.harness(on_error="skip") as harness:
        return inventory(harness, installed, listed)


def _show(console: Console, status: PluginStatus) -> None:
    package = f" [dim]{escape(status.distribution)} {escape(status.version or '')}[/]" if status.distribution else ""
    scope = f" in scope {escape(status.scope)}" if status.scope not in (None, "global") else ""
    console.print(f"[bold]{escape(status.name)}[/]{package}  [{_STYLES[status.state]}]{status.state}[/]{scope}")
    if status.entry_point:
        console.print(f"    [dim]from {escape(status.entry_point)}[/]")
    if status.why:
        console.print(f"    {escape(status.why)}")
    if status.remedy:
        console.print(f"    {escape(status.remedy)}")
    for kind, names in status.contributes.items():
        console.print(f"    {kind}: {escape(', '.join(names))}")
    if status.places:
        places = ", ".join(f"{hook} (place {place})" for hook, place in status.places.items())
        console.print(f"    hooks: {places}")
