"""The plugins that a composition wants: bringing them up, and going from one composition to another while all runs.

A change is prepared beside what runs: new plugins are set up while the old ones go on. If all of them come up, tables,
hooks, settings and scopes change in one go, between two steps of whoever runs, and the old plugins are taken out;
otherwise the new ones are, and nothing has changed. What did not change is left alone. Places come from the composition,
not from the time of a registration, so that the outcome is that of a fresh start.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import anyio
import attrs

from harness_core._text import quoted_list
from harness_core.errors import CompositionError, HarnessError, PluginConfigError, ScopeError
from harness_core.host.activation import Activation
from harness_core.host.agents import AgentSettings
from harness_core.host.loading import OnError, PluginFailure, PluginUse, ResolvedUse, ScopePath, ordered_uses, resolved
from harness_core.host.references import resolve
from harness_core.host.scope import NamedScopes, Scope
from harness_core.models import CallConfig
from harness_core.prompt import PromptSettings
from harness_core.prompt._placement import Overrides
from harness_core.scopes import Origin, ScopeNode
from harness_core.scopes.staging import Position, Staging

if TYPE_CHECKING:
    from harness_core.host.harness import Harness

__all__ = ["Applied", "Desired", "Plugins"]

_log = logging.getLogger("harness.changing")


@attrs.frozen(kw_only=True)
class Desired:
    """What a composition amounts to."""

    settings: PromptSettings
    uses: Sequence[PluginUse | Any] = ()
    autoload: bool = True
    on_error: OnError = "fail"
    overrides: Mapping[ScopePath, Overrides] = attrs.field(factory=dict)
    models: Mapping[ScopePath, CallConfig] = attrs.field(factory=dict)
    agents: AgentSettings


@attrs.frozen(kw_only=True)
class Applied:
    """What a change did, by the plugins' names, each with its scope where that is not the global one.

    ``kept`` were left alone; ``reconfigured`` were set up anew, since what they are given, or what their set-up looked
    at, changed. ``settings`` tells whether the prompt's settings, placements or models changed. ``failures`` were left
    out. ``leftovers`` is what taking old plugins out raised: they are out nevertheless.
    """

    installed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    reconfigured: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    settings: bool = False
    failures: tuple[PluginFailure, ...] = ()
    leftovers: tuple[Exception, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.installed or self.removed or self.reconfigured or self.settings)


@attrs.frozen(eq=False)
class _Running:
    each: ResolvedUse
    activation: Activation

    @property
    def label(self) -> str:
        path = self.each.use.scope
        return self.each.source.name if not path else f"{self.each.source.name} in {path[-1]}"


class Plugins:
    """The plugins of one harness that its composition asked for."""

    def __init__(self, harness: Harness, desired: Desired) -> None:
        self.desired = desired
        self.failures: list[PluginFailure] = []
        self.scopes = NamedScopes(harness.root)
        self._harness = harness
        self._running: list[_Running] = []
        self._own: set[ScopePath] = set()
        """The scopes that are there because the composition names them."""
        self._changing = anyio.Lock()

    # --- a fresh start ------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Install everything, in order.

        Raises:
            HarnessError: a plugin failed that must not; those before it are active.
        """
        desired, failures = self.desired, self.failures
        async with self._changing:
            for each in self._wanted(desired):
                activation = await self._installed(each, self.scopes, desired, failures)
                if activation is not None:
                    self._running.append(_Running(each, activation))
                self._own.update(_prefixes(each.use.scope))
            self._settle(desired)

    def _wanted(self, desired: Desired) -> list[ResolvedUse]:
        by_name = any(isinstance(_use(each).plugin, str) for each in desired.uses)
        installed = self._harness.entry_points() if desired.autoload or by_name else []
        return ordered_uses(resolved(desired.uses, installed, desired.autoload))

    async def _installed(
        self,
        each: ResolvedUse,
        scopes: NamedScopes,
        desired: Desired,
        failures: list[PluginFailure],
        staging: Staging | None = None,
    ) -> Activation | None:
        use = each.use
        try:
            activation = Activation(
                each.source, scopes.made(use.scope), outermost=use.outermost, constraints=each.constraints
            )
            await activation.start(self._harness.manager, use.config, staging)
        except Exception as error:
            # A plugin that only happens to be installed may wait for the settings that it cannot do without.
            waits = isinstance(error, PluginConfigError) and not each.asked_for
            if (use.on_error or desired.on_error) == "fail" and not waits:
                raise
            source = each.source
            failures.append(PluginFailure(source.name, source.distribution, source.version, error))
            _log.warning("%s Left out.", error)
            return None
        return activation

    def _settle(self, desired: Desired) -> None:
        """What follows from a composition besides plugins, once its scopes are there."""
        harness = self._harness
        overrides: dict[ScopeNode, Overrides] = {
            s: o for path, o in desired.overrides.items() if o and (s := self.scopes.at(path)) is not None
        }
        if overrides or harness.prompt.overrides or desired.settings != harness.prompt.settings:
            harness.prompt.configure(desired.settings, overrides)
        models = {s: c for path, c in desired.models.items() if (s := self.scopes.at(path)) is not None}
        harness.agents.configure(desired.agents, models)

    # --- a change -----------------------------------------------------------------------------------------------------

    async def change(self, desired: Desired) -> Applied:
        """Go over to another composition, or stay where all is.

        Raises:
            HarnessError: a plugin failed that must not, or a scope would go in which agents run; nothing has changed.
        """
        try:
            self._changing.acquire_nowait()
        except (anyio.WouldBlock, RuntimeError):
            raise HarnessError(
                "The harness is being changed already.", remedy="Wait for the end of the other call of apply()."
            ) from None
        try:
            return await self._change(desired)
        finally:
            self._changing.release()

    async def _change(self, desired: Desired) -> Applied:
        wanted = self._wanted(desired)
        vacated = self._vacated(wanted)
        self._refuse_agents(vacated)
        scopes = self.scopes.copy()
        closing = [scopes.forget(path) for path in vacated]
        before = set(scopes.paths())
        staging = Staging(self._tables(), self._origins([running.activation for running in self._running], closing))
        failures: list[PluginFailure] = []
        now: list[_Running] = []
        fresh: list[Activation] = []
        try:
            for each in wanted:
                old = self._kept(each, now, staging)
                activation = old or await self._installed(each, scopes, desired, failures, staging)
                if activation is not None:
                    now.append(_Running(each, activation))
                    fresh += [activation] if old is None else []
            self._refuse_agents(vacated)  # some may have come meanwhile
            self._adopt(scopes, before.union(vacated))
            was, self.scopes = self.scopes, scopes
            try:
                staging.commit(self._position(now, staging), lambda: self._settle(desired))
            except BaseException:
                self.scopes = was
                self._settle(self.desired)
                raise
        except BaseException as error:
            staging.discard()
            await self._abandon(
                [*fresh, *(s for path in scopes.paths() if path not in before and (s := scopes.at(path)))], error
            )
            raise
        return await self._conclude(desired, now, fresh, closing, failures, wanted)

    def _kept(self, each: ResolvedUse, now: Sequence[_Running], staging: Staging) -> Activation | None:
        """The running activation that can stay for a use, if setting it up now would come to the same."""
        done = {running.activation for running in now}
        for index, running in enumerate(self._running):
            activation = running.activation
            if activation in done or not _same(running, each):
                continue
            # A set-up that looked around depended on those before it: it may stay only if they all do.
            earlier = [other.activation for other in self._running[:index]]
            if activation.looked and earlier != [other.activation for other in now]:
                return None
            return activation if staging.stays(self._origins([activation], [])) else None
        return None

    def _tables(self) -> list[Any]:
        harness = self._harness
        return [harness.manager, harness.prompt, *harness.tools.tables, harness.models.table, harness.services.table]

    def _vacated(self, wanted: Sequence[ResolvedUse]) -> list[ScopePath]:
        """The scopes that the composition no longer has, deepest first."""
        needed = {path for each in wanted for path in _prefixes(each.use.scope)}
        vacated = sorted(self._own - needed, key=len, reverse=True)
        return [path for path in vacated if self.scopes.at(path) is not None]

    def _refuse_agents(self, vacated: Sequence[ScopePath]) -> None:
        """Raises:
        ScopeError: agents run in a scope that would go.
        """
        for path in vacated:
            scope = self.scopes.at(path)
            inside = [agent_id for agent_id, agent in self._harness.agents.items() if scope in agent.scope.chain()]
            if inside:
                raise ScopeError(
                    f"The new composition has no scope {'/'.join(path)!r}, in which these agents run: {quoted_list(inside)}.",
                    remedy="Close them first, or keep the scope.",
                    entry=path[-1],
                    names=inside,
                )

    def _adopt(self, scopes: NamedScopes, known: Set[ScopePath]) -> None:
        """Take over the scopes that others have asked for while the change was prepared.

        Raises:
            ScopeError: the new composition has prepared one of the same name.
        """
        for path in self.scopes.paths():
            mine, prepared = self.scopes.at(path), scopes.at(path)
            if path in known or mine is None:
                continue
            if prepared is not None:
                raise ScopeError(
                    f"The scope {'/'.join(path)!r} was made by somebody else while the change was prepared.",
                    remedy="Apply the composition again.",
                    entry=path[-1],
                )
            scopes.adopt(path, mine)

    def _origins(self, gone: Sequence[Activation], closing: Sequence[Scope]) -> list[Origin]:
        """Who goes: those activations, what they installed themselves, and who is active in a scope that goes."""
        owners = {activation.effects for activation in gone} | {scope.effects for scope in closing}
        going = [
            activation.origin
            for activation in self._harness.activations
            if not owners.isdisjoint(activation.effects.owners())
            or not set(closing).isdisjoint(activation.scope.chain())
        ]
        return going + [scope.effects.origin for scope in closing]

    def _position(self, now: Sequence[_Running], staging: Staging) -> Position:
        """The places of the plugins, what they installed themselves with them."""
        order = {running.activation.effects: index for index, running in enumerate(now)}
        places: dict[int, int] = {}
        for activation in [*self._harness.activations, *staging.filed(self._harness.manager)]:
            index = next((order[owner] for owner in activation.effects.owners() if owner in order), None)
            if index is not None:
                places[id(activation.origin)] = index
        return lambda origin: places.get(id(origin))

    async def _abandon(self, prepared: Sequence[Activation | Scope], cause: BaseException) -> None:
        with anyio.CancelScope(shield=True):
            for each in reversed(prepared):
                try:
                    await each.aclose()
                except Exception as error:  # the cause stays the primary error
                    cause.add_note(f"taking out what was prepared failed as well: {error!r}")

    async def _conclude(
        self,
        desired: Desired,
        now: list[_Running],
        fresh: Sequence[Activation],
        closing: Sequence[Scope],
        failures: list[PluginFailure],
        wanted: Sequence[ResolvedUse],
    ) -> Applied:
        """The change is made; take out what is old."""
        before, stayed = self.desired, {running.activation for running in now}
        gone = [running for running in self._running if running.activation not in stayed]
        self.desired, self._running, self.failures[:] = desired, now, failures
        self._own = {path for each in wanted for path in _prefixes(each.use.scope)}
        for running in now:
            running.activation.outermost = running.each.use.outermost
            running.activation.constraints = running.each.constraints
        self._harness.manager.generation += 1
        leftovers: list[Exception] = []
        with anyio.CancelScope(shield=True):
            old_ones: list[Activation | Scope] = [*(running.activation for running in reversed(gone)), *closing]
            for each in old_ones:
                try:
                    await each.aclose()
                except Exception as error:
                    _log.warning("%s", error)
                    leftovers.append(error)
        new = [running.label for running in now if running.activation in fresh]
        left = [running.label for running in gone]
        return Applied(
            installed=tuple(label for label in new if label not in left),
            removed=tuple(label for label in left if label not in new),
            reconfigured=tuple(label for label in new if label in left),
            kept=tuple(running.label for running in now if running.activation not in fresh),
            settings=(before.settings, before.overrides, before.models, before.agents)
            != (desired.settings, desired.overrides, desired.models, desired.agents),
            failures=tuple(failures),
            leftovers=tuple(leftovers),
        )


def _use(each: PluginUse | Any) -> PluginUse:
    return each if isinstance(each, PluginUse) else PluginUse(plugin=each)


def _prefixes(path: ScopePath) -> list[ScopePath]:
    return [path[: index + 1] for index in range(len(path))]


def _same(running: _Running, each: ResolvedUse) -> bool:
    """Would setting it up now come to the same?"""
    mine, its = running.each, each
    if not running.activation.active or mine.source != its.source or mine.use.scope != its.use.scope:
        return False
    if not isinstance(mine.use.plugin, str) and mine.use.plugin != its.use.plugin:
        return False
    try:
        return _alike(resolve(its.use.config) or {}, running.activation.given or {})
    except CompositionError:
        return False


def _alike(one: Any, other: Any) -> bool:
    """Equal, and of the same types: 1 is no truth value, and what came from the environment is read otherwise."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)
