"""What a session's log consists of: one record class for each event type, the event around it, the log's first line.

The records are data and know neither their encoding nor the rules of their order: codec.py and nesting.py own those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import NoneType
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import attrs

from harness_core._json import FrozenDict, freeze_object
from harness_core.errors import JsonValueError
from harness_core.models.chunks import Chunk, FailureFacts
from harness_core.models.messages import AssistantMessage, Message, ToolResultMessage, Usage, UserMessage
from harness_core.models.request import RequestHeader

__all__ = [
    "APPEND",
    "EVENT_TYPES",
    "AbortCause",
    "AssistantChunk",
    "AssistantMessageLogged",
    "Event",
    "EventData",
    "HeaderReason",
    "HeaderWritten",
    "InboxSpliced",
    "InboxTarget",
    "PluginRecord",
    "RequestContext",
    "RequestDispatch",
    "RequestRetry",
    "SessionInfo",
    "SessionSeeded",
    "StepEnd",
    "StepStart",
    "SurfaceAppend",
    "SurfaceOperation",
    "SurfaceReplace",
    "ToolCallStarted",
    "ToolResultLogged",
    "TurnEnd",
    "TurnReason",
    "SURFACE_TYPES",
    "TurnStart",
    "UserMessageLogged",
    "surface_message",
]

TurnReason: TypeAlias = Literal["completed", "aborted", "error", "blocked", "max-tokens", "interrupted"]
"""Why a turn ended."""
AbortCause: TypeAlias = Literal["user", "parent", "hook", "disposed"]
"""Who stopped a turn that was aborted."""
HeaderReason: TypeAlias = Literal["initial", "resume", "change"]
"""Why a header was logged: the first one, the first one after a resume, or another one than before."""
InboxTarget: TypeAlias = Literal["next-step", "next-turn"]
"""The two lists of an inbox."""

_PLUGIN_TYPE = re.compile(r"plugin/[^/\s]+/\S+")


def _count(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Event numbers are exactly ints: what merely equals one would be written as something else."""
    if type(value) is not int or value < 0:
        raise JsonValueError(
            f"{type(instance).__name__}.{attribute.name} must be a whole number from 0, not {value!r}.",
            entry=f"$.{attribute.name}",
        )


def _counts(instance: object, attribute: attrs.Attribute[Any], value: tuple[object, ...]) -> None:
    for number in value:
        _count(instance, attribute, number)


def _kind(*kinds: type) -> Any:
    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not isinstance(value, kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise JsonValueError(
                f"{type(instance).__name__}.{attribute.name} must be {names}, not {type(value).__name__}.",
                entry=f"$.{attribute.name}",
            )

    return check


_text = _kind(str)
_optional_text = _kind(str, NoneType)


def _one_of(words: Any) -> Any:
    """A field of a ``Literal`` type: another word would be refused on reading, so it is refused here."""
    known = get_args(words)

    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if value not in known:
            raise JsonValueError(
                f"{type(instance).__name__}.{attribute.name} must be one of {known}, not {value!r}.",
                entry=f"$.{attribute.name}",
                known=[word for word in known if word],
            )

    return check


def _messages(value: Iterable[UserMessage]) -> tuple[UserMessage, ...]:
    return tuple(value)


def _numbers(value: Iterable[int]) -> tuple[int, ...]:
    return tuple(value)


def _plugin_type(_: object, __: object, value: str) -> None:
    if not (isinstance(value, str) and _PLUGIN_TYPE.fullmatch(value)):
        raise JsonValueError(
            f"A plugin's record needs a type like 'plugin/<name>/<what>', not {value!r}.", entry="$.type"
        )


def _object(value: object) -> FrozenDict:
    return value if type(value) is FrozenDict else freeze_object(value, what="An event's data")


@attrs.frozen(kw_only=True)
class TurnStart:
    """A turn begins; turns are numbered from 1 through the whole log."""

    type: ClassVar[str] = "turn/start"
    turn: int = attrs.field(validator=_count)


@attrs.frozen(kw_only=True)
class TurnEnd:
    """The open turn has ended. ``cause`` stands beside ``aborted``, ``failure`` beside ``error``; ``detail`` is the reason that a listener gave."""

    type: ClassVar[str] = "turn/end"
    turn: int = attrs.field(validator=_count)
    reason: TurnReason = attrs.field(validator=_one_of(TurnReason))
    cause: AbortCause | None = attrs.field(default=None, validator=_one_of(Literal[AbortCause, None]))
    detail: str | None = attrs.field(default=None, validator=_optional_text)
    failure: FailureFacts | None = attrs.field(default=None, validator=_kind(FailureFacts, NoneType))


@attrs.frozen(kw_only=True)
class StepStart:
    """A step of the open turn begins; steps are numbered from 1 in each turn."""

    type: ClassVar[str] = "step/start"
    turn: int = attrs.field(validator=_count)
    step: int = attrs.field(validator=_count)


@attrs.frozen(kw_only=True)
class StepEnd:
    """The open step has ended, with its request answered and its tool calls carried out, or on the way out."""

    type: ClassVar[str] = "step/end"
    turn: int = attrs.field(validator=_count)
    step: int = attrs.field(validator=_count)


@attrs.frozen(kw_only=True)
class UserMessageLogged:
    """A user-role message entered the conversation: what a person said, or context; its ``source`` says which."""

    type: ClassVar[str] = "user/message"
    message: UserMessage = attrs.field(validator=_kind(UserMessage))


@attrs.frozen(kw_only=True)
class AssistantChunk:
    """A piece of an answer, as it arrived; takes no part in rebuilding unless the answer was interrupted."""

    type: ClassVar[str] = "assistant/chunk"
    turn: int = attrs.field(validator=_count)
    step: int = attrs.field(validator=_count)
    chunk: Chunk


@attrs.frozen(kw_only=True)
class AssistantMessageLogged:
    """The model's whole answer. ``chunks`` are the numbers of the chunk events that an interrupted message was made of (CANCEL-02)."""

    type: ClassVar[str] = "assistant/message"
    turn: int = attrs.field(validator=_count)
    step: int = attrs.field(validator=_count)
    message: AssistantMessage = attrs.field(validator=_kind(AssistantMessage))
    usage: Usage | None = attrs.field(default=None, validator=_kind(Usage, NoneType))
    interrupted: bool = attrs.field(default=False, validator=_kind(bool))
    chunks: tuple[int, ...] = attrs.field(default=(), converter=_numbers, validator=_counts)


@attrs.frozen(kw_only=True)
class ToolCallStarted:
    """A tool call is about to be carried out. ``arguments`` is the raw text that the model wrote."""

    type: ClassVar[str] = "tool/call"
    turn: int = attrs.field(validator=_count)
    step: int = attrs.field(validator=_count)
    call_id: str = attrs.field(validator=_text)
    name: str = attrs.field(validator=_text)
    arguments: str = attrs.field(validator=_text)


@attrs.frozen(kw_only=True)
class ToolResultLogged:
    """What a call came to. ``error`` is the code of a failure; ``meta`` is for people and plugins, the model never sees it."""

    type: ClassVar[str] = "tool/result"
    turn: int = attrs.field(validator=_count)
    step: int = attrs.field(validator=_count)
    message: ToolResultMessage = attrs.field(validator=_kind(ToolResultMessage))
    error: str | None = attrs.field(default=None, validator=_optional_text)
    meta: FrozenDict = attrs.field(factory=FrozenDict, converter=_object)


@attrs.frozen(kw_only=True)
class HeaderWritten:
    """The full stable part of the requests from here on; ``provenance`` says who contributed what (D7)."""

    type: ClassVar[str] = "request/header"
    header: RequestHeader = attrs.field(validator=_kind(RequestHeader))
    reason: HeaderReason = attrs.field(validator=_one_of(HeaderReason))
    provenance: FrozenDict = attrs.field(factory=FrozenDict, converter=_object)


@attrs.frozen(kw_only=True)
class RequestContext:
    """The route of the requests from here on, for people; takes no part in rebuilding."""

    type: ClassVar[str] = "request/context"
    provider: str = attrs.field(validator=_text)
    model: str = attrs.field(validator=_text)
    context_window: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))


@attrs.frozen(kw_only=True)
class RequestDispatch:
    """A request is about to be sent; ``digest`` is that of the request as the log rebuilds it."""

    type: ClassVar[str] = "request/dispatch"
    turn: int = attrs.field(validator=_count)
    step: int = attrs.field(validator=_count)
    attempt: int = attrs.field(validator=_count)
    digest: str = attrs.field(validator=_text)


@attrs.frozen(kw_only=True)
class RequestRetry:
    """Announces that the failed attempt number ``attempt`` is repeated after ``delay_ms``, and why, if that was said."""

    type: ClassVar[str] = "request/retry"
    turn: int = attrs.field(validator=_count)
    step: int = attrs.field(validator=_count)
    attempt: int = attrs.field(validator=_count)
    delay_ms: int = attrs.field(validator=_count)
    failure: FailureFacts = attrs.field(validator=_kind(FailureFacts))
    reason: str = attrs.field(default="", validator=_text)


@attrs.frozen(kw_only=True)
class InboxSpliced:
    """One mutation of an inbox list: ``removed_count`` entries from ``start`` on give way to ``inserted`` (INBOX-02)."""

    type: ClassVar[str] = "agent/inbox/spliced"
    target: InboxTarget = attrs.field(validator=_one_of(InboxTarget))
    start: int = attrs.field(validator=_count)
    removed_count: int = attrs.field(default=0, validator=_count)
    inserted: tuple[UserMessage, ...] = attrs.field(converter=_messages)
    outcome: Literal["canceled"] | None = attrs.field(default=None, validator=_one_of(Literal["canceled", None]))


@attrs.frozen(kw_only=True)
class SessionSeeded:
    """Ends a prefix that was inherited from the session ``origin``, under whose id its requests were made."""

    type: ClassVar[str] = "session/seeded"
    origin: str | None = attrs.field(default=None, validator=_optional_text)


@attrs.frozen
class PluginRecord:
    """A plugin's own record, of the type ``plugin/<name>/<what>``; never on the surface.

    Raises:
        JsonValueError: the type has another form, or the data is not a JSON object.
    """

    type: str = attrs.field(validator=_plugin_type)
    data: FrozenDict = attrs.field(factory=FrozenDict, converter=_object)


EventData: TypeAlias = (
    TurnStart
    | TurnEnd
    | StepStart
    | StepEnd
    | UserMessageLogged
    | AssistantChunk
    | AssistantMessageLogged
    | ToolCallStarted
    | ToolResultLogged
    | HeaderWritten
    | RequestContext
    | RequestDispatch
    | RequestRetry
    | InboxSpliced
    | SessionSeeded
    | PluginRecord
)
"""The data of an event."""

EVENT_TYPES: dict[str, type[Any]] = {
    kind.type: kind
    for kind in (
        TurnStart, TurnEnd, StepStart, StepEnd, UserMessageLogged, AssistantChunk, AssistantMessageLogged,
        ToolCallStarted, ToolResultLogged, HeaderWritten, RequestContext, RequestDispatch, RequestRetry,
        InboxSpliced, SessionSeeded,
    )
}  # fmt: skip
"""The core's event types; `PluginRecord` stands for all others."""


@attrs.frozen
class SurfaceAppend:
    """The event's message joins the end of the surface."""


@attrs.frozen(kw_only=True)
class SurfaceReplace:
    """The event takes the place of the surface entries from ``start`` to ``end`` inclusive, both event numbers.

    ``sources`` cites at least all entries that it shadows (SURF-02).
    """

    start: int = attrs.field(validator=_count)
    end: int = attrs.field(validator=_count)
    sources: tuple[int, ...] = attrs.field(converter=_numbers, validator=_counts)


SurfaceOperation: TypeAlias = SurfaceAppend | SurfaceReplace
"""What an event does to the surface."""

APPEND = SurfaceAppend()
"""The one `SurfaceAppend`."""


@attrs.frozen
class Event:
    """One entry of the log: its number, the wall-clock time in milliseconds, its data, and its surface operation."""

    seq: int
    time_ms: int
    data: EventData
    surface: SurfaceOperation | None = None

    @property
    def type(self) -> str:
        return self.data.type


@attrs.frozen(kw_only=True)
class SessionInfo:
    """What the log's first line says of the session (LOG-04); ``seed_length`` counts inherited events."""

    id: str = attrs.field(validator=_text)
    created_at_ms: int = attrs.field(validator=_count)
    cwd: str = attrs.field(validator=_text)
    parent: str | None = attrs.field(default=None, validator=_optional_text)
    seed_length: int = attrs.field(default=0, validator=_count)
    depth: int = attrs.field(default=0, validator=_count)


SURFACE_TYPES = frozenset({UserMessageLogged, AssistantMessageLogged, ToolResultLogged})
"""What may join the surface (SURF-01)."""


def surface_message(data: EventData) -> Message | None:
    """The message of an event that may join the surface, or ``None`` for the types that may not."""
    if type(data) in SURFACE_TYPES:
        return data.message  # type: ignore[union-attr]
    return None
