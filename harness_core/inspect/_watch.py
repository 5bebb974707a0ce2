"""Watched assemblies: the same evaluation as ever, with a stop-watch around each provider.

While the providers run (nothing awaits there), the view's own tuples of providers give way to timed ones; they are back
before the first listener runs, whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness_core.inspect._chains import Recorder, TracedChain
from harness_core.inspect.difference import changes, snapshot
from harness_core.inspect.trace import AssemblyTrace, Failure, ProviderRun
from harness_core.prompt import AssembleContext, PromptAssembly, PromptRegistry, ToolProviderResult, assemble
from harness_core.prompt._view import View
from harness_core.scopes import ScopeNode

__all__ = ["subject_of", "watched_assembly"]

Clock = Callable[[], int]


async def watched_assembly(
    registry: PromptRegistry, dispatch: Any, context: Any, trace: AssemblyTrace, now: Clock
) -> PromptAssembly:
    """Assemble, and record how; raises what the assembly raises."""
    watched = _WatchedRegistry(registry, trace, now)
    hook = _WatchedHook(dispatch, watched) if dispatch is not None else None
    try:
        assembly = await assemble(watched, hook, context)  # type: ignore[arg-type]
    except BaseException as error:
        trace.failure = Failure.of(error)
        raise
    finally:
        watched.restore()
        trace.ended = now()
    trace.final = assembly
    _note_enforcement(trace, watched, assembly)
    return assembly


def _note_enforcement(trace: AssemblyTrace, watched: _WatchedRegistry, assembly: PromptAssembly) -> None:
    before = trace.dispatch.result if trace.dispatch is not None else trace.given
    final = snapshot(assembly)
    if trace.given is None:
        trace.given = final
    if before is None:
        return
    trace.enforced = changes(before, final)
    why = [f"section {name!r} is the complete prompt" for name in watched.complete]
    if watched.suppressed:
        why.append("the runtime context is suppressed here")
    trace.enforced_why = "; ".join(why)


def subject_of(context: Any) -> dict[str, Any]:
    """Whom an assembly or a dispatch is about, from whatever record says so."""
    found: dict[str, Any] = {}
    agent, session = getattr(context, "agent", None), getattr(context, "session", None)
    if agent is not None:
        found["agent"] = agent.id
    if session is not None:
        found["session"] = session.id
    for name in ("turn", "step", "attempt", "cwd"):
        value = getattr(context, name, None)
        if value is not None:
            found[name] = value
    return found


class _WatchedRegistry:
    """The registry as one watched assembly sees it."""

    watch = None

    def __init__(self, registry: PromptRegistry, trace: AssemblyTrace, now: Clock) -> None:
        self._registry = registry
        self._trace = trace
        self._now = now
        self._changed: list[tuple[Any, str, Any]] = []
        self._views = 0
        self.suppressed = False
        self.complete: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)

    def view(self, scope: ScopeNode) -> View:
        """The scope's view, with timed providers."""
        self.restore()
        view = self._registry.view(scope)
        if self._views == 0:
            self.suppressed = view.suppressed
        self._views += 1
        self.complete = view.complete
        if self._views == 1:
            self._put(
                view,
                "variable_calls",
                tuple((name, self._timed(provider, entry), entry) for name, provider, entry in view.variable_calls),
            )
        self._put(view.tools, "_providers", self._timed_all(view.tools._providers, view.tools.entries))
        for lane in (view.sections, view.contexts):
            entries = [lane.entries[position] for position in lane._positions]
            self._put(lane, "_providers", self._timed_all(lane._providers, entries))
        return view

    def _put(self, owner: Any, name: str, value: Any) -> None:
        self._changed.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def ready(self, scope: ScopeNode) -> None:
        """The providers have run."""
        self.restore()
        self._trace.entries = tuple(self._registry.entries(scope))

    def restore(self) -> None:
        """Give the views their own providers back."""
        while self._changed:
            owner, name, value = self._changed.pop()
            setattr(owner, name, value)

    def _timed_all(self, providers: Any, entries: Any) -> tuple[Any, ...]:
        return tuple(self._timed(provider, entry) for provider, entry in zip(providers, entries, strict=True))

    def _timed(self, provider: Callable[[Any], Any], entry: Any) -> Callable[[Any], Any]:
        def timed(context: AssembleContext) -> Any:
            run = ProviderRun(
                kind=entry.kind,
                name=entry.name,
                origin=entry.origin,
                layer=entry.layer,
                place=entry.place,
                began=self._now(),
            )
            self._trace.providers.append(run)
            try:
                result = provider(context)
            except BaseException as error:
                run.failure = Failure.of(error)
                raise
            finally:
                run.ended = self._now()
            if run.kind == "tools":
                run.tools = _tool_names(result)
            return result

        return timed


class _WatchedHook:
    """The waterfall of assemblies as one watched assembly sees it."""

    def __init__(self, dispatch: Any, watched: _WatchedRegistry) -> None:
        self._dispatch = dispatch
        self._watched = watched

    def chain(self, scope: ScopeNode) -> Any:
        self._watched.ready(scope)
        chain = self._dispatch.chain(scope)
        return _WatchedChain(chain, self._watched) if isinstance(chain, TracedChain) else chain


class _WatchedChain(TracedChain):
    """Leaves its trace with the assembly's."""

    __slots__ = ("_watched",)

    def __init__(self, chain: TracedChain, watched: _WatchedRegistry) -> None:
        def begin(spec: Any, value: Any, context: Any, listeners: Any) -> Recorder:
            recorder = chain._begin(spec, value, context, listeners)
            watched._trace.dispatch = recorder.trace
            watched._trace.given = recorder.trace.given
            return recorder

        super().__init__(chain.spec, chain.listeners, chain._compile, begin)
        self._watched = watched


def _tool_names(result: object) -> tuple[str, ...]:
    schemas = result.schemas if isinstance(result, ToolProviderResult) else result
    if not isinstance(schemas, (list, tuple)):
        return ()  # it can be read only once, and not by us
    return tuple(str(getattr(schema, "name", schema)) for schema in schemas)
