"""The harness: the facade that brings registries, plugins, scopes and agents together, and owns all their lifetimes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.abc
import attrs

from harness_core.agent import Agent, PreparedStep, prepare_step
from harness_core.errors import HarnessError
from harness_core.hooks import Listener, Observer, Waterfall, waterfall_specs
from harness_core.hooks.specs import OBSERVERS, WATERFALLS
from harness_core.host.activation import Activation
from harness_core.host.agents import Agents, AgentSettings, Setup
from harness_core.host.changing import Applied, Desired, Plugins
from harness_core.host.composition import Composition
from harness_core.host.discovery import PluginSource, discover, source_of
from harness_core.host.loading import OnError, PluginFailure, PluginUse, ScopePath
from harness_core.host.manager import HookManager
from harness_core.host.reading import PLUGINS_VARIABLE, read_composition, selected
from harness_core.host.scope import Registries, Scope
from harness_core.models import CallConfig, ModelRegistry, UserMessage
from harness_core.prompt import AssembleContext, PromptAssembly, PromptRegistry, PromptSettings, assemble
from harness_core.prompt._placement import Overrides
from harness_core.scopes import Effects
from harness_core.session import Event, Session
from harness_core.tools import Services, ToolRegistry

__all__ = ["Harness", "Hooks"]


class Hooks:
    """The hooks of one harness, ready to be dispatched: five waterfalls and the observers."""

    def __init__(self, manager: HookManager) -> None:
        specs = waterfall_specs(PromptAssembly)
        self.system_prompt_assemble: Waterfall[Any, Any] = Waterfall(specs["system_prompt_assemble"], manager)
        self.agent_pre_step: Waterfall[Any, Any] = Waterfall(specs["agent_pre_step"], manager)
        self.agent_request: Waterfall[Any, Any] = Waterfall(specs["agent_request"], manager)
        self.agent_request_error: Waterfall[Any, Any] = Waterfall(specs["agent_request_error"], manager)
        self.tool_call: Waterfall[Any, Any] = Waterfall(specs["tool_call"], manager)
        self.system_prompt_change = Observer("system_prompt_change", (), manager)
        self.tool_registry_change = Observer("tool_registry_change", (), manager)
        self.session_event = Observer("session_event", ("session", "event"), manager)
        self.agent_status = Observer("agent_status", ("agent", "status"), manager)
        self.agent_turn_stopping = Observer("agent_turn_stopping", ("agent", "turn"), manager)

    @property
    def waterfalls(self) -> dict[str, Waterfall[Any, Any]]:
        """All waterfalls by hook name."""
        return {name: getattr(self, name) for name in WATERFALLS}


class Harness:
    """A running composition of plugins.

    Use it as an asynchronous context manager: entering installs the plugins, leaving undoes everything, last first.

    Args:
        settings: of the prompt registry.
        plugins: classes, modules, instances, installed names or `PluginUse` records, in order (D2).
        autoload: also install every installed plugin that ``plugins`` does not mention, by name.
        on_error: what a failing plugin does where its use does not say: stop the harness, or stay out (see `failures`).
        agents: what all agents share: the store of their sessions, the default model, limits, time and ids.
        overrides: what becomes of single sections and contexts, by the path of names of the scope for which it is said.
        models: what requests of a scope's agents start with, by the same paths, where that differs from ``agents``.
        entry_points: finds the installed plugins; tests replace it.
    """

    def __init__(
        self,
        settings: PromptSettings | None = None,
        *,
        plugins: Iterable[PluginUse | Any] = (),
        autoload: bool = True,
        on_error: OnError = "fail",
        agents: AgentSettings | None = None,
        overrides: Mapping[ScopePath, Overrides] | None = None,
        models: Mapping[ScopePath, CallConfig] | None = None,
        entry_points: Callable[[], list[PluginSource]] = discover,
    ) -> None:
        self.manager = HookManager()
        self.hooks = Hooks(self.manager)
        registries = Registries()
        registries.harness = self
        self.root = Scope("global", registries=registries)
        """The global scope: what is registered here is seen everywhere."""
        observers = self.hooks
        self.prompt = registries.prompt = PromptRegistry(
            self.root, settings, lambda: [call for _, call in observers.system_prompt_change.listeners(None)]
        )
        self.tools = registries.tools = ToolRegistry(
            self.root, lambda: [call for _, call in observers.tool_registry_change.listeners(None)]
        )
        self.models = registries.models = ModelRegistry()
        self.services = registries.services = Services()
        core = self.root.effects.nested("the tool registry's schemas")
        registries.prompt.at(self.root, core).tools(self.tools.provide())
        self.entry_points = entry_points
        self._composed: tuple[Composition | None, Path, dict[str, Any]] = None, Path(), {}
        """The composition, the folder that it is relative to, and what the caller replaced of it."""
        self._given = list(plugins)
        self._own_settings = agents
        self._tasks: anyio.abc.TaskGroup | None = None
        settled = agents if agents is not None else AgentSettings()
        self.agents = Agents(self, settled)
        """The agents, by id."""
        self._plugins = Plugins(
            self,
            Desired(
                settings=self.prompt.settings,
                uses=self._given,
                autoload=autoload,
                on_error=on_error,
                overrides=overrides or {},
                models=models or {},
                agents=settled,
            ),
        )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """The harness of a composition file (``harness.toml``, or a pyproject.toml with a [tool.harness] table).

        ``options`` replace what the file says; ``HARNESS_PLUGINS`` in the environment names the only plugins to load.

        Raises:
            CompositionError: the file cannot be used; names file, line and table path.
        """
        file = Path(path)
        composition = selected(read_composition(file), os.environ.get(PLUGINS_VARIABLE))
        return cls.from_composition(composition, file.parent, **options)

    @classmethod
    def from_composition(cls, composition: Composition, folder: Path, **options: Any) -> Self:
        """The harness of a composition; what it names relative to a folder is relative to ``folder``."""
        chosen = {**composition.options(), **options}
        if "agents" not in chosen:
            chosen["agents"] = composition.agent_settings(folder)
        made = cls(composition.settings(), **chosen)
        made._composed, made._given, made._own_settings = (composition, folder, options), [], options.get("agents")
        return made

    # --- lifetime -----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._tasks is not None or not self.root.active:
            state = "is running already" if self._tasks is not None else "has been left"
            raise HarnessError(f"The harness {state}.", remedy="Make another one: each is entered once.")
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._tasks = tasks
        try:
            await self._plugins.start()
        except BaseException:
            await self._close(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(kind, error, trace)

    async def _close(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = self._tasks
        try:
            await self.root.aclose()
        finally:
            self._tasks = None
            if tasks is not None:
                tasks.cancel_scope.cancel()
                await tasks.__aexit__(None, None, None)

    @property
    def tasks(self) -> anyio.abc.TaskGroup:
        """The one task group that owns everything that runs in the background.

        Raises:
            HarnessError: the harness is not entered.
        """
        if self._tasks is None:
            raise HarnessError(
                "The harness is not running.", remedy="Use it inside 'async with Harness(...) as harness:'."
            )
        return self._tasks

    # --- plugins ------------------------------------------------------------------------------------------------------

    @property
    def failures(self) -> list[PluginFailure]:
        """Plugins that were left out because they failed."""
        return self._plugins.failures

    async def apply(self, composition: Composition) -> Applied:
        """Go over to another composition while everything runs: what did not change is left alone, and what did is
        installed, removed or set up anew, in order.

        The outcome is that of a fresh start with the new one. A step that has been assembled goes on with what it has;
        the next one sees the new state. While the change is prepared, old and new plugins are up at the same time.
        Sessions and their store stay as they are where ``[session]`` is unchanged. Plugins and agent settings that a program
        gave to the constructor stay too.

        Raises:
            HarnessError: a plugin could not be installed (unless its ``on_error`` is ``skip``), or agents run in a scope
                that would go. Then nothing has changed.
        """
        _ = self.tasks  # refuses where the harness is not running
        before, folder, options = self._composed
        agents = self._own_settings
        if agents is None and before is not None and before.session == composition.session:
            agents = attrs.evolve(self.agents.settings, config=composition.call_config())
        chosen = {**composition.options(), **options}
        desired = Desired(
            settings=composition.settings(),
            uses=[*self._given, *chosen.pop("plugins")],
            agents=agents if agents is not None else composition.agent_settings(folder),
            **{
                name: value for name, value in chosen.items() if name in ("autoload", "on_error", "overrides", "models")
            },
        )
        applied = await self._plugins.change(desired)
        self._composed = composition, folder, options
        return applied

    async def install(
        self,
        plugin: Any,
        *,
        config: Mapping[str, Any] | Any = None,
        scope: Scope | None = None,
        name: str | None = None,
        owner: Effects | None = None,
        outermost: bool = False,
        constraints: Sequence[str] = (),
    ) -> Activation:
        """Install a plugin now, in a scope (the global one by default); ``await activation.aclose()`` takes it out.

        ``plugin`` is a class (one instance is made), an instance, a module, or the name of an installed plugin;
        ``config`` a mapping for its ``Config`` class, or an instance of that. The same plugin may be active in several
        scopes at once. It ends with the scope, or with ``owner`` where one is given.

        Raises:
            PluginError: it could not be loaded, fits no hook, is misconfigured, or its set-up failed; nothing is left of it.
            HarnessError: the registry refused something that its set-up registered; nothing is left of it.
        """
        source = source_of(plugin, name, self.entry_points() if isinstance(plugin, str) else None)
        activation = Activation(
            source,
            scope if scope is not None else self.root,
            owner=owner,
            outermost=outermost,
            constraints=tuple(constraints),
        )
        await activation.start(self.manager, config)
        return activation

    @property
    def activations(self) -> list[Activation]:
        """The active plugins, in order of registration."""
        return self.manager.activations

    def listeners(self, hook: str, scope: Scope | None = None) -> list[Listener]:
        """Who listens to a hook, outermost first, and why in this order; only those that ``scope`` admits, if given.

        Raises:
            HarnessError: there is no such hook.
        """
        if hook not in (*WATERFALLS, *OBSERVERS):
            raise HarnessError(f"There is no hook called {hook!r}.", hook=hook, known=[*WATERFALLS, *OBSERVERS])
        return self.manager.listeners(hook, scope)

    # --- scopes and assemblies ----------------------------------------------------------------------------------------

    def scope(self, name: str) -> Scope:
        """The scope of that name, such as an agent's of the composition; made below the root when first asked for."""
        found = self._plugins.scopes.named(name)
        return found if found is not None else self._plugins.scopes.made((name,))

    def known_scope(self, name: str) -> Scope:
        """The scope of that name that something was installed in, or that somebody asked for.

        Raises:
            ScopeError: there is none; ``known`` lists those that there are.
        """
        return self._plugins.scopes.known(name)

    async def assemble(self, scope: Scope | AssembleContext | None = None) -> PromptAssembly:
        """What a scope is told now: sections, contexts, tools and variables after the waterfall.

        Raises:
            HarnessError: see `harness_core.prompt.assemble`; what a provider or listener raises comes as it is.
        """
        return await assemble(self.prompt, self.hooks.system_prompt_assemble, scope)

    # --- agents -------------------------------------------------------------------------------------------------------

    async def create_agent(
        self,
        agent_id: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        config: CallConfig | None = None,
        cwd: str | os.PathLike[str] | None = None,
        scope: Scope | str | None = None,
        setup: Setup | None = None,
        parent: str | None = None,
        depth: int = 0,
        seed: Sequence[Event] = (),
    ) -> Agent:
        """A new agent with a new session of the same id, in a scope of its own below ``scope``, which may be the name of
        one of the composition's agents.

        ``setup(scope)`` may register into that scope before anybody can see the agent; ``seed`` (see
        `harness_core.session.seed_events`) lets it go on from another session's events, whose id is ``parent``.

        Raises:
            AgentError: there is an agent of that id.
            SessionExistsError: there is a session of that id; resume it.
            Exception: what ``setup`` raised. In every case nothing is left.
        """
        return await self.agents.create(
            agent_id,
            provider=provider,
            model=model,
            config=config,
            cwd=cwd,
            scope=self.known_scope(scope) if isinstance(scope, str) else scope,
            setup=setup,
            parent=parent,
            depth=depth,
            seed=seed,
        )

    async def resume_agent(
        self,
        agent_id: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        config: CallConfig | None = None,
        scope: Scope | str | None = None,
        setup: Setup | None = None,
    ) -> Agent:
        """An agent that goes on with a stored session; what is named here replaces what its last request had.

        Raises:
            AgentError: there is an agent of that id.
            SessionNotFoundError, SessionLockedError, LogFormatError, LogDamagedError: the session cannot be gone on with.
            Exception: what ``setup`` raised. In every case nothing is left.
        """
        return await self.agents.resume(
            agent_id,
            provider=provider,
            model=model,
            config=config,
            scope=self.known_scope(scope) if isinstance(scope, str) else scope,
            setup=setup,
        )

    async def prepare_step(
        self,
        target: Agent | Session | Scope | None = None,
        messages: Iterable[str | UserMessage] = (),
        *,
        scope: Scope | None = None,
        cwd: str | None = None,
        turn: int = 1,
        step: int = 1,
    ) -> PreparedStep:
        """One step for a loop of your own: system text, tools, messages to append and provenance, without a model.

        Raises:
            HarnessError: see `harness_core.prompt.assemble`; what a provider or listener raises comes as it is.
        """
        return await prepare_step(
            self.agents.surroundings,
            target if target is not None else self.root,
            messages,
            scope=scope,
            cwd=cwd,
            turn=turn,
            step=step,
        )
