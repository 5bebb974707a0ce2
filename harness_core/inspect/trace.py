"""Traces: what happened in one dispatch of a waterfall, and in one assembly. Records only; tracer.py makes them.

Times are in nanoseconds of the tracer's clock, so only their differences mean something.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from harness_core.hooks import Listener, Style
from harness_core.inspect.difference import Change, Snapshot
from harness_core.prompt import PromptAssembly
from harness_core.scopes import Origin

__all__ = ["AssemblyTrace", "DispatchTrace", "Failure", "ListenerRun", "ProviderRun"]


@attrs.frozen(kw_only=True)
class Failure:
    """An exception, as far as it is of interest when it is over."""

    kind: str
    message: str
    file: str | None = None
    line: int | None = None
    error: BaseException = attrs.field(repr=False, eq=False)

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        frames = traceback.extract_tb(error.__traceback__)
        last = frames[-1] if frames else None
        return cls(
            kind=type(error).__name__,
            message=str(error),
            file=last.filename if last is not None else None,
            line=last.lineno if last is not None else None,
            error=error,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noted on it, also by those further out."""
        return tuple(getattr(self.error, "__notes__", ()))

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.kind,
            "message": self.message,
            "notes": list(self.notes),
            "file": self.file,
            "line": self.line,
        }


@attrs.define(kw_only=True, eq=False)
class ListenerRun:
    """One listener's part in one dispatch.

    ``inward`` is what it changed before the listeners further in ran, ``outward`` what it changed after that. ``answered``:
    it ended the dispatch without asking anybody further in. ``own_result``: it returned another object than it got from
    inside. ``raised`` is what left it, ``caught`` what came from inside and did not leave it.
    """

    listener: Listener
    number: int
    parent: int | None
    """The number of the run that this one took place inside of."""
    began: int
    ended: int = 0
    inner: int = 0
    recording: int = 0
    received: Snapshot
    returned: Snapshot | None = None
    inward: tuple[Change, ...] = ()
    outward: tuple[Change, ...] = ()
    handed_other: bool = False
    answered: bool = False
    own_result: bool = False
    raised: Failure | None = None
    caught: Failure | None = None

    @property
    def total(self) -> int:
        """Nanoseconds, with everything further in."""
        return self.ended - self.began

    @property
    def own(self) -> int:
        """Nanoseconds in the listener's own code, and in what it waited for itself."""
        return self.total - self.inner - self.recording

    @property
    def changes(self) -> tuple[Change, ...]:
        return (*self.inward, *self.outward)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            **listener_json(self.listener),
            "parent": self.parent,
            "own_ns": self.own,
            "total_ns": self.total,
            "received": str(self.received),
            "returned": str(self.returned) if self.returned is not None else None,
            "inward": [change.to_json() for change in self.inward],
            "outward": [change.to_json() for change in self.outward],
            "handed_other": self.handed_other,
            "answered": self.answered,
            "own_result": self.own_result,
        }
        for name, failure in (("raised", self.raised), ("caught", self.caught)):
            if failure is not None:
                data[name] = failure.to_json()
        return data


def listener_json(listener: Listener) -> dict[str, Any]:
    """A listener as reports name it."""
    return {
        "hook": listener.hook,
        "plugin": listener.plugin,
        "distribution": listener.distribution,
        "version": listener.version,
        "scope": listener.scope.name,
        "style": listener.style.value,
        "function": getattr(listener.function, "__qualname__", repr(listener.function)),
        "file": listener.file,
        "line": listener.line,
        "why": listener.why,
    }


@attrs.define(kw_only=True, eq=False)
class DispatchTrace:
    """One dispatch: the runs in the order in which they began, and who was not reached.

    ``end`` is the time that the innermost answer took, None where nobody asked for it. ``subject`` says what the dispatch
    was about: agent, session, turn, step.
    """

    hook: str
    scope: str
    subject: Mapping[str, Any]
    began: int
    given: Snapshot
    ended: int = 0
    end: int | None = None
    listeners: tuple[Listener, ...] = ()
    runs: list[ListenerRun] = attrs.field(factory=list)
    result: Snapshot | None = None
    failure: Failure | None = None
    started_ms: int = 0
    """The wall clock when it began, for spans."""

    @property
    def total(self) -> int:
        return self.ended - self.began

    @property
    def unreached(self) -> tuple[Listener, ...]:
        """Admitted listeners that did not run, outermost first."""
        ran = {id(run.listener) for run in self.runs}
        return tuple(listener for listener in self.listeners if id(listener) not in ran)

    def touches(self) -> list[tuple[ListenerRun, Change]]:
        """All changes in the order in which they were made."""
        found: list[tuple[ListenerRun, Change]] = []
        around: list[ListenerRun] = []
        for run in self.runs:
            found += [(run, change) for change in run.inward]
            if run.listener.style is not Style.PLAIN:
                around.append(run)
        for run in reversed(around):
            found += [(run, change) for change in run.outward]
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "hook": self.hook,
            "scope": self.scope,
            "subject": dict(self.subject),
            "total_ns": self.total,
            "end_ns": self.end,
            "given": str(self.given),
            "result": str(self.result) if self.result is not None else None,
            "runs": [run.to_json() for run in self.runs],
            "unreached": [listener_json(listener) for listener in self.unreached],
            "failure": self.failure.to_json() if self.failure is not None else None,
        }


@attrs.define(kw_only=True, eq=False)
class ProviderRun:
    """One call of a provider. ``tools`` are the names of the tools that a provider of tools came up with."""

    kind: str
    name: str
    origin: Origin
    layer: str
    place: tuple[str, int] | None
    began: int
    ended: int = 0
    tools: tuple[str, ...] = ()
    failure: Failure | None = None

    @property
    def total(self) -> int:
        return self.ended - self.began

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "plugin": self.origin.plugin,
            "distribution": self.origin.distribution,
            "version": self.origin.version,
            "layer": self.layer,
            "file": self.place[0] if self.place else None,
            "line": self.place[1] if self.place else None,
            "tools": list(self.tools),
            "total_ns": self.total,
            "failure": self.failure.to_json() if self.failure is not None else None,
        }


@attrs.define(kw_only=True, eq=False)
class AssemblyTrace:
    """One assembly: providers, the waterfall, and what enforcement threw away after it.

    ``entries`` are all registrations on the scope's chain, the global layer's first, shadowed ones included. ``given`` is
    what the providers had made of them, ``final`` the assembly that came out, ``failure`` what came out instead. Providers
    of variables that were registered while the variables were evaluated are not among ``providers``.
    """

    scope: str
    subject: Mapping[str, Any]
    began: int
    ended: int = 0
    entries: tuple[Any, ...] = attrs.field(default=(), repr=False)
    providers: list[ProviderRun] = attrs.field(factory=list)
    dispatch: DispatchTrace | None = None
    given: Snapshot | None = None
    enforced: tuple[Change, ...] = ()
    enforced_why: str = ""
    final: PromptAssembly | None = attrs.field(default=None, repr=False)
    failure: Failure | None = None
    started_ms: int = 0

    @property
    def total(self) -> int:
        return self.ended - self.began

    def to_json(self) -> dict[str, Any]:
        return {
            "scope": self.scope,
            "subject": dict(self.subject),
            "total_ns": self.total,
            "providers": [run.to_json() for run in self.providers],
            "waterfall": self.dispatch.to_json() if self.dispatch is not None else None,
            "enforced": [change.to_json() for change in self.enforced],
            "enforced_why": self.enforced_why,
            "failure": self.failure.to_json() if self.failure is not None else None,
        }


def in_milliseconds(nanoseconds: int) -> str:
    """A time for people."""
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1_000:.1f} µs"
    return f"{nanoseconds / 1_000_000:.2f} ms"


def nesting(runs: Sequence[ListenerRun]) -> list[int]:
    """How deep each run is inside of others."""
    depths: list[int] = []
    for run in runs:
        depths.append(0 if run.parent is None else depths[run.parent] + 1)
    return depths
