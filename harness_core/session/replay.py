"""Everything that a log says about the past: its requests, their digests, the inbox. Needs no plugin and no live agent.

Pure functions over events (D7): the same answer for a log that is open, a log on disk, or any prefix of either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from harness_core.models.messages import UserMessage
from harness_core.models.request import ModelRequest, RequestHeader
from harness_core.session.digest import MessageChain, header_digest, request_digest
from harness_core.session.errors import LogOrderError, SessionError
from harness_core.session.events import (
    Event,
    HeaderWritten,
    InboxSpliced,
    RequestDispatch,
    SessionInfo,
    SessionSeeded,
)
from harness_core.session.surface import Surface

__all__ = [
    "InboxLists",
    "RebuiltRequest",
    "Verification",
    "check_request",
    "rebuild_requests",
    "replay_inbox",
    "verify",
]


@attrs.frozen(kw_only=True)
class RebuiltRequest:
    """A request as the log has it; ``digest`` is computed anew, ``dispatch`` has the one that was logged."""

    event: Event
    dispatch: RequestDispatch
    request: ModelRequest
    digest: str

    @property
    def matches(self) -> bool:
        return self.digest == self.dispatch.digest


@attrs.frozen(kw_only=True)
class Verification:
    """What `verify` found: how many requests there are, and those whose digest is another one."""

    requests: int
    mismatches: tuple[RebuiltRequest, ...]

    @property
    def ok(self) -> bool:
        return not self.mismatches


def rebuild_requests(info: SessionInfo, events: Iterable[Event]) -> Iterator[RebuiltRequest]:
    """Every request of the log, in order: its header, messages and digest (REQ-01, REQ-02).

    Requests of an inherited prefix were made under the id of the session that they come from.
    """
    events = tuple(events)
    owners = _owners(info, events)
    surface = Surface()
    header: RequestHeader | None = None
    digest = ""
    for event in events:
        surface.apply(event)
        match event.data:
            case HeaderWritten(header=written):
                header, digest = written, header_digest(written)
            case RequestDispatch() as dispatch:
                if header is None:
                    raise SessionError(
                        f"Event {event.seq} dispatches a request, and no header stands before it.",
                        session=info.id,
                    )
                owner = owners(event.seq)
                yield RebuiltRequest(
                    event=event,
                    dispatch=dispatch,
                    request=ModelRequest(header=header, messages=surface.messages, session_id=owner),
                    digest=request_digest(owner, digest, surface.chain.value),
                )
            case _:
                pass


class _Owners:
    """Which session made the events up to a number: each `SessionSeeded` ends the part of the session it names."""

    def __init__(self, info: SessionInfo, events: Sequence[Event]) -> None:
        self._ends = [(event.seq, event.data.origin) for event in events if isinstance(event.data, SessionSeeded)]
        self._self = info.id

    def __call__(self, seq: int) -> str:
        for end, origin in self._ends:
            if seq < end:
                return origin or self._self
        return self._self


def _owners(info: SessionInfo, events: Sequence[Event]) -> _Owners:
    return _Owners(info, events)


def verify(info: SessionInfo, events: Iterable[Event]) -> Verification:
    """Compute each request's digest from the log alone and compare it with the one logged before it was sent."""
    mismatches: list[RebuiltRequest] = []
    requests = 0
    for rebuilt in rebuild_requests(info, events):
        requests += 1
        if not rebuilt.matches:
            mismatches.append(rebuilt)
    return Verification(requests=requests, mismatches=tuple(mismatches))


def check_request(info: SessionInfo, events: Iterable[Event], request: ModelRequest) -> None:
    """Is this request what the log says it is? Costs a pass over the log: for debugging.

    Raises:
        SessionError: it is not; the message says which part differs.
    """
    surface = Surface()
    header: RequestHeader | None = None
    for event in events:
        surface.apply(event)
        if isinstance(event.data, HeaderWritten):
            header = event.data.header
    if header is None or header_digest(header) != header_digest(request.header):
        raise SessionError("The request's header is not the one in the log.", session=info.id, entry="header")
    if MessageChain(request.messages).value != surface.chain.value:
        raise SessionError(
            "The request's messages are not those that derive from the log.",
            session=info.id,
            entry="messages",
        )
    if request.session_id != info.id:
        raise SessionError("The request names another session.", session=info.id, entry="session_id")


@attrs.frozen
class InboxLists:
    """Both lists of an inbox, as the log has them."""

    next_step: tuple[UserMessage, ...]
    next_turn: tuple[UserMessage, ...]


def replay_inbox(events: Iterable[Event]) -> InboxLists:
    """The inbox at the end of the events; what stands before a seed's end belongs to another session (INBOX-02).

    Raises:
        LogOrderError: a splice does not fit the list; the message has its number.
    """
    lists: dict[str, list[UserMessage]] = {"next-step": [], "next-turn": []}
    for event in events:
        match event.data:
            case SessionSeeded():
                lists = {"next-step": [], "next-turn": []}
            case InboxSpliced() as splice:
                target = lists[splice.target]
                end = splice.start + splice.removed_count
                if end > len(target):
                    raise LogOrderError(
                        f"Event {event.seq} takes entries {splice.start} to {end} of {splice.target}, which has {len(target)}.",
                        entry=str(event.seq),
                    )
                target[splice.start : end] = splice.inserted
            case _:
                pass
    return InboxLists(tuple(lists["next-step"]), tuple(lists["next-turn"]))
