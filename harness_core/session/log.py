"""A session: its log, held open by its one writer, and what follows from it event by event.

An append is encoded, written through, then visible, then told to observers, in this order and nothing else (LOG-03). The
session knows neither agents nor prompts nor plugins; everything it offers can be computed again from its file.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, Self, TypeAlias

import anyio.to_thread
import attrs

from harness_core.models.messages import Message
from harness_core.models.request import ModelRequest, RequestHeader
from harness_core.session._clock import Clock, system_clock
from harness_core.session._prefix import Prefix
from harness_core.session.codec import LogCodec, encode_info
from harness_core.session.digest import header_digest, request_digest
from harness_core.session.errors import SessionClosedError, SessionError
from harness_core.session.events import (
    Event,
    EventData,
    HeaderWritten,
    RequestContext,
    SessionInfo,
    SessionSeeded,
    SurfaceOperation,
)
from harness_core.session.nesting import Nesting
from harness_core.session.reading import LogContents, read_lines
from harness_core.session.repair import closers
from harness_core.session.store import LogWriter, MemoryStore, SessionStore
from harness_core.session.surface import Surface

__all__ = ["Durability", "Observation", "Observer", "Session"]

Durability: TypeAlias = Literal["request", "event", "never"]
"""When a log is made to outlive the machine, not only the process: before each request, after each event, or never."""

Observer: TypeAlias = Callable[[Event], None]

_log = logging.getLogger("harness_core.session")


def _report(error: Exception, event: Event, observer: Observer) -> None:
    _log.error(
        "An observer of the session's events raised on event %d (%s): %r",
        event.seq,
        event.type,
        observer,
        exc_info=error,
    )


class Observation:
    """An observer's registration; `dispose` undoes it and may be called again."""

    def __init__(self, observers: dict[Observation, Observer]) -> None:
        self._observers = observers

    def dispose(self) -> None:
        self._observers.pop(self, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()


class Session:
    """One open session. Made by `create` or `resume`; `close` gives the log back."""

    def __init__(
        self,
        info: SessionInfo,
        store: SessionStore,
        writer: LogWriter,
        *,
        codec: LogCodec,
        clock: Clock,
        durability: Durability,
        report: Callable[[Exception, Event, Observer], None] = _report,
    ) -> None:
        self.info = info
        self.surface = Surface()
        self.header: RequestHeader | None = None
        """The newest header of the log, which the next request is built from."""
        self.route: RequestContext | None = None
        """The newest route that was logged."""
        self.torn_kept: str | None = None
        """Where the torn end of the log was put when it was resumed, if it had one (LOG-07)."""
        self.repaired: tuple[Event, ...] = ()
        """The events that closed an interrupted turn when it was resumed (LOG-06)."""
        self._store = store
        self._writer: LogWriter | None = writer
        self._codec = codec
        self._clock = clock
        self._durability: Durability = durability
        self._report = report
        self._nesting = Nesting()
        self._events: list[Event] = []
        self._header_digest = ""
        self._unsynced = False
        self._observers: dict[Observation, Observer] = {}
        self._untold: deque[Event] = deque()
        self._telling = False

    # --- opening ------------------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        session_id: str,
        *,
        cwd: str,
        store: SessionStore | None = None,
        parent: str | None = None,
        depth: int = 0,
        seed: Sequence[Event] = (),
        clock: Clock = system_clock,
        durability: Durability = "request",
    ) -> Session:
        """A new session; with ``seed`` (see `fork.seed_events`) it goes on from another one's events.

        Raises:
            SessionExistsError, StoreError: nothing was made.
        """
        if not session_id:
            raise SessionError("A session needs an id that is not empty.", session=session_id)
        store = MemoryStore() if store is None else store
        info = SessionInfo(
            id=session_id, created_at_ms=clock(), cwd=cwd, parent=parent, seed_length=len(seed), depth=depth
        )
        codec = LogCodec()
        lines, inherited = [encode_info(info)], list(seed)
        if seed:
            inherited.append(Event(len(seed), info.created_at_ms, SessionSeeded(origin=parent)))
        for event in inherited:
            lines.append(codec.encode(event.seq, event.time_ms, event.data, event.surface))
            codec.learn(event.data)
        writer = store.create(session_id, lines)
        session = cls(info, store, writer, codec=codec, clock=clock, durability=durability)
        for event in inherited:
            session._check(event.data, event.surface)
            session._take(event)
        return session

    @classmethod
    def resume(
        cls,
        session_id: str,
        *,
        store: SessionStore,
        clock: Clock = system_clock,
        durability: Durability = "request",
    ) -> Session:
        """The stored session, for going on with it: locked, its torn end cut off, an interrupted turn closed.

        Raises:
            SessionNotFoundError, SessionLockedError, LogFormatError, LogDamagedError, StoreError
        """
        writer, stored = store.open(session_id)
        try:
            codec = LogCodec()
            contents: LogContents = read_lines(stored.lines, where=stored.where, codec=codec)
            session = cls(contents.info, store, writer, codec=codec, clock=clock, durability=durability)
            session.torn_kept = stored.torn_kept
            for event in contents.events:
                session._take(event)
            session._repair()
        except BaseException:
            writer.close()
            raise
        return session

    def _repair(self) -> None:
        time_ms = self._events[-1].time_ms if self._events else self.info.created_at_ms
        self.repaired = tuple(self._write(data, surface, time_ms) for data, surface in closers(self._events))

    # --- reading ------------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def cwd(self) -> str:
        return self.info.cwd

    @property
    def parent(self) -> str | None:
        return self.info.parent

    @property
    def depth(self) -> int:
        return self.info.depth

    @property
    def created_at_ms(self) -> int:
        return self.info.created_at_ms

    @property
    def where(self) -> str:
        """Where the log is kept, for people."""
        return self._writer.where if self._writer is not None else f"closed session {self.id!r}"

    @property
    def events(self) -> Sequence[Event]:
        """All events so far: an immutable view that costs nothing to take."""
        return Prefix(self._events)

    @property
    def messages(self) -> Sequence[Message]:
        """What the model sees (SURF-03)."""
        return self.surface.messages

    @property
    def nesting(self) -> Nesting:
        """Where the log stands: a copy."""
        return attrs.evolve(self._nesting)

    @property
    def closed(self) -> bool:
        return self._writer is None

    def request(self) -> ModelRequest:
        """The request as the log has it now: latest header, derived messages, and nothing else (REQ-01).

        Raises:
            SessionError: no header was logged yet.
        """
        if self.header is None:
            raise SessionError("The log has no request header yet, so there is no request to build.", session=self.id)
        return ModelRequest(header=self.header, messages=self.surface.messages, session_id=self.id)

    def request_digest(self) -> str:
        """The digest of `request`; costs no pass over the history (REQ-02)."""
        return request_digest(self.id, self._header_digest, self.surface.chain.value)

    # --- appending ----------------------------------------------------------------------------------------------------

    def append(self, data: EventData, surface: SurfaceOperation | None = None) -> Event:
        """Log one event: checked, written through, visible, told to observers.

        Raises:
            JsonValueError, LogOrderError, SurfaceError: the event cannot be logged; nothing changed.
            StoreError: it could not be written; nothing changed.
            SessionClosedError: the session is closed.
        """
        event = self._write(data, surface, self._clock())
        self._tell(event)
        return event

    def _write(self, data: EventData, surface: SurfaceOperation | None, time_ms: int) -> Event:
        writer = self._writer
        if writer is None:
            raise SessionClosedError(f"The session {self.id!r} is closed; nothing can be appended.", session=self.id)
        self._check(data, surface)
        event = Event(len(self._events), time_ms, data, surface)
        line = self._codec.encode(event.seq, time_ms, data, surface)
        try:
            writer.append(line)
            self._unsynced = True
            if self._durability == "event":
                self._sync_event(writer)
            self._take(event)
        except Exception:
            raise
        except BaseException:
            # Ctrl-C may strike between the writing and the taking. A second line of the same number would be damage, so
            # this is the last one; whoever resumes the log finds out whether it was written.
            self.close()
            raise
        return event

    def _sync_event(self, writer: LogWriter) -> None:
        """A line that may or may not outlive the machine can neither be shown nor taken back: only reading it tells."""
        try:
            writer.sync()
        except BaseException:
            self.close()
            raise
        self._unsynced = False

    def _check(self, data: EventData, surface: SurfaceOperation | None) -> None:
        self._nesting.check(data)
        self.surface.check(len(self._events), data, surface)

    def _take(self, event: Event) -> None:
        """Make an event visible that is in the store."""
        data = event.data
        self._nesting.apply(data)
        self.surface.apply(event)
        if isinstance(data, HeaderWritten):
            self._codec.learn(data)
            self.header = data.header
            self._header_digest = header_digest(data.header)
        elif isinstance(data, RequestContext):
            self.route = data
        self._events.append(event)

    def _tell(self, event: Event) -> None:
        """Tell the observers; what one of them appends meanwhile is told after this event, to all in the same order."""
        if self._telling:
            self._untold.append(event)
            return
        self._telling = True
        told: Event | None = event
        try:
            while told is not None:
                for observer in tuple(self._observers.values()):
                    try:
                        observer(told)
                    except Exception as error:
                        self._report(error, told, observer)
                told = self._untold.popleft() if self._untold else None
        finally:
            self._telling = False

    def observe(self, observer: Observer) -> Observation:
        """Call ``observer`` with every event from now on, once it is visible. One that raises is reported, and stays."""
        observation = Observation(self._observers)
        self._observers[observation] = observer
        return observation

    async def sync(self) -> None:
        """Make the log outlive the machine, as the policy says; the loop calls this before it sends a request.

        Raises:
            StoreError: the store could not.
        """
        writer = self._writer
        if writer is None or not self._unsynced or self._durability == "never" or not self._store.durable:
            return
        self._unsynced = False
        try:
            await anyio.to_thread.run_sync(writer.sync)
        except BaseException:
            self._unsynced = True
            raise

    # --- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Give the log back; a second call does nothing."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def discard(self) -> None:
        """Remove the log of a session that was never published, and free its id (CANCEL-04)."""
        self._store.delete(self.id)
        self.close()
