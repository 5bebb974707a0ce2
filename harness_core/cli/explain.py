"""``harness explain``: why the model sees something: who registered it, what it shadows, who changed it, why it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import click
from rich.console import Console
from rich.text import Text

from harness_core.cli._common import FAILED, Chosen, common_options, emit_json
from harness_core.cli._show import change_text, console, failure_text
from harness_core.inspect import (
    Explanation,
    Found,
    LoggedPiece,
    TracedStep,
    explain as explain_element,
    explain_logged,
    find_logged,
    find_text,
    open_log,
    tool_writers,
    traced_step,
)
from harness_core.inspect.logged import LoggedRequest, request_at

__all__ = ["explain"]

_SHOWN = 400
"""Characters of an element's text."""


@click.command()
@click.argument("name")
@click.option("--scope", "scope_name", help="The scope to look from; the global one by default.")
@click.option("--prompt", help="What the agent is told, where messages matter.")
@click.option(
    "--log", "log", help="Explain a request of this log (a session's id, or a file) instead; needs no plugins."
)
@click.option("--request", "number", type=int, help="Which request of the log, counted from 1; the last by default.")
@common_options
def explain(
    chosen: Chosen, name: str, scope_name: str | None, prompt: str | None, log: str | None, number: int | None
) -> None:
    """Explain NAME: a section, context, variable, tool or message, or a piece of text that the model saw.

    Exits with 1 when nothing of that name or text is found.
    """
    if number is not None and log is None:
        raise click.UsageError("--request needs --log.")
    if log is not None:
        contents = open_log(log, chosen.composition.agent_settings(chosen.folder).store)
        _show_logged(chosen, request_at(contents, number), name)
        return
    elements, texts, traced = anyio.run(_explain, chosen, name, scope_name, prompt)
    if chosen.as_json:
        emit_json({"elements": [each.to_json() for each in elements], "texts": [each.to_json() for each in texts]})
    else:
        _show(elements, texts, traced, name)
    if not elements and not texts:
        raise SystemExit(FAILED)


async def _explain(
    chosen: Chosen, name: str, scope_name: str | None, prompt: str | None
) -> tuple[list[Explanation], list[Found], TracedStep]:
    async with chosen.harness() as harness:
        scope = harness.scope(scope_name) if scope_name else harness.root
        prompts = [prompt] if prompt is not None else []
        traced = await traced_step(harness, scope, prompts, cwd=str(Path.cwd()))
        elements = explain_element(harness, scope, traced.assembly, name, traced.step)
        texts = find_text(traced.assembly, name, step=traced.step, tools=tool_writers(harness, scope))
        return elements, texts if not elements else [], traced


def _show(elements: list[Explanation], texts: list[Found], traced: TracedStep, name: str) -> None:
    out = console()
    for element in elements:
        _show_element(out, element)
    for found in texts:
        out.print(Text(f"In the {found.where}, from character {found.start}:", style="bold"), soft_wrap=True)
        for piece in found.pieces:
            text = Text("  ")
            text.append(repr(piece.text), style="cyan")
            text.append(f"\n    {piece.entry}: ")
            value = f"the value of {{{{{piece.variable}}}}} from " if piece.variable else ""
            text.append(f"{value}{piece.writer}")
            if piece.via is not None:
                text.append(f"\n    the reference was put there by {piece.via}", style="dim")
            for place, writer in enumerate(piece.chain):
                text.append(f"\n    {'changed' if place else 'registered'} by {writer}", style="dim")
            out.print(text, soft_wrap=True)
    if not elements and not texts:
        out.print(f"Nothing is called {name!r} here, and the model sees no such text.")
        if traced.assembly.failure is not None:
            out.print(failure_text("The assembly failed with", traced.assembly.failure))


def _show_element(out: Console, element: Explanation) -> None:
    where = f"place {element.place} of {element.of}" if element.place is not None else "not there"
    head = Text(f"{element.kind} ")
    head.append(element.name, style="bold cyan")
    out.print(head.append(f": {where}; {element.why}"), soft_wrap=True)
    for each in element.registrations:
        line = Text(f"  registered by {each.writer}, scope {each.writer.scope}: {each.status}")
        out.print(line.append(f" ({each.facts})" if each.facts else "", style="dim"), soft_wrap=True)
    for run, change in element.history:
        out.print(Text("  ").append_text(change_text(change, run.listener.label)), soft_wrap=True)
    if element.text:
        shown = element.text if len(element.text) <= _SHOWN else f"{element.text[:_SHOWN]}…"
        out.print(Text(f"  {shown}", style="dim"), soft_wrap=True)


def _show_logged(chosen: Chosen, request: LoggedRequest, name: str) -> None:
    found: list[LoggedPiece] = explain_logged(request, name) or find_logged(request, name)
    if chosen.as_json:
        shown: dict[str, Any] = {
            "request": request.number,
            "turn": request.dispatch.turn,
            "step": request.dispatch.step,
        }
        emit_json({**shown, "found": [each.to_json() for each in found]})
    else:
        out = console()
        out.print(Text(f"Request {request.number} ({request.place})", style="bold"), soft_wrap=True)
        for each in found:
            text = Text(f"  {each.where}: ")
            text.append(each.name, style="cyan")
            text.append(f" of {each.owner}")
            if each.changed_by is not None:
                by = each.changed_by
                text.append(f", changed by {by}" + (f" ({by.file}:{by.line})" if by.file else ""), style="yellow")
            text.append(f"\n    {each.note}" if each.note else "", style="dim")
            text.append(f"\n    {each.text[:_SHOWN]}" if each.text else "", style="dim")
            out.print(text, soft_wrap=True)
        if not found:
            out.print(f"Nothing is called {name!r} in it, and it holds no such text.")
    if not found:
        raise SystemExit(FAILED)
