"""The agents of a harness: creating, resuming and finding them, each all or nothing (CANCEL-04).

Brings together what an agent needs (a session from the store, a scope, the registries and hooks) and owns no turn.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import attrs

from harness_core.agent import Agent, AgentError, Limits, Surroundings
from harness_core.host.scope import Scope
from harness_core.models import CallConfig
from harness_core.session import (
    Clock,
    Durability,
    Event,
    IdSource,
    MemoryStore,
    Session,
    SessionStore,
    random_id,
    system_clock,
)

if TYPE_CHECKING:
    from harness_core.host.harness import Harness

__all__ = ["AgentSettings", "Agents"]

Setup: TypeAlias = Callable[[Scope], None | Awaitable[None]]
"""Registers into an agent's scope before anybody can see the agent."""


@attrs.frozen(kw_only=True)
class AgentSettings:
    """What all agents of a harness share.

    ``store`` keeps their sessions (in memory by default); ``durability`` says when a log must outlive the machine;
    ``config`` is what requests start with where an agent says nothing; ``debug`` checks every request against its log.
    """

    store: SessionStore = attrs.field(factory=MemoryStore)
    durability: Durability = "request"
    config: CallConfig = attrs.field(factory=CallConfig)
    limits: Limits = attrs.field(factory=Limits)
    debug: bool = False
    clock: Clock = system_clock
    new_id: IdSource = random_id
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep


class Agents(Mapping[str, Agent]):
    """The published agents of one harness, by id."""

    def __init__(self, harness: Harness, settings: AgentSettings) -> None:
        self.settings = settings
        self._harness = harness
        self._agents: dict[str, Agent] = {}
        self._taken: set[str] = set()
        self._models: Mapping[Scope, CallConfig] = {}
        self.surroundings = Surroundings(
            hooks=harness.hooks,
            prompt=harness.prompt,
            tools=harness.tools,
            models=harness.models,
            tasks=lambda: harness.tasks,
            clock=settings.clock,
            new_id=settings.new_id,
            sleep=settings.sleep,
            limits=settings.limits,
            debug=settings.debug,
        )

    def __getitem__(self, agent_id: str) -> Agent:
        return self._agents[agent_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)

    def default(self, scope: Scope) -> CallConfig:
        """What requests in a scope start with where nobody says more: the nearest scope's word counts, field by field."""
        chain = [
            self.settings.config,
            *(self._models[each] for each in reversed(scope.chain()) if each in self._models),
        ]
        return CallConfig(**{name: value for config in chain for name, value in config.given().items()})

    def configure(self, settings: AgentSettings, models: Mapping[Scope, CallConfig]) -> None:
        """Take other settings, and other models by scope; agents that run follow where nobody chose for them."""
        self.settings, self._models = settings, dict(models)
        for agent in self.values():
            agent.requests.settle(self.default(agent.scope))

    async def create(
        self,
        agent_id: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        config: CallConfig | None = None,
        cwd: str | os.PathLike[str] | None = None,
        scope: Scope | None = None,
        setup: Setup | None = None,
        parent: str | None = None,
        depth: int = 0,
        seed: Sequence[Event] = (),
    ) -> Agent:
        """See `Harness.create_agent`."""

        def open_session() -> Session:
            return Session.create(
                agent_id,
                cwd=os.path.abspath(cwd if cwd is not None else os.curdir),
                store=self.settings.store,
                parent=parent,
                depth=depth,
                seed=seed,
                clock=self.settings.clock,
                durability=self.settings.durability,
            )

        return await self._bring_up(agent_id, open_session, self._config(provider, model, config), scope, setup, True)

    async def resume(
        self,
        agent_id: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        config: CallConfig | None = None,
        scope: Scope | None = None,
        setup: Setup | None = None,
    ) -> Agent:
        """See `Harness.resume_agent`."""

        def open_session() -> Session:
            return Session.resume(
                agent_id, store=self.settings.store, clock=self.settings.clock, durability=self.settings.durability
            )

        return await self._bring_up(agent_id, open_session, self._config(provider, model, config), scope, setup, False)

    def _config(self, provider: str | None, model: str | None, config: CallConfig | None) -> CallConfig:
        chosen = config if config is not None else CallConfig()
        return attrs.evolve(
            chosen,
            provider=provider if provider is not None else chosen.provider,
            model=model if model is not None else chosen.model,
        )

    async def _bring_up(
        self,
        agent_id: str,
        open_session: Callable[[], Session],
        config: CallConfig,
        scope: Scope | None,
        setup: Setup | None,
        is_new: bool,
    ) -> Agent:
        _ = self._harness.tasks  # refuses before anything is made, where the harness is not running
        if agent_id in self._taken:
            raise AgentError(f"There is an agent {agent_id!r} already.", agent=agent_id, known=sorted(self._agents))
        self._taken.add(agent_id)
        session: Session | None = None
        agent_scope: Scope | None = None
        try:
            agent_scope = (scope if scope is not None else self._harness.root).child(f"agent {agent_id}")
            session = open_session()
            agent_scope.effects.add(lambda: self._forget(agent_id), "the agent")
            agent = Agent(session, agent_scope, self.surroundings, config, self.default(agent_scope))
            if setup is not None:
                result: Any = setup(agent_scope)
                if inspect.isawaitable(result):
                    await result
            agent_scope.effects.require_active()
            agent.requests.settle(self.default(agent_scope))  # the composition may have changed meanwhile
        except BaseException:
            await self._undo(agent_id, agent_scope, session, is_new)
            raise
        self._agents[agent_id] = agent
        return agent

    async def _undo(self, agent_id: str, scope: Scope | None, session: Session | None, is_new: bool) -> None:
        with anyio.CancelScope(shield=True):
            try:
                if session is not None and is_new:
                    session.discard()
            finally:
                if scope is not None:
                    await scope.aclose()
                elif session is not None:
                    session.close()
                self._forget(agent_id)

    def _forget(self, agent_id: str) -> None:
        self._agents.pop(agent_id, None)
        self._taken.discard(agent_id)
