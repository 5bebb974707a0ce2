"""What the page shows, as plain JSON: one traced assembly with its pre-step, and one log's cache report.

Made in bulk: an assembly may have hundreds of sections and a thousand tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness_core.hooks import Listener
from harness_core.inspect.authorship import Piece, Writer, pieces
from harness_core.inspect.cache import CacheReport
from harness_core.inspect.conflict import conflicts
from harness_core.inspect.difference import Change, facts, name_of
from harness_core.inspect.growth import GrowthFinding
from harness_core.inspect.order import HookOrder
from harness_core.inspect.texts import text_diff
from harness_core.inspect.trace import AssemblyTrace, DispatchTrace, Failure, ListenerRun, ProviderRun
from harness_core.inspect.wire import BYTES_PER_TOKEN

__all__ = ["cache_document", "trace_document"]


class _Writers:
    """The table of writers that everything else in a document points into."""

    def __init__(self) -> None:
        self._places: dict[Writer, int] = {}

    def place(self, writer: Writer) -> int:
        return self._places.setdefault(writer, len(self._places))

    def listed(self) -> list[dict[str, Any]]:
        return [{"label": str(writer), "name": writer.name, **writer.to_json()} for writer in self._places]


# --- traces -----------------------------------------------------------------------------------------------------------


def trace_document(
    trace: AssemblyTrace,
    step: DispatchTrace | None = None,
    *,
    orders: Sequence[HookOrder] = (),
    tools: Mapping[str, Writer] | None = None,
) -> dict[str, Any]:
    """An assembly, and the pre-step that was made with it.

    Args:
        orders: says who was filtered out; see `hook_order`.
        tools: whose the registered tools are, by name.
    """
    writers = _Writers()
    dispatches = [each for each in (trace.dispatch, step) if each is not None]
    touched = _touched(dispatches, writers)
    filtered = {order.hook: order.filtered for order in orders}
    return {
        "scope": trace.scope,
        "subject": {name: str(value) for name, value in trace.subject.items()},
        "total_ns": trace.total,
        "failure": _failure(trace.failure),
        "waterfalls": [
            {
                **_dispatch(each),
                "filtered": [
                    {**_listener(found.listener), "reason": found.reason} for found in filtered.get(each.hook, ())
                ],
            }
            for each in dispatches
        ],
        "enforced": {"why": trace.enforced_why, "changes": [_change(change) for change in trace.enforced]},
        "providers": [_provider(run) for run in trace.providers],
        "lanes": {
            "sections": _text_lane(trace, "sections", touched, writers),
            "contexts": _text_lane(trace, "contexts", touched, writers),
            "tools": _tools(trace, touched, writers, tools or {}),
            "variables": _variables(trace, touched, writers),
            "messages": _messages(step, touched) if step is not None else [],
        },
        "writers": writers.listed(),
    }


def _touched(dispatches: Iterable[DispatchTrace], writers: _Writers) -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for dispatch in dispatches:
        for run, change in dispatch.touches():
            by = writers.place(Writer.of_listener(run.listener))
            found.setdefault(change.item, []).append({"by": by, **_change(change)})
    return found


def _change(change: Change) -> dict[str, Any]:
    data: dict[str, Any] = {"lane": change.lane, "kind": change.kind, "name": change.name}
    if change.kind == "moved":
        data["places"] = list(change.places)
    if change.fields:
        data["fields"] = {name: text_diff(old, new) for name, (old, new) in change.fields.items()}
    elif change.kind in ("added", "removed"):
        sign = "+" if change.kind == "added" else "-"
        element = change.after if change.kind == "added" else change.before
        data["fields"] = {name: [(sign, text)] for name, text in facts(element).items()} if element is not None else {}
    return data


def _listener(listener: Listener) -> dict[str, Any]:
    return {
        "plugin": listener.plugin,
        "version": listener.version,
        "distribution": listener.distribution,
        "scope": listener.scope.name,
        "style": listener.style.value,
        "function": getattr(listener.function, "__qualname__", ""),
        "file": listener.file,
        "line": listener.line,
        "why": listener.why,
    }


def _failure(failure: Failure | None) -> dict[str, Any] | None:
    return failure.to_json() if failure is not None else None


def _run(run: ListenerRun) -> dict[str, Any]:
    return {
        **_listener(run.listener),
        "parent": run.parent,
        "own_ns": run.own,
        "total_ns": run.total,
        "inward": [_change(change) for change in run.inward],
        "outward": [_change(change) for change in run.outward],
        "handed_other": run.handed_other,
        "answered": run.answered,
        "returned": str(run.returned) if run.returned is not None else None,
        "raised": _failure(run.raised),
        "caught": _failure(run.caught),
    }


def _dispatch(dispatch: DispatchTrace) -> dict[str, Any]:
    return {
        "hook": dispatch.hook,
        "total_ns": dispatch.total,
        "given": str(dispatch.given),
        "result": str(dispatch.result) if dispatch.result is not None else None,
        "runs": [_run(run) for run in dispatch.runs],
        "unreached": [_listener(listener) for listener in dispatch.unreached],
        "conflicts": [str(conflict) for conflict in conflicts(dispatch)],
        "failure": _failure(dispatch.failure),
    }


def _provider(run: ProviderRun) -> dict[str, Any]:
    return {
        "kind": run.kind,
        "name": run.name if run.kind != "tools" else f"({len(run.tools)})",
        "plugin": run.origin.plugin or f"scope {run.origin.scope}",
        "file": run.place[0] if run.place else None,
        "line": run.place[1] if run.place else None,
        "total_ns": run.total,
        "failure": _failure(run.failure),
    }


def _text_lane(
    trace: AssemblyTrace, lane: str, touched: Mapping[tuple[str, str], list[dict[str, Any]]], writers: _Writers
) -> list[dict[str, Any]]:
    by_entry: dict[str, list[Piece]] = {}
    for piece in pieces(trace, lane):
        by_entry.setdefault(piece.entry, []).append(piece)
    kind = lane.removesuffix("s")
    entries: dict[str, list[Any]] = {}
    for entry in trace.entries:
        if entry.kind == kind:
            entries.setdefault(entry.name, []).append(entry)
    standing = [name_of(record) for record in getattr(trace.final, lane, ())]
    gone = [name for name in entries if name not in set(standing)]
    found = []
    for name in dict.fromkeys([*standing, *gone]):
        own, cut = entries.get(name, []), by_entry.get(name, [])
        text = sum(len(piece.text) for piece in cut)
        found.append(
            {
                "name": name,
                "standing": name in standing,
                "order": own[-1].order if own else None,
                "registered": [writers.place(Writer.of_entry(entry)) for entry in own],
                "chain": [writers.place(writer) for writer in cut[0].chain] if cut else [],
                "pieces": [_piece(piece, writers) for piece in cut],
                "history": touched.get((lane, name), []),
                "characters": text,
                "tokens": -(-text // BYTES_PER_TOKEN),
            }
        )
    return found


def _piece(piece: Piece, writers: _Writers) -> list[Any]:
    """Text and writer; for a variable's value also its name and who put the reference there."""
    cut: list[Any] = [piece.text, writers.place(piece.writer)]
    if piece.variable is not None:
        cut += [piece.variable, writers.place(piece.via) if piece.via is not None else None]
    return cut


def _tools(
    trace: AssemblyTrace,
    touched: Mapping[tuple[str, str], list[dict[str, Any]]],
    writers: _Writers,
    known: Mapping[str, Writer],
) -> list[dict[str, Any]]:
    provided = {
        name: Writer(
            plugin=run.origin.plugin,
            distribution=run.origin.distribution,
            version=run.origin.version,
            scope=run.layer,
            file=run.place[0] if run.place else None,
            line=run.place[1] if run.place else None,
        )
        for run in trace.providers
        for name in run.tools
        if run.origin.plugin is not None
    }
    found = []
    for place, tool in enumerate(getattr(trace.final, "tools", ()), start=1):
        writer = known.get(tool.name) or provided.get(tool.name)
        if writer is None and tool.origin is not None:
            writer = Writer(plugin=tool.origin.plugin, version=tool.origin.version, scope=tool.origin.scope)
        found.append(
            {
                "name": tool.name,
                "place": place,
                "registered": [writers.place(writer)] if writer is not None else [],
                "description": tool.description,
                "parameters": facts(tool)["parameters"],
                "history": touched.get(("tools", tool.name), []),
            }
        )
    names = {each["name"] for each in found}
    found += [
        {"name": name, "place": None, "registered": [], "description": "", "parameters": "", "history": past}
        for (lane, name), past in touched.items()
        if lane == "tools" and name not in names
    ]
    return found


def _variables(
    trace: AssemblyTrace, touched: Mapping[tuple[str, str], list[dict[str, Any]]], writers: _Writers
) -> list[dict[str, Any]]:
    owners: dict[str, list[int]] = {}
    for entry in trace.entries:
        if entry.kind == "variable":
            owners.setdefault(entry.name, []).append(writers.place(Writer.of_entry(entry)))
    values = trace.final.variables if trace.final is not None else {}
    return [
        {
            "name": name,
            "value": values.get(name),
            "registered": owners.get(name, []),
            "history": touched.get(("variables", name), []),
        }
        for name in dict.fromkeys([*values, *owners])
    ]


def _messages(step: DispatchTrace, touched: Mapping[tuple[str, str], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    final = list(step.result.lanes.get("messages", ())) if step.result is not None else []
    given = list(step.given.lanes.get("messages", ()))
    entering = {message.id for message in final}
    return [
        {
            "name": message.id,
            "entering": message.id in entering,
            "source": " ".join(filter(None, (message.source.plugin or message.source.kind, message.source.form))),
            "changed": [str(name) for name in message.source.data.get("changed", ())],
            "text": message.text,
            "history": touched.get(("messages", message.id), []),
        }
        for message in dict.fromkeys([*final, *(each for each in given if each.id not in entering)])
    ]


# --- caches -----------------------------------------------------------------------------------------------------------


def cache_document(report: CacheReport, growth: Sequence[GrowthFinding] = ()) -> dict[str, Any]:
    """A log's requests, its breaks and who is behind them."""
    return {
        "requests": [
            {**cost.to_json(), "cause": str(cost.break_.cause) if cost.break_ is not None else None}
            for cost in report.requests
        ],
        "ranking": [each.to_json() for each in report.ranking],
        "models": report.to_json()["models"],
        "cost": report.cost,
        "growth": [str(finding) for finding in growth],
    }
