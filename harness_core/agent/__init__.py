"""Agents: the inbox, the turn and its steps, requests, tools, and the runtime context in the conversation."""

from harness_core.agent.agent import Agent, AgentStatus, TurnResult
from harness_core.agent.errors import (
    AgentDisposedError,
    AgentError,
    InboxError,
    InputCanceledError,
    NoModelError,
    RequestFailedError,
)
from harness_core.agent.inbox import Inbox
from harness_core.agent.prepare import PreparedStep, prepare_step
from harness_core.agent.runtime_context import RuntimeContext
from harness_core.agent.surroundings import AgentHooks, Limits, Surroundings
from harness_core.agent.turn import Turn, TurnState

__all__ = [
    "Agent", "AgentDisposedError", "AgentError", "AgentHooks", "AgentStatus", "Inbox", "InboxError", "InputCanceledError",
    "Limits", "NoModelError", "PreparedStep", "RequestFailedError", "RuntimeContext", "Surroundings", "Turn", "TurnResult",
    "TurnState", "prepare_step",
]  # fmt: skip
