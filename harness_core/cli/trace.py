"""``harness trace``: one assembly and one pre-step, listener by listener: time, what each changed, what went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import click
from rich.text import Text

from harness_core.cli._common import FAILED, Chosen, common_options, emit_json
from harness_core.cli._show import (
    change_text,
    console,
    dispatch_tree,
    failure_text,
    place_text,
    plain_table,
    write_page,
)
from harness_core.host import Harness
from harness_core.inspect import (
    TracedStep,
    conflicts,
    hook_order,
    open_log,
    render_page,
    tool_writers,
    trace_document,
    traced_step,
)
from harness_core.inspect.trace import in_milliseconds

__all__ = ["trace"]


@click.command()
@click.argument("prompt", required=False)
@click.option("--scope", "scope_name", help="The scope to assemble for; the global one by default.")
@click.option("--session", "session_id", help="As the next step of this session (an id, or a log's file).")
@click.option("--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Also write a page.")
@common_options
def trace(
    chosen: Chosen, prompt: str | None, scope_name: str | None, session_id: str | None, page: Path | None
) -> None:
    """Trace what would happen if an agent were told PROMPT now. Nothing is sent, and nothing is recorded."""
    traced, content = anyio.run(_trace, chosen, prompt, scope_name, session_id, page is not None)
    if page is not None:
        write_page(page, content)
    if chosen.as_json:
        emit_json(_as_json(traced))
    else:
        _show(traced)
    if traced.error is not None:
        raise SystemExit(FAILED)


async def _trace(
    chosen: Chosen, prompt: str | None, scope_name: str | None, session_id: str | None, with_page: bool
) -> tuple[TracedStep, str]:
    async with chosen.harness() as harness:
        scope = harness.scope(scope_name) if scope_name else harness.root
        log = open_log(session_id, harness.agents.settings.store) if session_id else None
        prompts = [prompt] if prompt is not None else []
        traced = await traced_step(harness, scope, prompts, cwd=str(Path.cwd()), log=log)
        return traced, _page(harness, traced) if with_page else ""


def _page(harness: Harness, traced: TracedStep) -> str:
    assembly = traced.assembly
    scope = harness.scope(assembly.scope) if assembly.scope != harness.root.name else harness.root
    document = trace_document(
        assembly,
        traced.step,
        orders=[hook_order(harness, hook, scope) for hook in ("system_prompt_assemble", "agent_pre_step")],
        tools=tool_writers(harness, scope),
    )
    facts = {"scope": assembly.scope, "assembled in": in_milliseconds(assembly.total)}
    return render_page(f"Trace of an assembly in scope {assembly.scope}", facts=facts, trace=document)


def _as_json(traced: TracedStep) -> dict[str, Any]:
    dispatches = [each for each in (traced.assembly.dispatch, traced.step) if each is not None]
    return {
        "assembly": traced.assembly.to_json(),
        "pre_step": traced.step.to_json() if traced.step is not None else None,
        "rejected": traced.prepared.rejected if traced.prepared is not None else None,
        "conflicts": [conflict.to_json() for each in dispatches for conflict in conflicts(each)],
    }


def _show(traced: TracedStep) -> None:
    out = console()
    assembly = traced.assembly
    out.print(Text(f"Assembly in scope {assembly.scope}, {in_milliseconds(assembly.total)}", style="bold"))
    providers = plain_table("time", "provider", "plugin", "where", numbers=["time"])
    for run in sorted(assembly.providers, key=lambda run: -run.total):
        name = f"{run.kind} {run.name}" if run.kind != "tools" else f"tools ({len(run.tools)})"
        owner = run.origin.plugin or f"scope {run.origin.scope}"
        where = place_text(*run.place) if run.place else ""
        providers.add_row(in_milliseconds(run.total), Text(name), Text(owner), where)
    if assembly.providers:
        out.print(providers)
    for dispatch in (assembly.dispatch, traced.step):
        if dispatch is not None:
            out.print()
            out.print(dispatch_tree(dispatch))
    if assembly.enforced:
        out.print(Text(f"\nThrown away after the listeners: {assembly.enforced_why}", style="yellow"))
        for change in assembly.enforced:
            out.print(change_text(change))
    if traced.prepared is not None and traced.prepared.rejected is not None:
        out.print(Text(f"\nThe step was refused: {traced.prepared.rejected}", style="yellow"))
    _show_snapshot(traced)
    if assembly.failure is not None:
        out.print(failure_text("\nThe assembly failed with", assembly.failure))
    elif traced.error is not None and traced.step is None:
        out.print(Text(f"\nThe step failed with {type(traced.error).__name__}: {traced.error}", style="red"))


def _show_snapshot(traced: TracedStep) -> None:
    """What of the runtime context is new, where a snapshot is due (UC-13)."""
    step = traced.step
    for message in step.given.lanes.get("messages", ()) if step is not None else ():
        if message.source.form != "snapshot":
            continue
        parts = {str(part["name"]): part.get("plugin") for part in message.source.data.get("sections", ())}
        changed = message.source.data.get("changed")
        names = [str(name) for name in (changed if changed is not None else parts)]
        said = ", ".join(f"{name} ({parts.get(name) or 'gone'})" for name in names)
        word = "changed since the last snapshot" if changed is not None else "a first snapshot"
        console().print(Text(f"\nRuntime context: {word}: {said}"))
