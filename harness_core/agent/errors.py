"""What can go wrong with an agent. Knows only the base of all errors."""

from __future__ import annotations

from typing import Any

from harness_core.errors import HarnessError
from harness_core.models import FailureFacts

__all__ = ["AgentDisposedError", "AgentError", "InboxError", "InputCanceledError", "NoModelError", "RequestFailedError"]


class AgentError(HarnessError):
    """Base of all errors about agents; ``agent`` is the agent's id."""

    code = "agent"

    def __init__(self, message: str, *, agent: str | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.agent = agent


class AgentDisposedError(AgentError):
    """The agent is disposed, or disposal was asked for: nothing starts any more (CANCEL-03)."""

    code = "agent-disposed"


class InboxError(AgentError):
    """A message cannot be queued: its id is taken, or it is no message (INBOX-01)."""

    code = "inbox"


class InputCanceledError(AgentError):
    """The message that a caller waits for was taken out of the inbox before any turn claimed it."""

    code = "input-canceled"


class NoModelError(AgentError):
    """Nothing says which provider and model serve the request, or nobody serves that provider (HDR-05)."""

    code = "no-model"


class RequestFailedError(AgentError):
    """A model request failed and nobody wanted to repeat it (STEP-03); ``facts`` are the adapter's."""

    code = "request-failed"

    def __init__(self, facts: FailureFacts, **more: Any) -> None:
        super().__init__(facts.message, **more)
        self.facts = facts
