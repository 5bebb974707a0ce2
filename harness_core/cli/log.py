"""``harness log``: sessions' logs: listed, shown, followed, verified, compared, and their requests exported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import click
from rich.text import Text

from harness_core._json import canonical
from harness_core.cli._common import FAILED, Chosen, common_options, emit_json
from harness_core.cli._follow import follow_events
from harness_core.cli._show import change_text, console, plain_table, write_page
from harness_core.errors import HarnessError
from harness_core.inspect import (
    as_curl,
    compare_requests,
    growth_findings,
    logged_requests,
    neutral_json,
    open_log,
    render_page,
    request_document,
)
from harness_core.inspect.compare import LaneComparison, owner_of
from harness_core.inspect.logged import LoggedRequest, request_at
from harness_core.inspect.narrate import event_line, when
from harness_core.models import WireAdapter, WireRequest
from harness_core.session import LogContents, event_to_json, list_sessions, verify as verify_log
from harness_core.session.events import AssistantChunk
from harness_core.session.file_store import read_log_file

__all__ = ["log"]


@click.group()
def log() -> None:
    """Read sessions' logs. LOG is a session's id, or the path of a log's file."""


def _contents(chosen: Chosen, which: str) -> LogContents:
    return open_log(which, chosen.composition.agent_settings(chosen.folder).store)


@log.command("list")
@common_options
def list_(chosen: Chosen) -> None:
    """List the sessions of this folder, the one used last first."""
    found = list_sessions(chosen.composition.agent_settings(chosen.folder).store)
    if chosen.as_json:
        emit_json([{"id": each.id, "title": each.title, "cwd": each.cwd, "created_at_ms": each.created_at_ms,
                    "last_at_ms": each.last_at_ms, "parent": each.parent} for each in found])  # fmt: skip
        return
    table = plain_table("session", "last used", "begins with")
    for each in found:
        table.add_row(Text(each.id), when(each.last_at_ms), Text(each.title))
    console().print(table if found else "There are no sessions here.")


@log.command()
@click.argument("log", metavar="LOG")
@click.option("--chunks", is_flag=True, help="Also show each piece of a streamed answer.")
@click.option("--request", "number", type=int, help="Show one request in whole, counted from 1.")
@click.option(
    "--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Also write a page of the request."
)
@common_options
def show(chosen: Chosen, log: str, chunks: bool, number: int | None, page: Path | None) -> None:
    """Show what happened in a session, one line for each event; or one request as the model got it."""
    contents = _contents(chosen, log)
    if page is not None:
        _write_request(page, request_at(contents, number))
    if number is not None:
        _show_request(chosen, request_at(contents, number))
        return
    events = [event for event in contents.events if chunks or not isinstance(event.data, AssistantChunk)]
    if chosen.as_json:
        emit_json([event_to_json(event) for event in events])
        return
    for event in events:
        click.echo(event_line(event))
    for finding in growth_findings(contents.events):
        click.echo(f"growth: {finding}", err=True)


def _write_request(page: Path, request: LoggedRequest) -> None:
    facts = {"session": request.request.session_id, "request": str(request.number), "in": request.place}
    title = f"Request {request.number} of session {request.request.session_id}"
    write_page(page, render_page(title, facts=facts, trace=request_document(request)))


def _show_request(chosen: Chosen, request: LoggedRequest) -> None:
    if chosen.as_json:
        emit_json(
            {**neutral_json(request.request), "provenance": request.provenance, "digest_matches": request.matches}
        )
        return
    out = console()
    header = request.header
    out.print(Text(f"Request {request.number} ({request.place})", style="bold"))
    out.print(Text(f"settings: {header.config.to_json()}", style="dim"))
    for section in request.provenance.get("sections", ()):
        owner = section.get("changed_by", section).get("plugin", "unknown")
        out.print(Text(f"\n{section['name']} ({owner})", style="cyan"))
        out.print(Text(request.section_text(section)))
    if not request.provenance.get("sections") and header.system:
        out.print(Text(f"\n{header.system}"))
    out.print(Text(f"\ntools: {', '.join(tool.name for tool in header.tools) or 'none'}", style="cyan"))
    for message in request.messages:
        out.print(Text(f"\n{message.to_json()['role']}", style="cyan"))
        out.print(Text(message.text))


@log.command()
@click.argument("log", metavar="LOG")
@click.option("--chunks", is_flag=True, help="Also show each piece of a streamed answer.")
@click.option("--once", is_flag=True, help="Stop at the end of the turn that is under way, or of the last one.")
@common_options
def follow(chosen: Chosen, log: str, chunks: bool, once: bool) -> None:
    """Show events as they are recorded, by whatever process, until Ctrl-C."""
    path = Path(log)
    if not path.is_file():
        store = chosen.composition.agent_settings(chosen.folder).store
        where = getattr(store, "path", None)
        if where is None:
            raise HarnessError("Only a log in a file can be followed.", entry=log)
        path = where(log)
    there_already = len(read_log_file(path).events)
    try:
        for event in follow_events(path):
            if chunks or not isinstance(event.data, AssistantChunk):
                click.echo(canonical(event_to_json(event)) if chosen.as_json else event_line(event))
                sys.stdout.flush()
            if once and event.type == "turn/end" and event.seq >= there_already - 1:
                return
    except KeyboardInterrupt:
        return


@log.command()
@click.argument("log", metavar="LOG")
@common_options
def verify(chosen: Chosen, log: str) -> None:
    """Rebuild every request from the log alone and compare its digest with the recorded one. Exits with 1 on a mismatch."""
    contents = _contents(chosen, log)
    checked = verify_log(contents.info, contents.events)
    wrong = [
        {"event": each.event.seq, "turn": each.dispatch.turn, "step": each.dispatch.step, "recorded": each.dispatch.digest,
         "computed": each.digest}
        for each in checked.mismatches
    ]  # fmt: skip
    if chosen.as_json:
        emit_json({"session": contents.info.id, "requests": checked.requests, "ok": checked.ok, "mismatches": wrong})
    elif checked.ok:
        click.echo(f"{checked.requests} requests, each as it was recorded.")
    else:
        for each in wrong:
            click.echo(
                f"event {each['event']} (turn {each['turn']}, step {each['step']}): recorded {each['recorded']}, "
                f"computed {each['computed']}"
            )
    if not checked.ok:
        raise SystemExit(FAILED)


@log.command()
@click.argument("log", metavar="LOG")
@click.argument("other", metavar="[OTHER]", required=False)
@click.option(
    "--request", "numbers", type=int, multiple=True, help="The request of each side; the last ones by default."
)
@common_options
def compare(chosen: Chosen, log: str, other: str | None, numbers: tuple[int, ...]) -> None:
    """Compare two requests lane by lane: of LOG and OTHER, or two of LOG (the last two by default)."""
    contents = _contents(chosen, log)
    second = _contents(chosen, other) if other is not None else contents
    if len(numbers) > 2:
        raise click.UsageError("--request is given at most twice.")
    one: int | None = numbers[0] if numbers else None
    two: int | None = numbers[1] if len(numbers) > 1 else None
    if other is None and one is None:
        one = len(logged_requests(contents.info, contents.events)) - 1
    left, right = request_at(contents, one), request_at(second, two)
    lanes = compare_requests(left, right)
    if chosen.as_json:
        sides = [{"session": side.request.session_id, "request": side.number} for side in (left, right)]
        emit_json({"sides": sides, "lanes": [lane.to_json() for lane in lanes]})
    else:
        _show_lanes(left, right, lanes)


def _show_lanes(left: LoggedRequest, right: LoggedRequest, lanes: list[LaneComparison]) -> None:
    out = console()
    for sign, side in (("-", left), ("+", right)):
        out.print(Text(f"{sign} session {side.request.session_id}, request {side.number} ({side.place})"))
    for lane in lanes:
        head = Text(f"\n{lane.lane}", style="bold")
        out.print(head.append("  the same" if lane.same else f"  {lane.counts[0]} -> {lane.counts[1]}", style="dim"))
        for change in lane.changes:
            owner = owner_of(change)
            out.print(Text("  ").append_text(change_text(change, str(owner) if owner.plugin else "")), soft_wrap=True)


@log.command()
@click.argument("log", metavar="LOG")
@click.option("--request", "number", type=int, help="Which one, counted from 1; the last by default.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["vendor", "curl", "neutral"]),
    default="vendor",
    help="The service's own JSON, a curl command without the key, or the request as the log has it.",
)
@common_options
def export(chosen: Chosen, log: str, number: int | None, form: str) -> None:
    """Print a request for use elsewhere."""
    request = request_at(_contents(chosen, log), number)
    if form == "neutral":
        emit_json(neutral_json(request.request))
        return
    wire = anyio.run(_wire, chosen, request)
    click.echo(as_curl(wire) if form == "curl" else wire.body.decode())


async def _wire(chosen: Chosen, request: LoggedRequest) -> WireRequest:
    provider: Any = request.header.config.provider
    async with chosen.harness() as harness:
        known = harness.models.effective(harness.root)
        entry = known.get(provider)
        if entry is None or not isinstance(entry.adapter, WireAdapter):
            problem = "is not installed here" if entry is None else "cannot show its requests"
            raise HarnessError(
                f"The adapter of the model provider {provider!r} {problem}.",
                remedy="Use --as neutral, or a composition that brings an adapter which can.",
                entry=provider,
                known=[name for name, each in known.items() if isinstance(each.adapter, WireAdapter)],
            )
        return entry.adapter.preview(request.request)
