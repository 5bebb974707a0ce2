"""Looking on: who runs when and why, what each one changed, whose each part of a prompt is, what broke the cache.

Reads, and never decides: nothing else imports this package, and a harness without it is the same harness.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_core.inspect.authorship import Piece, Writer, pieces
    from harness_core.inspect.cache import Break, CacheModel, CacheReport, PluginCost, Prices, RequestCost, analyse
    from harness_core.inspect.cause import Cause, causes
    from harness_core.inspect.compare import LaneComparison, compare_requests
    from harness_core.inspect.conflict import Conflict, conflicts
    from harness_core.inspect.difference import Change, Snapshot, changes, snapshot
    from harness_core.inspect.document import cache_document, trace_document
    from harness_core.inspect.document_log import request_document
    from harness_core.inspect.explain_log import LoggedPiece, explain_logged, find_logged
    from harness_core.inspect.explanation import Explanation, Found, Registration, explain, find_text
    from harness_core.inspect.export import as_curl, neutral_json
    from harness_core.inspect.growth import GrowthFinding, GrowthGuard, GrowthLimits, growth_findings
    from harness_core.inspect.logged import LoggedRequest, Owner, logged_requests, open_log
    from harness_core.inspect.order import HookOrder, OrderComparison, compare_orders, hook_order, hook_orders
    from harness_core.inspect.otel import Telemetry, session_spans, telemetry, trace_span
    from harness_core.inspect.page import render_page
    from harness_core.inspect.step import TracedStep, tool_writers, traced_step
    from harness_core.inspect.trace import AssemblyTrace, DispatchTrace, Failure, ListenerRun, ProviderRun
    from harness_core.inspect.tracer import Tracer, tracing

__all__ = [
    "AssemblyTrace",
    "Break",
    "CacheModel",
    "CacheReport",
    "Cause",
    "Change",
    "Conflict",
    "DispatchTrace",
    "Explanation",
    "Failure",
    "Found",
    "GrowthFinding",
    "GrowthGuard",
    "GrowthLimits",
    "HookOrder",
    "LaneComparison",
    "ListenerRun",
    "LoggedPiece",
    "LoggedRequest",
    "OrderComparison",
    "Owner",
    "Piece",
    "PluginCost",
    "Prices",
    "ProviderRun",
    "Registration",
    "RequestCost",
    "Snapshot",
    "Telemetry",
    "TracedStep",
    "Tracer",
    "Writer",
    "analyse",
    "as_curl",
    "cache_document",
    "causes",
    "changes",
    "compare_orders",
    "compare_requests",
    "conflicts",
    "explain",
    "explain_logged",
    "find_logged",
    "find_text",
    "growth_findings",
    "hook_order",
    "hook_orders",
    "logged_requests",
    "neutral_json",
    "open_log",
    "pieces",
    "render_page",
    "request_document",
    "session_spans",
    "snapshot",
    "telemetry",
    "tool_writers",
    "trace_document",
    "trace_span",
    "traced_step",
    "tracing",
]

_HOMES = {
    "authorship": (
        "Piece",
        "Writer",
        "pieces",
    ),
    "cache": (
        "Break",
        "CacheModel",
        "CacheReport",
        "PluginCost",
        "Prices",
        "RequestCost",
        "analyse",
    ),
    "cause": (
        "Cause",
        "causes",
    ),
    "difference": (
        "Change",
        "Snapshot",
        "changes",
        "snapshot",
    ),
    "compare": (
        "LaneComparison",
        "compare_requests",
    ),
    "conflict": (
        "Conflict",
        "conflicts",
    ),
    "document": (
        "cache_document",
        "trace_document",
    ),
    "document_log": ("request_document",),
    "explanation": (
        "Explanation",
        "Found",
        "Registration",
        "explain",
        "find_text",
    ),
    "explain_log": (
        "LoggedPiece",
        "explain_logged",
        "find_logged",
    ),
    "export": (
        "as_curl",
        "neutral_json",
    ),
    "growth": (
        "GrowthFinding",
        "GrowthGuard",
        "GrowthLimits",
        "growth_findings",
    ),
    "logged": (
        "LoggedRequest",
        "Owner",
        "logged_requests",
        "open_log",
    ),
    "order": (
        "HookOrder",
        "OrderComparison",
        "compare_orders",
        "hook_order",
        "hook_orders",
    ),
    "page": ("render_page",),
    "step": (
        "TracedStep",
        "tool_writers",
        "traced_step",
    ),
    "otel": (
        "Telemetry",
        "session_spans",
        "telemetry",
        "trace_span",
    ),
    "trace": (
        "AssemblyTrace",
        "DispatchTrace",
        "Failure",
        "ListenerRun",
        "ProviderRun",
    ),
    "tracer": (
        "Tracer",
        "tracing",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, loaded from its home when it is first asked for."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
