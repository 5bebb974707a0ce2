"""``harness prompt``: what the model would get now, lane by lane, with who contributed what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness_core.cli._common import Chosen, common_options, emit_json
from harness_core.host import Harness
from harness_core.models import ToolSchema
from harness_core.prompt import (
    AssembleContext,
    PromptAssembly,
    RenderedPart,
    render_context_sections,
    render_parts,
)
from harness_core.prompt.authors import Author, Authors
from harness_core.scopes import Origin

__all__ = ["prompt"]

_BYTES_PER_TOKEN = 4
"""A common rule of thumb for English text; the estimate is marked as one."""


@click.command()
@click.option("--scope", "scope_name", help="The scope to assemble for; the global one by default.")
@click.option("--sections", "only_list", is_flag=True, help="List the parts without their texts.")
@common_options
def prompt(chosen: Chosen, scope_name: str | None, only_list: bool) -> None:
    """Show what the model would get: sections, contexts, tools and variables, and who is behind each."""
    described = anyio.run(_describe, chosen, scope_name)
    if chosen.as_json:
        emit_json(described)
        return
    console = Console(highlight=False)
    for lane, title in (
        ("sections", "Sections"),
        ("contexts", "Contexts"),
        ("tools", "Tools"),
        ("variables", "Variables"),
    ):
        _show_lane(console, title, described[lane], only_list)


async def _describe(chosen: Chosen, scope_name: str | None) -> dict[str, Any]:
    async with chosen.harness() as harness:
        scope = harness.known_scope(scope_name) if scope_name else harness.root
        assembly = await harness.assemble(AssembleContext(scope=scope, cwd=str(Path.cwd())))
        return {
            "scope": scope.name,
            "sections": [_part(part, _who(assembly, "sections", part)) for part in render_parts(assembly)],
            "contexts": [_part(part, _who(assembly, "contexts", part)) for part in render_context_sections(assembly)],
            "tools": _tools(assembly),
            "variables": _variables(harness, scope, assembly),
            "failures": [{"plugin": each.name, "error": str(each.error)} for each in harness.failures],
        }


def _who(assembly: PromptAssembly, lane: str, part: RenderedPart | ToolSchema) -> dict[str, Any]:
    """Who registered a part, and which listener added or changed it."""
    record = next((each for each in getattr(assembly, lane) if each.name == part.name), part)
    return _said(part.origin, Authors(assembly).of_record(lane, record))


def _said(origin: Origin | None, author: Author | None) -> dict[str, Any]:
    if author is None:
        return {"plugin": origin.plugin if origin is not None else None, "by": str(origin or "a listener")}
    if origin is None:
        return {"plugin": author.origin.plugin, "by": f"{author.origin}, in {author.listener.hook}"}
    changed_by = author.origin.plugin
    return {"plugin": origin.plugin, "by": f"{origin}, changed by {changed_by}", "changed_by": changed_by}


def _part(part: RenderedPart, who: dict[str, Any]) -> dict[str, Any]:
    size = len(part.text.encode())
    return {
        "name": part.name,
        "order": part.order,
        **who,
        "bytes": size,
        "estimated_tokens": -(-size // _BYTES_PER_TOKEN),
        "text": part.text,
    }


def _tools(assembly: PromptAssembly) -> list[dict[str, Any]]:
    return [
        {
            "name": tool.name,
            "order": place,
            **_who(assembly, "tools", tool),
            "bytes": len(tool.canonical.encode()),
            "estimated_tokens": -(-len(tool.canonical.encode()) // _BYTES_PER_TOKEN),
            "text": tool.description,
        }
        for place, tool in enumerate(assembly.tools, start=1)
    ]


def _variables(harness: Harness, scope: Any, assembly: PromptAssembly) -> list[dict[str, Any]]:
    owners = {entry.name: entry.origin for entry in harness.prompt.entries(scope) if entry.kind == "variable"}
    authors = Authors(assembly)
    return [
        {
            "name": name,
            "order": None,
            **_said(owners.get(name), authors.of_variable(name)),
            "bytes": len((value or "").encode()),
            "estimated_tokens": None,
            "text": value if value is not None else "(no value)",
        }
        for name, value in assembly.variables.items()
    ]


def _show_lane(console: Console, title: str, entries: list[dict[str, Any]], only_list: bool) -> None:
    table = Table(title=f"{title} ({len(entries)})", title_justify="left", title_style="bold", show_edge=False)
    for column, right in (("order", True), ("name", False), ("by", False), ("bytes", True), ("≈ tokens", True)):
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for entry in entries:
        order = "" if entry["order"] is None else f"{entry['order']:g}"
        tokens = "" if entry["estimated_tokens"] is None else str(entry["estimated_tokens"])
        table.add_row(order, Text(entry["name"]), Text(entry["by"]), str(entry["bytes"]), tokens)
    console.print(table)
    if not only_list:
        for entry in entries:
            console.print(Text(f"\n{entry['name']}", style="cyan"))
            console.print(Text(entry["text"]))
    console.print()
