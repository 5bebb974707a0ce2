"""Explanations: why the model sees something, from the registration through every listener to the place where it stands.

Everything is read from one traced assembly (and pre-step); explain_log answers the same of a log, as far as it goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from harness_core.host import Harness, Scope
from harness_core.inspect.authorship import Piece, Writer, history, pieces
from harness_core.inspect.difference import Change, facts, name_of
from harness_core.inspect.step import tool_writers
from harness_core.inspect.texts import speaker
from harness_core.inspect.trace import AssemblyTrace, DispatchTrace, ListenerRun, ProviderRun, listener_json
from harness_core.prompt import render_context_snapshot, render_prompt
from harness_core.prompt._placement import Overrides, override_of
from harness_core.prompt.render import SNAPSHOT_PREAMBLE

__all__ = ["Explanation", "Found", "Registration", "explain", "find_text"]

_LANES = {"section": "sections", "context": "contexts", "variable": "variables", "tool": "tools"}


@attrs.frozen(kw_only=True)
class Registration:
    """One registration of a name. ``status`` says whether it counts here."""

    writer: Writer
    status: str
    facts: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**self.writer.to_json(), "status": self.status, "facts": self.facts}


@attrs.frozen(kw_only=True)
class Explanation:
    """What is known of one element.

    ``place`` is where it stands in the final list, counted from 1 (None: it is not there); ``why`` says why it stands
    there, or why it does not. ``history`` is who changed it, in order; ``text`` is what the model gets of it.
    """

    kind: str
    name: str
    registrations: tuple[Registration, ...]
    place: int | None
    of: int
    why: str
    history: tuple[tuple[ListenerRun, Change], ...] = ()
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "registrations": [each.to_json() for each in self.registrations],
            "place": self.place,
            "of": self.of,
            "why": self.why,
            "history": [{**listener_json(run.listener), "change": change.to_json()} for run, change in self.history],
            "text": self.text,
        }


def explain(
    harness: Harness, scope: Scope, trace: AssemblyTrace, name: str, step: DispatchTrace | None = None
) -> list[Explanation]:
    """All elements of that name in an assembly: sections, contexts, variables, tools; and messages of a pre-step.

    A message is known by its id, or by the plugin that it comes from.
    """
    found: list[Explanation] = []
    for kind in ("section", "context"):
        found += _text_entry(harness, scope, trace, kind, name)
    found += _variable(trace, name)
    found += _tool(harness, scope, trace, name)
    if step is not None:
        found += _messages(step, name)
    return found


def _final(trace: AssemblyTrace, lane: str) -> list[Any]:
    if trace.final is not None:
        return list(trace.final.variables.items() if lane == "variables" else getattr(trace.final, lane))
    return list(trace.given.lanes[lane]) if trace.given is not None else []


def _standing(trace: AssemblyTrace, lane: str, name: str) -> tuple[int | None, int, Any]:
    records = _final(trace, lane)
    place = next((number for number, each in enumerate(records, start=1) if name_of(each) == name), None)
    return place, len(records), records[place - 1] if place is not None else None


def _text_entry(harness: Harness, scope: Scope, trace: AssemblyTrace, kind: str, name: str) -> list[Explanation]:
    lane = _LANES[kind]
    entries = [entry for entry in trace.entries if entry.kind == kind and entry.name == name]
    past = history(trace, lane, name)
    place, of, record = _standing(trace, lane, name)
    if not entries and not past and place is None:
        return []
    registrations = []
    overrides = harness.prompt.overrides_for(scope)
    for number, entry in enumerate(entries):
        nearer = entries[-1]
        status = "in force" if number == len(entries) - 1 else f"shadowed by the one of {Writer.of_entry(nearer)}"
        override = override_of(entry, overrides)
        if override.exclude:
            status = "left out by the composition"
        elif str(override):
            status += f", placed by the composition: {override}"
        registrations.append(Registration(writer=Writer.of_entry(entry), status=status, facts=_entry_facts(entry)))
    text = ""
    if record is not None:
        parts = [piece.text for piece in pieces(trace, lane) if piece.entry == name]
        text = "".join(parts)
    why = _why_text(trace, overrides, kind, entries[-1] if entries else None, past, place, text)
    return [
        Explanation(
            kind=kind,
            name=name,
            registrations=tuple(registrations),
            place=place,
            of=of,
            why=why,
            history=tuple(past),
            text=text,
        )
    ]


def _entry_facts(entry: Any) -> str:
    said = [f"order {entry.order:g}"]
    said += [f"before {each}" for each in entry.before] + [f"after {each}" for each in entry.after]
    if entry.complete:
        said.append("complete")
    if not entry.interpolate:
        said.append("taken as it is")
    if entry.tools:
        said.append(f"only while {', '.join(sorted(entry.tools))} can be seen")
    said.append("from a provider" if entry.provider is not None else "fixed text")
    return ", ".join(said)


def _why_text(
    trace: AssemblyTrace,
    overrides: Overrides,
    kind: str,
    entry: Any,
    past: Sequence[tuple[ListenerRun, Change]],
    place: int | None,
    text: str,
) -> str:
    if place is None:
        return _why_gone(trace, kind, entry, past)
    said: list[str] = []
    if entry is not None:
        order = override_of(entry, overrides).order_of(entry)
        said.append(f"order {order:g}")
        if entry.before or entry.after:
            said.append(_entry_facts(entry).split(", ", 1)[1])
        tied = [
            each.name
            for each in trace.entries
            if each.kind == kind and override_of(each, overrides).order_of(each) == order and each.name != entry.name
        ]
        if tied:
            said.append(f"tied with {', '.join(dict.fromkeys(tied))}: the earlier registration comes first")
    said += [f"{change.kind} by {run.listener.plugin}" for run, change in past if change.kind in ("added", "moved")]
    if not text:
        said.append("it is empty, so the model does not see it")
    return "; ".join(said)


def _why_gone(trace: AssemblyTrace, kind: str, entry: Any, past: Sequence[tuple[ListenerRun, Change]]) -> str:
    if past and past[-1][1].kind == "removed":
        return f"removed by {past[-1][0].listener.label}"
    lane = _LANES[kind]
    if entry is not None and any(
        change.lane == lane and change.kind == "removed" and change.name == entry.name for change in trace.enforced
    ):
        return f"thrown away after the listeners: {trace.enforced_why}"
    suppressors = [each for each in trace.entries if each.kind == "suppressor"]
    if kind == "context" and suppressors:
        return f"the runtime context is suppressed by {Writer.of_entry(suppressors[-1])}"
    return "it is not part of this assembly"


def _variable(trace: AssemblyTrace, name: str) -> list[Explanation]:
    entries = [entry for entry in trace.entries if entry.kind == "variable" and entry.name == name]
    past = history(trace, "variables", name)
    place, of, record = _standing(trace, "variables", name)
    if not entries and not past and place is None:
        return []
    registrations = [
        Registration(
            writer=Writer.of_entry(entry),
            status="in force"
            if entry is entries[-1]
            else f"runs, and is overwritten by {Writer.of_entry(entries[-1])}",
            facts=f"without a value: {entry.missing}",
        )
        for entry in entries
    ]
    users = {
        piece.entry for lane in ("sections", "contexts") for piece in pieces(trace, lane) if piece.variable == name
    }
    why = f"used by {', '.join(sorted(users))}" if users else "no text uses it"
    text = facts(record)["value"] if record is not None else ""
    return [
        Explanation(
            kind="variable",
            name=name,
            registrations=tuple(registrations),
            place=place,
            of=of,
            why=why,
            history=tuple(past),
            text=text,
        )
    ]


def _tool(harness: Harness, scope: Scope, trace: AssemblyTrace, name: str) -> list[Explanation]:
    past = history(trace, "tools", name)
    place, of, record = _standing(trace, "tools", name)
    known = tool_writers(harness, scope)
    registrations = [
        Registration(writer=_tool_writer(known, name, run), status="provided", facts="by a provider of tools")
        for run in trace.providers
        if name in run.tools
    ]
    if not registrations and not past and place is None:
        if name in harness.tools.view(scope).known:
            why = f"hidden by a restriction of a scope between its own and {scope.name!r}"
            return [Explanation(kind="tool", name=name, registrations=(), place=None, of=of, why=why)]
        return []
    order = harness.prompt.settings.tool_order
    if place is None:
        why = f"removed by {past[-1][0].listener.label}" if past else "it is not part of this assembly"
    elif any(change.kind in ("moved", "added") for _, change in past):
        why = f"put there by {past[-1][0].listener.label}"
    elif order is None:
        why = "tools are in alphabetical order"
    else:
        why = f"{'named' if name in order else 'not named'} in tool_order"
    text = facts(record)["description"] if record is not None else ""
    return [
        Explanation(
            kind="tool",
            name=name,
            registrations=tuple(registrations),
            place=place,
            of=of,
            why=why,
            history=tuple(past),
            text=text,
        )
    ]


def _tool_writer(known: Mapping[str, Writer], name: str, run: ProviderRun) -> Writer:
    """The registry's own provider speaks for whoever registered; any other one for itself."""
    if run.origin.plugin is None and name in known:
        return known[name]
    place, origin = run.place or (None, None), run.origin
    return Writer(
        plugin=origin.plugin,
        distribution=origin.distribution,
        version=origin.version,
        scope=origin.scope,
        file=place[0],
        line=place[1],
    )


def _messages(step: DispatchTrace, name: str) -> list[Explanation]:
    given = list(step.given.lanes.get("messages", ()))
    final = list(step.result.lanes.get("messages", ())) if step.result is not None else []
    known: dict[str, Any] = {}
    added = [change.after for _, change in step.touches() if change.lane == "messages" and change.kind == "added"]
    for message in (*given, *added, *final):
        if name in (message.id, message.source.plugin):
            known[message.id] = message
    found = []
    for key, message in known.items():
        past = [(run, change) for run, change in step.touches() if change.item == ("messages", key)]
        place = next((number for number, each in enumerate(final, start=1) if each.id == key), None)
        source = message.source
        who = Writer(plugin=source.plugin) if source.plugin else Writer(plugin=None, scope=source.kind)
        changed = source.data.get("changed", ())
        why = f"{source.kind}, {source.form}" if source.form else source.kind
        if changed:
            why += f"; changed since the last one: {', '.join(map(str, changed))}"
        if place is None:
            why += f"; removed by {past[-1][0].listener.label}" if past else "; it does not enter"
        found.append(
            Explanation(
                kind="message",
                name=key,
                registrations=(Registration(writer=who, status="proposed" if message in given else "added"),),
                place=place,
                of=len(final),
                why=why,
                history=tuple(past),
                text=message.text,
            )
        )
    return found


@attrs.frozen(kw_only=True)
class Found:
    """A piece of text that the model sees: where, and from whom, stretch by stretch."""

    where: str
    start: int
    pieces: tuple[Piece, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "where": self.where,
            "start": self.start,
            "pieces": [
                {
                    "text": piece.text,
                    "entry": piece.entry,
                    "variable": piece.variable,
                    "writer": piece.writer.to_json(),
                    "via": piece.via.to_json() if piece.via is not None else None,
                    "chain": [writer.to_json() for writer in piece.chain],
                }
                for piece in self.pieces
            ],
        }


def find_text(
    trace: AssemblyTrace, fragment: str, *, step: DispatchTrace | None = None, tools: Mapping[str, Writer] | None = None
) -> list[Found]:
    """Every place where the fragment stands: system text, context snapshot, descriptions of tools, entering messages.

    ``tools`` says whose the registered tools are (see `tool_writers`).
    """
    if trace.final is None or not fragment:
        return []
    found: list[Found] = []
    preamble = len(SNAPSHOT_PREAMBLE) + len("\n\n")
    for where, text, lane, offset in (
        ("system text", render_prompt(trace.final), "sections", 0),
        ("context snapshot", render_context_snapshot(trace.final), "contexts", preamble),
    ):
        parts = pieces(trace, lane)
        at = text.find(fragment)
        while at >= 0:
            start, end = at - offset, at - offset + len(fragment)
            cut = [_cut(piece, start, end) for piece in parts if piece.start < end and piece.end > start]
            found.append(Found(where=where, start=at, pieces=tuple(cut)))
            at = text.find(fragment, at + 1)
    found += [
        _tool_text(trace, tool, fragment, (tools or {}).get(tool.name))
        for tool in trace.final.tools
        if fragment in tool.description
    ]
    for message in step.result.lanes.get("messages", ()) if step is not None and step.result is not None else ():
        if fragment in message.text and message.source.form != "snapshot":
            who = Writer(plugin=speaker(message.source))
            found.append(_whole(f"message {message.id}", message.text, fragment, (who,)))
    return found


def _tool_text(trace: AssemblyTrace, tool: Any, fragment: str, writer: Writer | None) -> Found:
    past = [
        Writer.of_listener(run.listener)
        for run, change in history(trace, "tools", tool.name)
        if change.kind == "added" or "description" in change.fields
    ]
    own = [writer] if writer is not None else [Writer(plugin=tool.origin.plugin)] if tool.origin is not None else []
    return _whole(f"tool {tool.name}", tool.description, fragment, (*own, *past))


def _whole(where: str, text: str, fragment: str, chain: tuple[Writer, ...]) -> Found:
    """A find in a text whose stretches are not told apart: it is the last writer's."""
    at = text.find(fragment)
    writer = chain[-1] if chain else Writer(plugin=None, scope="unknown")
    piece = Piece(start=at, end=at + len(fragment), text=fragment, entry=where, writer=writer, chain=chain)
    return Found(where=where, start=at, pieces=(piece,))


def _cut(piece: Piece, start: int, end: int) -> Piece:
    low, high = max(piece.start, start), min(piece.end, end)
    return attrs.evolve(piece, start=low, end=high, text=piece.text[low - piece.start : high - piece.start])
