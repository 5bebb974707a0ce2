"""What an agent is given by its host: registries, hooks, the task group that owns its work, time, ids and limits.

One immutable record instead of globals. Tests and hosts replace any part of it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio
import anyio.abc
import attrs

from harness_core.hooks import Observer, Waterfall
from harness_core.models import ModelRegistry
from harness_core.prompt import PromptRegistry
from harness_core.session import Clock, IdSource, random_id, system_clock
from harness_core.tools import ToolRegistry

__all__ = ["AgentHooks", "Limits", "Surroundings"]

log = logging.getLogger("harness.agent")


class AgentHooks(Protocol):
    """The hooks that an agent dispatches."""

    system_prompt_assemble: Waterfall[Any, Any]
    agent_pre_step: Waterfall[Any, Any]
    agent_request: Waterfall[Any, Any]
    agent_request_error: Waterfall[Any, Any]
    tool_call: Waterfall[Any, Any]
    session_event: Observer
    agent_status: Observer
    agent_turn_stopping: Observer


@attrs.frozen(kw_only=True)
class Limits:
    """Bounds that keep one turn from taking everything.

    ``tool_pool``: calls of one step that run at the same time; ``tool_result``: characters of a result that the model
    sees, some 12,000 tokens, which leaves room for several in any current window.
    """

    tool_pool: int = 10
    tool_result: int = 50_000


@attrs.frozen(kw_only=True)
class Surroundings:
    """The host's side of an agent. ``debug`` checks each request against its own log before it is sent."""

    hooks: AgentHooks
    prompt: PromptRegistry
    tools: ToolRegistry
    models: ModelRegistry
    tasks: Callable[[], anyio.abc.TaskGroup]
    clock: Clock = system_clock
    new_id: IdSource = random_id
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    limits: Limits = attrs.field(factory=Limits)
    debug: bool = False
