"""The hooks of the framework, as pluggy specifications: their names, arguments and meaning.

A hook may gain arguments in a later minor version, and never loses one without notice: what goes is marked with
``warn_on_impl=deprecated(...)`` or ``warn_on_impl_args={...}`` two minor versions before. Waterfalls are run by
`harness_core.hooks.waterfall` in pluggy's order; observers are called one after another and decide nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs
import pluggy
from pluggy import HookspecOpts

from harness_core.deprecation import HarnessDeprecationWarning
from harness_core.hooks.decisions import (
    Enter,
    PreStep,
    Reject,
    RequestFailure,
    RequestStep,
    Retry,
    ToolCall,
    ToolOutcome,
)
from harness_core.models import CallConfig

if TYPE_CHECKING:
    from harness_core.agent import Agent
    from harness_core.prompt import AssembleContext, PromptAssembly
    from harness_core.session import Event, Session

__all__ = [
    "HOOK_PREFIXES",
    "OBSERVERS",
    "PROJECT_NAME",
    "WATERFALLS",
    "HookSpecs",
    "WaterfallSpec",
    "hookimpl",
    "hookspec",
]

PROJECT_NAME = "harness"

hookimpl = pluggy.HookimplMarker(PROJECT_NAME)
"""Marks a function as the implementation of a hook, as in pytest."""

hookspec = pluggy.HookspecMarker(PROJECT_NAME)
"""Marks the specification of a hook."""

HOOK_PREFIXES = ("harness_", "agent_", "system_prompt_", "tool_", "session_")
"""Names under which a marked function can only be meant as a hook of this framework (UC-23)."""


class HookSpecs:
    """All hooks. The docstring of each says when it runs, what it gets and what it may return."""

    @hookspec
    def harness_setup(self, ctx: Any) -> Iterator[None] | AsyncIterator[None] | Coroutine[Any, Any, None] | None:
        """Set the plugin up in one scope; ``ctx`` is a `PluginContext`.

        Runs once for each activation. May return, or yield once and clean up after the yield; sync or async (D6). What
        was registered through ``ctx`` is undone after that, in reverse order. Raising leaves nothing behind.
        """

    @hookspec
    def system_prompt_assemble(
        self,
        assembly: PromptAssembly,
        context: AssembleContext,
        call_next: Callable[..., Awaitable[PromptAssembly]],
    ) -> PromptAssembly | None:
        """Waterfall ``system-prompt/assemble``: change what the model is told, after all providers ran.

        ``assembly`` may be changed in place (its lists and variables are fresh; the elements are frozen). The result
        is a `PromptAssembly`; a plain listener may return None for "go on".
        """

    @hookspec
    def agent_pre_step(
        self, step: PreStep, call_next: Callable[..., Awaitable[Enter | Reject]]
    ) -> Enter | Reject | None:
        """Waterfall ``agent/pre-step``: decide which messages enter with a proposed step, or that it must not begin.

        The innermost answer is ``Enter(step.messages)``. A plain listener that returns a decision ends the chain.
        """

    @hookspec
    def agent_request(
        self, config: CallConfig, step: RequestStep, call_next: Callable[..., Awaitable[CallConfig]]
    ) -> CallConfig | None:
        """Waterfall: choose provider, model and sampling of a request; runs for every attempt (HDR-05)."""

    @hookspec
    def agent_request_error(
        self, failure: RequestFailure, call_next: Callable[..., Awaitable[Retry | None]]
    ) -> Retry | None:
        """Waterfall: a model request failed; answer `Retry` to send it again. The innermost answer is None (STEP-02)."""

    @hookspec
    def tool_call(self, call: ToolCall, call_next: Callable[..., Awaitable[ToolOutcome]]) -> ToolOutcome | None:
        """Waterfall around one tool call: deny, rewrite or replace it. The innermost answer carries it out (TOOLX-02)."""

    @hookspec
    def system_prompt_change(self) -> None:
        """Observer: the prompt registry changed, in whatever scope. Synchronous.

        Raising during a registration vetoes it: the registration is undone and the exception reaches the registrant
        (REG-13). Raising during a disposal is reported and changes nothing.
        """

    @hookspec
    def tool_registry_change(self) -> None:
        """Observer: tools or restrictions changed, in whatever scope. Synchronous; may veto a registration (TOOL-26)."""

    @hookspec
    def session_event(self, session: Session, event: Event) -> None:
        """Observer: an event was recorded, and is durable by the store's policy. Synchronous; cannot veto (LOG-03)."""

    @hookspec
    def agent_status(self, agent: Agent, status: str) -> None:
        """Observer: the agent became ``"idle"``, ``"running"`` or ``"disposed"``. Synchronous."""

    @hookspec
    def agent_turn_stopping(self, agent: Agent, turn: int) -> Awaitable[None] | None:
        """Observer: a turn is about to end with nothing left to do; ``agent.steer(...)`` makes it go on (TURN-03)."""


class _HookManager(pluggy.PluginManager):
    """pluggy would tell of a deprecated hook without saying whose implementation it is; see `deprecations_of`."""

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> HookspecOpts | None:
        found = super().parse_hookspec_opts(module_or_class, name)
        if found is None:
            return None
        quiet = found.copy()
        quiet["warn_on_impl"] = quiet["warn_on_impl_args"] = None
        return quiet


def hook_manager() -> pluggy.PluginManager:
    """pluggy's manager, with the framework's hooks."""
    manager = _HookManager(PROJECT_NAME)
    manager.add_hookspecs(HookSpecs)
    return manager


def deprecations_of(hook: str, arguments: Iterable[str]) -> list[HarnessDeprecationWarning]:
    """What goes of a hook that is implemented with these arguments: pluggy's own marks, ``warn_on_impl`` and the like."""
    options: HookspecOpts = getattr(getattr(HookSpecs, hook), f"{PROJECT_NAME}_spec")
    marks = [options["warn_on_impl"], *map((options["warn_on_impl_args"] or {}).get, arguments)]
    return [each for each in marks if isinstance(each, HarnessDeprecationWarning)]


@attrs.frozen(kw_only=True)
class WaterfallSpec:
    """How one hook's waterfall treats values.

    ``value``: the argument that travels inwards; ``context``: a further argument that all listeners get unchanged;
    ``accepts``: the type of the value; ``returns``: the types of the result (None included only where None is an
    answer); ``plain_replaces``: what a plain listener returns replaces the value handed inwards, rather than
    ending the chain (D3).
    """

    hook: str
    title: str
    value: str
    context: str | None = None
    accepts: tuple[type, ...]
    returns: tuple[type, ...]
    plain_replaces: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.value, *((self.context,) if self.context else ()), "call_next")


def waterfall_specs(assembly_type: type) -> dict[str, WaterfallSpec]:
    """All waterfalls by hook name; the assembly's type comes from the floor above."""
    specs = (
        WaterfallSpec(
            hook="system_prompt_assemble",
            title="system-prompt/assemble",
            value="assembly",
            context="context",
            accepts=(assembly_type,),
            returns=(assembly_type,),
            plain_replaces=True,
        ),
        WaterfallSpec(
            hook="agent_pre_step", title="agent/pre-step", value="step", accepts=(PreStep,), returns=(Enter, Reject)
        ),
        WaterfallSpec(
            hook="agent_request",
            title="agent/request",
            value="config",
            context="step",
            accepts=(CallConfig,),
            returns=(CallConfig,),
            plain_replaces=True,
        ),
        WaterfallSpec(
            hook="agent_request_error",
            title="agent/request-error",
            value="failure",
            accepts=(RequestFailure,),
            returns=(Retry, type(None)),
        ),
        WaterfallSpec(hook="tool_call", title="tool/call", value="call", accepts=(ToolCall,), returns=(ToolOutcome,)),
    )
    return {spec.hook: spec for spec in specs}


WATERFALLS = ("system_prompt_assemble", "agent_pre_step", "agent_request", "agent_request_error", "tool_call")
OBSERVERS = ("system_prompt_change", "tool_registry_change", "session_event", "agent_status", "agent_turn_stopping")
