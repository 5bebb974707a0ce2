"""Tracing: turning it on and off for one harness. What is recorded is in trace.py.

While nobody traces, dispatches and assemblies run the very code that they run in a harness that was never traced. Any
number of tracers may be on at once, and they may be turned off in any order (UC-25).
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from harness_core.hooks import Chain, Listener, Waterfall, WaterfallSpec
from harness_core.host import Harness
from harness_core.inspect._chains import Clock, Compile, Recorder, TracedChain
from harness_core.inspect._watch import subject_of, watched_assembly
from harness_core.inspect.difference import snapshot
from harness_core.inspect.trace import AssemblyTrace, DispatchTrace
from harness_core.prompt import PromptAssembly
from harness_core.session import system_clock

__all__ = ["Trace", "TraceSink", "Tracer", "tracing"]

Trace: TypeAlias = AssemblyTrace | DispatchTrace
TraceSink: TypeAlias = Callable[[Trace], None]

KEPT = 1_000
"""Traces that a tracer keeps unless told otherwise; older ones are forgotten."""
_FRAMES_PER_LISTENER = 4
_FRAMES_FOR_OTHERS = 400


class Tracer:
    """What is traced from now on, oldest first.

    An assembly's own waterfall is part of its `AssemblyTrace`; the other waterfalls are `DispatchTrace` records.
    """

    def __init__(self, limit: int, sinks: Sequence[TraceSink], now: Clock, clock: Callable[[], int]) -> None:
        self.traces: deque[Trace] = deque(maxlen=limit)
        self.now = now
        self.clock = clock
        self._sinks = tuple(sinks)

    @property
    def assemblies(self) -> list[AssemblyTrace]:
        return [trace for trace in self.traces if isinstance(trace, AssemblyTrace)]

    def dispatches(self, hook: str | None = None) -> list[DispatchTrace]:
        """The dispatches of a hook, or of all of them; those of assemblies included."""
        found: list[DispatchTrace] = []
        for trace in self.traces:
            each = trace.dispatch if isinstance(trace, AssemblyTrace) else trace
            if each is not None and hook in (None, each.hook):
                found.append(each)
        return found

    def take(self, trace: Trace) -> None:
        """Keep a trace that is complete, and tell the sinks."""
        self.traces.append(trace)
        for sink in self._sinks:
            sink(trace)


@contextmanager
def tracing(
    harness: Harness,
    *sinks: TraceSink,
    limit: int = KEPT,
    now: Clock = time.perf_counter_ns,
    clock: Callable[[], int] = system_clock,
) -> Iterator[Tracer]:
    """Trace every assembly and dispatch of a harness while the context is open.

    Args:
        sinks: called with each trace when it is complete; see `harness_core.inspect.otel`.
        limit: how many traces are kept.
        now: nanoseconds, for durations.
        clock: wall-clock milliseconds.
    """
    tracer = Tracer(limit, sinks, now, clock)
    instrument = _Instrument.of(harness)
    instrument.add(tracer)
    try:
        yield tracer
    finally:
        instrument.remove(tracer)


class _Instrument:
    """What stands in the places of a harness that tracing uses; all of its tracers share it."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._tracers: dict[Tracer, None] = {}
        self._own: dict[Waterfall[Any, Any], Compile] = {}
        self._recursion_limit: int | None = None

    @classmethod
    def of(cls, harness: Harness) -> _Instrument:
        found = getattr(harness.prompt.watch, "__self__", None)
        return found if isinstance(found, cls) else cls(harness)

    def add(self, tracer: Tracer) -> None:
        if not self._tracers:
            for waterfall in self._harness.hooks.waterfalls.values():
                self._own[waterfall] = waterfall.compile
                waterfall.compile = self._compiler(waterfall.compile)
                waterfall.recompile()
            self._harness.prompt.watch = self.assemble
        self._tracers[tracer] = None

    def remove(self, tracer: Tracer) -> None:
        self._tracers.pop(tracer, None)
        if self._tracers:
            return
        self._harness.prompt.watch = None
        for waterfall, own in self._own.items():
            if isinstance(waterfall.compile, _Compiler):
                waterfall.compile = own  # otherwise somebody has wrapped it, and it passes through from now on
            waterfall.recompile()
        self._own.clear()
        if self._recursion_limit is not None:
            with suppress(RecursionError):  # still too deep inside of something to lower it
                sys.setrecursionlimit(self._recursion_limit)
            self._recursion_limit = None

    def _compiler(self, own: Compile) -> _Compiler:
        return _Compiler(self, own)

    def chain(self, own: Compile, spec: WaterfallSpec, listeners: Sequence[Listener]) -> Chain | None:
        if not self._tracers:
            return own(spec, listeners)
        self._make_room(len(listeners))
        return TracedChain(spec, listeners, own, self._begin)

    def _make_room(self, listeners: int) -> None:
        """A traced listener takes more of the stack than a plain one; tracing must not fail where the dispatch would not."""
        wanted = _FRAMES_FOR_OTHERS + listeners * _FRAMES_PER_LISTENER
        limit = sys.getrecursionlimit()
        if wanted > limit:
            if self._recursion_limit is None:
                self._recursion_limit = limit
            sys.setrecursionlimit(wanted)

    def _begin(self, spec: WaterfallSpec, value: Any, context: Any, listeners: Sequence[Listener]) -> Recorder:
        tracers = tuple(self._tracers)
        lead = tracers[0] if tracers else Tracer(1, (), time.perf_counter_ns, system_clock)
        source = context if context is not None else value
        scope = getattr(source, "scope", None)
        trace = DispatchTrace(
            hook=spec.hook,
            scope=scope.name if scope is not None else self._harness.root.name,
            subject=subject_of(source),
            began=lead.now(),
            given=snapshot(value),
            listeners=tuple(listeners),
            started_ms=lead.clock(),
        )
        return Recorder(spec, trace, lead.now, lambda done: self._tell(tracers, done))

    def _tell(self, tracers: tuple[Tracer, ...], trace: DispatchTrace) -> None:
        if trace.hook != "system_prompt_assemble":
            for tracer in tracers:
                tracer.take(trace)

    async def assemble(self, dispatch: Any, context: Any) -> PromptAssembly:
        tracers = tuple(self._tracers)
        lead = tracers[0]
        scope = getattr(context, "scope", context) or self._harness.root
        trace = AssemblyTrace(scope=scope.name, subject=subject_of(context), began=lead.now(), started_ms=lead.clock())
        try:
            return await watched_assembly(self._harness.prompt, dispatch, context, trace, lead.now)
        finally:
            for tracer in tracers:
                tracer.take(trace)


class _Compiler:
    """Compiles chains for an instrument; passes through when nobody traces any more."""

    def __init__(self, instrument: _Instrument, own: Compile) -> None:
        self._instrument = instrument
        self._own = own

    def __call__(self, spec: WaterfallSpec, listeners: Sequence[Listener]) -> Chain | None:
        return self._instrument.chain(self._own, spec, listeners)
