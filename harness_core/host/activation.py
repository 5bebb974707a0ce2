"""One activation of a plugin in one scope: instance, configuration, set-up, hooks, and the way back (D5, D6).

Set-up comes first and hooks after it, so that no listener runs before its plugin is ready; the way back is the
reverse. Whatever fails on the way in leaves nothing behind.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import anyio

from harness_core.errors import CompositionError, HarnessError, PluginConfigError, PluginLoadError, PluginSetupError
from harness_core.host.catalog import PluginHooks
from harness_core.host.config import structure_config
from harness_core.host.context import PluginContext
from harness_core.host.discovery import PluginSource
from harness_core.host.references import conceal, resolve
from harness_core.host.scope import Scope
from harness_core.scopes import Effects, Origin
from harness_core.scopes.staging import Staging, setting_up

if TYPE_CHECKING:
    from harness_core.host.manager import HookManager

__all__ = ["Activation"]


class Activation:
    """A plugin that is (or was) active in a scope."""

    def __init__(
        self,
        source: PluginSource,
        scope: Scope,
        *,
        owner: Effects | None = None,
        outermost: bool = False,
        constraints: tuple[str, ...] = (),
    ) -> None:
        self.source = source
        self.name = source.name
        self.scope = scope
        self.outermost = outermost
        self.constraints = constraints
        self.rank = -1
        self.plugin: Any = None
        self.config: Any = None
        self.context: PluginContext | None = None
        self.hooks = PluginHooks((), None)
        self.origin = Origin(
            scope=scope.name, plugin=source.name, distribution=source.distribution, version=source.version
        )
        self.looked = False
        """Did its set-up look at what others had registered?"""
        self.given: Any = None
        """The configuration that it was given, references to the environment resolved."""
        lifetime = owner if owner is not None else scope.effects
        lifetime.require_active()
        self.effects = Effects(f"plugin {source.name!r} in scope {scope.name!r}", self.origin, lifetime)
        handle = lifetime.add(self.aclose, f"plugin {source.name!r}")
        self.effects.add(handle.forget, "leave the outer list")

    @property
    def active(self) -> bool:
        return self.effects.active and self.rank >= 0

    async def start(
        self, manager: HookManager, config: Mapping[str, Any] | Any, staging: Staging | None = None
    ) -> None:
        """Bring the plugin up, as part of a change that is being prepared where one is given.

        Raises:
            PluginLoadError, PluginSpecError, PluginConfigError: nothing of the plugin ran, or only its constructor.
            PluginSetupError: set-up raised something that is no HarnessError; that is chained.
            HarnessError: set-up was refused something; the error names the plugin.
        """
        try:
            with setting_up(staging) as set_up:
                self.plugin = self._instance(self.source.imported())
                self.hooks = manager.catalog.examine(self.plugin, self.source)
                self.config = self._structured(config)
                self.context = PluginContext(self, self.config)
                await self._set_up()
                self.effects.require_active()  # set-up may have closed its own scope
                manager.enlist(self)
            self.looked = set_up.looked
        except BaseException as error:
            await self._roll_back(error)
            if not isinstance(error, Exception):
                raise
            failure = error if isinstance(error, HarnessError) else self._failed(error)
            conceal(failure, self.given)
            raise failure  # noqa: B904 -- it has its cause

    def _failed(self, error: Exception) -> PluginSetupError:
        failure = PluginSetupError(
            f"The set-up of {self.source.label} failed: {type(error).__name__}: {error}. Everything it had registered is "
            "undone.",
            layer=self.scope.name,
            hook="harness_setup",
            **self.source.facts(),
        )
        failure.__cause__ = error
        return failure

    def _instance(self, plugin: Any) -> Any:
        if not inspect.isclass(plugin):
            return plugin
        try:
            return plugin()
        except TypeError as error:
            raise PluginLoadError(
                f"The class of {self.source.label} cannot be instantiated without arguments: {error}.",
                remedy="Give its arguments defaults, or take settings from a Config class.",
                **self.source.facts(),
            ) from error

    def _structured(self, config: Any) -> Any:
        kind = getattr(self.plugin, "Config", None)
        try:
            config = self.given = resolve(config)
        except CompositionError as error:
            raise PluginConfigError(
                f"The configuration of {self.source.label}: {error.message}",
                remedy=error.remedy,
                entry=error.entry,
                names=error.names,
                **self.source.facts(),
            ) from None
        if kind is None:
            if config:
                got = f"the keys {', '.join(sorted(config))}" if isinstance(config, Mapping) else "something else"
                raise PluginConfigError(
                    f"{self.source.label} takes no configuration, but got {got}.",
                    remedy="Remove them.",
                    **self.source.facts(),
                )
            return {}
        if isinstance(config, kind):
            return config
        structured = structure_config(config if config is not None else {}, kind)
        if isinstance(structured, list):
            problems = "; ".join(str(problem) for problem in structured)
            raise PluginConfigError(
                f"The configuration of {self.source.label} does not fit {kind.__qualname__}: {problems}.",
                entry=structured[0].path,
                names=[problem.path for problem in structured],
                known=structured[0].known,
                **self.source.facts(),
            )
        return structured

    async def _set_up(self) -> None:
        if self.hooks.setup is None:
            return
        function = getattr(self.plugin, self.hooks.setup)
        wants_context = "ctx" in inspect.signature(function).parameters
        result = function(self.context) if wants_context else function()
        if inspect.isgenerator(result):
            self._begin(result)
        elif inspect.isasyncgen(result):
            await self._begin_async(result)
        elif inspect.isawaitable(result):
            await result
        elif result is not None:
            raise TypeError(f"harness_setup returned a {type(result).__name__}; it returns nothing, or yields once")

    def _begin(self, steps: Iterator[object]) -> None:
        try:
            next(steps)
        except StopIteration:
            return

        def clean_up() -> None:
            try:
                next(steps)
            except StopIteration:
                return
            raise RuntimeError(f"harness_setup of {self.source.label} yielded a second time")

        self.effects.add(clean_up, "the code after yield in harness_setup")

    async def _begin_async(self, steps: AsyncIterator[object]) -> None:
        try:
            await anext(steps)
        except StopAsyncIteration:
            return

        async def clean_up() -> None:
            try:
                await anext(steps)
            except StopAsyncIteration:
                return
            raise RuntimeError(f"harness_setup of {self.source.label} yielded a second time")

        self.effects.add(clean_up, "the code after yield in harness_setup")

    async def _roll_back(self, cause: BaseException) -> None:
        cause.add_note(f"raised while {self.source.label} was installed in scope {self.scope.name!r}")
        with anyio.CancelScope(shield=True):
            try:
                await self.effects.aclose()
            except Exception as error:  # the cause stays the primary error
                cause.add_note(f"undoing what it had registered failed as well: {error!r}")

    async def aclose(self) -> None:
        """Take the plugin out: hooks first, then its own clean-up, then all that it registered, last first.

        Raises:
            TeardownError: clean-ups failed; the others ran.
        """
        await self.effects.aclose()

    async def __aenter__(self) -> Activation:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        state = "active" if self.active else "inactive"
        return f"<Activation of {self.source.label} in scope {self.scope.name!r}, {state}>"
