"""Requests of a log, each with all that the log says about it: header, provenance, messages, usage, what came before it.

Reads events; needs no plugin. The one place where inspections of a log get their requests from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from harness_core.models import Message, ModelRequest, RequestHeader, ToolSchema, Usage
from harness_core.session import (
    AssistantMessageLogged,
    Event,
    FileStore,
    HeaderWritten,
    LogContents,
    RequestDispatch,
    SessionError,
    SessionInfo,
    SessionStore,
    SurfaceReplace,
    read_log,
    rebuild_requests,
)
from harness_core.session.file_store import read_log_file

__all__ = ["LoggedRequest", "Owner", "logged_requests", "open_log", "request_at"]


@attrs.frozen(kw_only=True)
class Owner:
    """A plugin as the provenance in a log names it."""

    plugin: str | None = None
    distribution: str | None = None
    version: str | None = None
    scope: str | None = None
    hook: str | None = None
    file: str | None = None
    line: int | None = None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Owner:
        return cls(**{field.name: facts[field.name] for field in attrs.fields(cls) if field.name in facts})

    @property
    def name(self) -> str:
        return self.plugin if self.plugin is not None else f"scope {self.scope}" if self.scope else "unknown"

    def __str__(self) -> str:
        if self.version is None:
            return self.name
        package = f"{self.distribution} " if self.distribution and self.distribution != self.name else ""
        return f"{self.name} ({package}{self.version})"

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in attrs.asdict(self).items() if value is not None}


@attrs.frozen(kw_only=True, eq=False)
class LoggedRequest:
    """One request. ``number`` counts from 1 over the whole log; ``since`` are the events after the request before.

    ``generation`` moves when messages
    that an earlier request had were replaced; with the same one, the messages extend those of the request before.
    """

    number: int
    event: Event
    dispatch: RequestDispatch
    request: ModelRequest
    matches: bool
    provenance: Mapping[str, Any]
    since: Sequence[Event]
    generation: int
    usage: Usage | None = None

    @property
    def header(self) -> RequestHeader:
        return self.request.header

    @property
    def messages(self) -> Sequence[Message]:
        return self.request.messages

    @property
    def place(self) -> str:
        """Where it stands in the session, for people."""
        again = f", attempt {self.dispatch.attempt}" if self.dispatch.attempt > 1 else ""
        return f"turn {self.dispatch.turn}, step {self.dispatch.step}{again}"

    def section(self, name: str) -> Mapping[str, Any] | None:
        """The provenance of a section."""
        return next((each for each in self.provenance.get("sections", ()) if each["name"] == name), None)

    def section_text(self, section: Mapping[str, Any]) -> str:
        start, end = section["span"]
        return self.header.system[start:end]

    def tool(self, schema: ToolSchema) -> Mapping[str, Any]:
        """The provenance of one of its tools."""
        for place, each in enumerate(self.header.tools):
            if each is schema:
                known = self.provenance.get("tools", ())
                return known[place] if place < len(known) else {}
        return {}

    def version_of(self, plugin: str | None) -> Owner:
        """A plugin with its version, where the header's provenance says it."""
        facts = self.provenance.get("plugins", {}).get(plugin)
        if facts is None:
            listed = (*self.provenance.get("sections", ()), *self.provenance.get("tools", ()))
            facts = next((each for each in listed if each.get("plugin") == plugin and "version" in each), {})
        return Owner(plugin=plugin, distribution=facts.get("distribution"), version=facts.get("version"))


def logged_requests(info: SessionInfo, events: Iterable[Event]) -> list[LoggedRequest]:
    """Every request of a log, in order."""
    events = list(events)
    usages = _usages(events)
    provenance: Mapping[str, Any] = {}
    generation = seen = 0
    found: list[LoggedRequest] = []
    for rebuilt in rebuild_requests(info, events):
        seq = rebuilt.event.seq
        since = events[seen:seq]
        for event in since:
            if isinstance(event.data, HeaderWritten):
                provenance = event.data.provenance
            generation += isinstance(event.surface, SurfaceReplace)
        found.append(
            LoggedRequest(
                number=len(found) + 1,
                event=rebuilt.event,
                dispatch=rebuilt.dispatch,
                request=rebuilt.request,
                matches=rebuilt.matches,
                provenance=provenance,
                since=since,
                generation=generation,
                usage=usages.get(seq),
            )
        )
        seen = seq + 1
    return found


def _usages(events: Sequence[Event]) -> dict[int, Usage]:
    """By the number of the dispatch that it belongs to: what the service counted."""
    usages: dict[int, Usage] = {}
    dispatch = -1
    for event in events:
        if isinstance(event.data, RequestDispatch):
            dispatch = event.seq
        elif isinstance(event.data, AssistantMessageLogged) and event.data.usage is not None and dispatch >= 0:
            usages[dispatch] = event.data.usage
    return usages


def open_log(which: str, store: SessionStore | None = None) -> LogContents:
    """A log by the path of its file, or by its session's id in a store.

    Raises:
        SessionError: there is none, or it cannot be read.
    """
    if Path(which).is_file():
        return read_log_file(which)
    return read_log(store if store is not None else FileStore("."), which)


def request_at(contents: LogContents, number: int | None = None) -> LoggedRequest:
    """One request of a log, counted from 1; the last one by default.

    Raises:
        SessionError: there is no such request.
    """
    requests = logged_requests(contents.info, contents.events)
    place = len(requests) if number is None else number
    if not 1 <= place <= len(requests):
        raise SessionError(
            f"The log of session {contents.info.id!r} has {len(requests)} requests, and no number {place}.",
            session=contents.info.id,
            entry=str(place),
        )
    return requests[place - 1]
