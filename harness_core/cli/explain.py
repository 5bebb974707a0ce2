"""``harness explain``: why the model sees something: who registered it, what it shadows, who changed it, why it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import attrs
import click
from rich.console import Console
from rich.text import Text

from harness_core._text import nearest
from harness_core.cli._common import FAILED, Chosen, common_options, emit_json
from harness_core.cli._show import change_text, console, failure_text
from harness_core.inspect import (
    Explanation,
    Found,
    LoggedPiece,
    Owner,
    TracedStep,
    explain as explain_element,
    explain_logged,
    find_logged,
    find_text,
    open_log,
    tool_writers,
    traced_step,
)
from harness_core.inspect.compare import snapshot_parts
from harness_core.inspect.logged import LoggedRequest, request_at
from harness_core.inspect.lost import known_names, lost_text

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

    Exits with 1 when nothing of that name or text is found. What had the text and is not part of the prompt, or reads
    otherwise in the end, is told.
    """
    if number is not None and log is None:
        raise click.UsageError("--request needs --log.")
    if log is not None:
        contents = open_log(log, chosen.composition.agent_settings(chosen.folder).store)
        _show_logged(chosen, request_at(contents, number), name)
        return
    found = anyio.run(_explain, chosen, name, scope_name, prompt)
    if chosen.as_json:
        emit_json({lane: [each.to_json() for each in getattr(found, lane)] for lane in ("elements", "texts", "lost")})
    else:
        _show(found, name)
    if not found.elements and not found.texts:
        raise SystemExit(FAILED)


@attrs.frozen
class _Answer:
    """What is called so; where the model sees the text; what had it, and has it no longer."""

    traced: TracedStep
    elements: list[Explanation]
    texts: list[Found]
    lost: list[Explanation]
    near: str | None


async def _explain(chosen: Chosen, name: str, scope_name: str | None, prompt: str | None) -> _Answer:
    async with chosen.harness() as harness:
        scope = harness.scope(scope_name) if scope_name else harness.root
        prompts = [prompt] if prompt is not None else []
        traced = await traced_step(harness, scope, prompts, cwd=str(Path.cwd()))
        elements = explain_element(harness, scope, traced.assembly, name, traced.step)
        if elements:
            return _Answer(traced, elements, [], [], None)
        tools = tool_writers(harness, scope)
        texts = find_text(traced.assembly, name, step=traced.step, tools=tools)
        had = lost_text(traced.assembly, name, traced.step) if not texts else []
        lost = [found for each in had for found in explain_element(harness, scope, traced.assembly, each, traced.step)]
        near = nearest(name, {*known_names(traced.assembly), *tools, *harness.tools.view(scope).known})
        return _Answer(traced, [], texts, lost, near)


def _show(answer: _Answer, name: str) -> None:
    out = console()
    for element in answer.elements:
        _show_element(out, element)
    for found in answer.texts:
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
                verb = "changed" if place else "added" if writer.hook else "registered"
                text.append(f"\n    {verb} by {writer}", style="dim")
            out.print(text, soft_wrap=True)
    if answer.elements or answer.texts:
        return
    if answer.lost:
        out.print(f"The model does not see {name!r}. It was in:", soft_wrap=True, markup=False)
        for element in answer.lost:
            _show_element(out, element)
    else:
        near = f" Did you mean {answer.near!r}?" if answer.near is not None else ""
        said = f"Nothing is called {name!r} here, and the model sees no such text.{near}"
        out.print(said, soft_wrap=True, markup=False)
    if answer.traced.assembly.failure is not None:
        out.print(failure_text("The assembly failed with", answer.traced.assembly.failure))


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
            by = each.changed_by
            if by is None:
                text.append(f" of {each.owner}")
            else:
                added = each.owner == Owner()  # nobody registered it
                text.append(f", added by {by}" if added else f" of {each.owner}, changed by {by}")
                text.append(f" in {by.hook}" if by.hook else "")
                text.append(f" ({by.file}:{by.line})" if by.file else "")
            text.append(f"\n    {each.note}" if each.note else "", style="dim")
            text.append(f"\n    {each.text[:_SHOWN]}" if each.text else "", style="dim")
            out.print(text, soft_wrap=True)
        if not found:
            near = nearest(name, {*_recorded_names(request)})
            hint = f" Did you mean {near!r}?" if near is not None else ""
            said = f"Nothing is called {name!r} in it, and it holds no such text.{hint}"
            out.print(said, soft_wrap=True, markup=False)
    if not found:
        raise SystemExit(FAILED)


def _recorded_names(request: LoggedRequest) -> list[str]:
    lanes = ("sections", "variables", "tools", "dropped")
    names = [str(each["name"]) for lane in lanes for each in request.provenance.get(lane, ())]
    return [*names, *(part.name for part in snapshot_parts(request.messages))]
