"""The records that travel through the hooks: what a listener is given and what it may answer.

Plain immutable data. Agents and sessions appear as opaque objects: their types live on higher floors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from harness_core._json import FrozenDict, JsonObject, JsonValue, freeze_object
from harness_core.models import FailureFacts, RequestHeader, TextBlock, ToolSchema, UserMessage
from harness_core.scopes import ScopeNode

if TYPE_CHECKING:
    from harness_core.agent import Agent
    from harness_core.prompt import PromptAssembly
    from harness_core.session import Session

__all__ = ["Enter", "PreStep", "Reject", "RequestFailure", "RequestStep", "Retry", "ToolCall", "ToolOutcome"]


def _messages(value: Iterable[UserMessage]) -> tuple[UserMessage, ...]:
    return tuple(value)


def _only_messages(_: Any, __: Any, value: tuple[UserMessage, ...]) -> None:
    for index, message in enumerate(value):
        if not isinstance(message, UserMessage):
            raise TypeError(
                f"Enter takes UserMessage records; messages[{index}] is a {type(message).__name__}. "
                "Wrap text as UserMessage(id=..., content=..., source=Source(kind='plugin', ...))."
            )


@attrs.frozen
class Enter:
    """The step may begin, with exactly these messages entering the conversation, in this order (PRE-01)."""

    messages: tuple[UserMessage, ...] = attrs.field(converter=_messages, validator=_only_messages)


@attrs.frozen
class Reject:
    """The step must not begin; the turn ends as blocked, and this is why (PRE-02)."""

    reason: str


@attrs.frozen(kw_only=True)
class PreStep:
    """A proposed step, before anything of it is recorded (PRE-01).

    ``claimed`` are the messages taken from the inbox, ``candidate`` the runtime-context snapshot that is due, if any;
    ``messages`` is what enters unless a listener says otherwise. ``results_due``: the model has tool results to answer,
    so the step begins even if nothing enters. ``preview``: somebody only looks at what the agent's next step would be
    told; a listener answers as ever, but leaves inbox, session and files as they are. ``agent`` and ``session`` are None
    where a loop of one's own prepares the step without them.
    """

    messages: tuple[UserMessage, ...] = attrs.field(converter=_messages)
    claimed: tuple[UserMessage, ...] = attrs.field(default=(), converter=_messages)
    candidate: UserMessage | None = None
    turn: int = 1
    step: int = 1
    results_due: bool = False
    preview: bool = False
    scope: ScopeNode
    cwd: str | None = None
    agent: Agent | None = None
    session: Session | None = None
    assembly: PromptAssembly | None = None

    def with_messages(self, *messages: UserMessage) -> PreStep:
        """A copy that proposes these messages, for ``call_next(step.with_messages(...))``."""
        return attrs.evolve(self, messages=messages)


@attrs.frozen(kw_only=True)
class RequestStep:
    """The step that a model request belongs to; ``attempt`` starts at 1 and counts retries."""

    turn: int
    step: int
    attempt: int
    scope: ScopeNode
    agent: Agent | None = None
    session: Session | None = None


@attrs.frozen(kw_only=True)
class RequestFailure:
    """A model request that failed (STEP-02): the adapter's facts, and the request's place in the turn."""

    facts: FailureFacts
    header: RequestHeader
    turn: int
    step: int
    attempt: int
    scope: ScopeNode
    agent: Agent | None = None
    session: Session | None = None


@attrs.frozen(kw_only=True)
class Retry:
    """Send the request again, ``delay`` seconds from now; ``reason`` is recorded with the announcement."""

    delay: float = 0.0
    reason: str = ""


@attrs.frozen(kw_only=True)
class ToolCall:
    """A call that the model asked for, before it is carried out.

    ``arguments`` is the parsed object, or the raw text where it was no valid JSON object (TOOLX-01). ``schema`` is None
    for a tool that is unknown or hidden here.
    """

    id: str
    name: str
    arguments: JsonValue
    turn: int
    step: int
    scope: ScopeNode
    schema: ToolSchema | None = None
    cwd: str | None = None
    agent: Agent | None = None
    session: Session | None = None

    def with_arguments(self, **arguments: Any) -> ToolCall:
        """A copy with other arguments, for ``call_next(call.with_arguments(...))``."""
        return attrs.evolve(self, arguments=freeze_object(arguments, what="The arguments of a tool call"))


def _meta(value: JsonObject) -> FrozenDict:
    return freeze_object(value, what="ToolOutcome.meta")


def _outcome_blocks(value: str | Iterable[TextBlock]) -> tuple[TextBlock, ...]:
    return (TextBlock(value),) if isinstance(value, str) else tuple(value)


@attrs.frozen(kw_only=True)
class ToolOutcome:
    """What a call came to. ``error`` is a short code where it failed; the content is what the model reads.

    ``messages`` are extra context for the next step (TOOLX-03); ``conclude`` ends the turn after this step (TURN-03);
    ``meta`` is recorded and never shown to the model.
    """

    content: tuple[TextBlock, ...] = attrs.field(converter=_outcome_blocks)
    error: str | None = None
    messages: tuple[UserMessage, ...] = attrs.field(default=(), converter=_messages)
    conclude: bool = False
    meta: FrozenDict = attrs.field(factory=FrozenDict, converter=_meta)

    @property
    def text(self) -> str:
        return "\n".join(block.text for block in self.content)
