"""One step, traced and not carried out: what an agent would be told now, here or at the end of a recorded session."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from harness_core.agent import PreparedStep
from harness_core.hooks.listeners import code_place
from harness_core.host import Harness, Scope
from harness_core.inspect.authorship import Writer
from harness_core.inspect.trace import AssemblyTrace, DispatchTrace
from harness_core.inspect.tracer import tracing
from harness_core.session import LogContents, MemoryStore, Session, seed_events

__all__ = ["TracedStep", "tool_writers", "traced_step"]


@attrs.frozen(kw_only=True)
class TracedStep:
    """An assembly and the pre-step after it; ``step`` is None where it did not come to that, ``error`` says why."""

    assembly: AssemblyTrace
    step: DispatchTrace | None
    prepared: PreparedStep | None
    error: Exception | None


async def traced_step(
    harness: Harness,
    scope: Scope,
    messages: Sequence[str] = (),
    *,
    cwd: str | None = None,
    log: LogContents | None = None,
) -> TracedStep:
    """Assemble and propose a step with these messages; with a log, as the next turn of its session.

    Nothing is recorded or sent. What a provider or listener raises is part of the answer.
    """
    session = _continued(log) if log is not None else None
    turn = session.nesting.last_turn + 1 if session is not None else 1
    prepared: PreparedStep | None = None
    failed: Exception | None = None
    with tracing(harness) as tracer:
        try:
            prepared = await harness.prepare_step(
                session if session is not None else scope, messages, scope=scope, cwd=cwd, turn=turn
            )
        except Exception as error:  # it is what the trace is about
            failed = error
    if not tracer.assemblies:
        assert failed is not None
        raise failed
    # Listeners may assemble and dispatch more; what was asked for is what began first.
    return TracedStep(
        assembly=min(tracer.assemblies, key=lambda trace: trace.began),
        step=min(tracer.dispatches("agent_pre_step"), key=lambda trace: trace.began, default=None),
        prepared=prepared,
        error=failed,
    )


def _continued(log: LogContents) -> Session:
    """A session in memory that begins with what the log has; the log itself is not touched."""
    return Session.create(
        log.info.id, cwd=log.info.cwd, store=MemoryStore(), parent=log.info.id, seed=seed_events(log.events)
    )


def tool_writers(harness: Harness, scope: Scope) -> dict[str, Writer]:
    """Who registered the tools that a scope sees, by name."""
    writers: dict[str, Writer] = {}
    for name, tool in harness.tools.view(scope).tools.items():
        place = tool.place or (code_place(tool.handler) if tool.handler is not None else (None, None))
        origin = tool.origin
        writers[name] = Writer(
            plugin=origin.plugin,
            distribution=origin.distribution,
            version=origin.version,
            scope=origin.scope,
            file=place[0],
            line=place[1],
        )
    return writers
