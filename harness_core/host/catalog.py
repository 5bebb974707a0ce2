"""What a plugin implements: finding its marked functions and refusing, before anything runs, what fits no hook (UC-23).

pluggy's own validation does the checking of arguments; this module adds what pluggy lets pass in silence, and the names
that an author needs: plugin, distribution, file and line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import attrs
import pluggy

from harness_core._text import nearest
from harness_core.errors import PluginSpecError
from harness_core.hooks.listeners import code_place
from harness_core.hooks.specs import (
    HOOK_PREFIXES,
    OBSERVERS,
    PROJECT_NAME,
    WATERFALLS,
    HookSpecs,
    deprecations_of,
    hook_manager,
)
from harness_core.host.discovery import PluginSource

__all__ = ["HookCatalog", "Implementations", "PluginHooks"]

_MARK = f"{PROJECT_NAME}_impl"
_SETUP = "harness_setup"
_MAY_BE_ASYNC = (*WATERFALLS, _SETUP, "agent_turn_stopping")


@attrs.frozen
class PluginHooks:
    """The names of a plugin's attributes that implement hooks, set-up included."""

    names: tuple[str, ...]
    setup: str | None


class HookCatalog:
    """Examines plugin classes and modules, each once."""

    def __init__(self) -> None:
        self._known = {name for name in vars(HookSpecs) if not name.startswith("_")}
        self._examined: dict[Any, PluginHooks] = {}

    @property
    def hooks(self) -> list[str]:
        """All hook names."""
        return sorted(self._known)

    def examine(self, plugin: Any, source: PluginSource) -> PluginHooks:
        """The hooks that a plugin (an instance or a module) implements.

        Raises:
            PluginSpecError: an implementation fits no hook.
        """
        key = plugin if inspect.ismodule(plugin) else type(plugin)
        found = self._examined.get(key)
        if found is None:
            found = self._examined[key] = self._examine(plugin, key, source)
        return found

    def _examine(self, plugin: Any, home: Any, source: PluginSource) -> PluginHooks:
        names: list[str] = []
        setup: str | None = None
        for name in dir(plugin):
            if name.startswith("_"):
                continue
            function = _function_of(plugin, home, name)
            if function is None:
                continue
            options = getattr(function, _MARK, None)
            if options is None:
                if name in self._known and getattr(function, "__module__", "") != HookSpecs.__module__:
                    _refuse(
                        source, name, function, f"{name} has a hook's name but is not marked", "Mark it with @hookimpl."
                    )
                continue
            hook = options.get("specname") or name
            if hook not in self._known:
                if options.get("optionalhook") and not hook.startswith(HOOK_PREFIXES):
                    continue
                near = nearest(hook, self._known)
                meant = f"Did you mean {near}?" if near else f"The hooks are: {', '.join(self.hooks)}."
                _refuse(source, hook, function, f"there is no hook called {hook!r}", meant)
            _check_style(source, hook, function, options)
            if hook == _SETUP:
                setup = name
            names.append(name)
        if not names:
            _refuse(
                source, None, None, "it implements no hook", "Mark its functions with @hookimpl; see the list of hooks."
            )
        hooks = PluginHooks(tuple(names), setup)
        self._let_pluggy_check(plugin, hooks, source)
        self._tell_what_goes(plugin, hooks, source)
        return hooks

    def _tell_what_goes(self, plugin: Any, hooks: PluginHooks, source: PluginSource) -> None:
        """Warn of deprecated hooks and arguments, once for each plugin and not for each activation (UC-11)."""
        for name in hooks.names:
            function = getattr(plugin, name)
            hook = getattr(function, _MARK).get("specname") or name
            for deprecation in deprecations_of(hook, inspect.signature(function).parameters):
                deprecation.tell(source.label, code_place(function))

    def _let_pluggy_check(self, plugin: Any, hooks: PluginHooks, source: PluginSource) -> None:
        checker = hook_manager()
        try:
            checker.register(Implementations(plugin, hooks.names), name=source.name)
            checker.check_pending()
        except pluggy.PluginValidationError as error:
            function, hook = None, None
            for name in hooks.names:
                if f"{name}" in str(error):
                    function, hook = getattr(plugin, name), name
                    break
            _refuse(source, hook, function, f"pluggy refuses it: {' '.join(str(error).split())}", _ARGUMENTS)


_ARGUMENTS = "A hook implementation takes any subset of the hook's arguments, under their own names."


class Implementations:
    """What pluggy registers for a plugin: exactly its implementations, bound, and nothing else of the plugin.

    One object for each activation, compared by identity, so that one plugin can be active several times, and equal
    plugins do not collide.
    """

    def __init__(self, plugin: Any, names: Iterable[str], activation: Any = None) -> None:
        self.__dict__.update({name: getattr(plugin, name) for name in names})
        self._activation = activation

    def __dir__(self) -> list[str]:
        return [name for name in self.__dict__ if name != "_activation"]


def _function_of(plugin: Any, home: Any, name: str) -> Callable[..., Any] | None:
    """The plain function behind an attribute, without running a property."""
    found = inspect.getattr_static(plugin, name, None)
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    return found if inspect.isroutine(found) else None


def _check_style(source: PluginSource, hook: str, function: Callable[..., Any], options: dict[str, Any]) -> None:
    target = inspect.unwrap(function)
    waits = inspect.iscoroutinefunction(target)
    async_generator = inspect.isasyncgenfunction(target)
    if options.get("hookwrapper"):
        _refuse(source, hook, function, f"{hook} is a wrapper of pluggy's old kind", "Use @hookimpl(wrapper=True).")
    if options.get("wrapper"):
        if hook not in WATERFALLS:
            _refuse(source, hook, function, f"{hook} cannot be wrapped", "Only waterfalls take wrappers.")
        if waits or async_generator:
            _refuse(
                source, hook, function, f"the wrapper of {hook} is async", "Write an async listener with call_next."
            )
        if "call_next" in inspect.signature(target).parameters:
            _refuse(
                source,
                hook,
                function,
                f"the wrapper of {hook} asks for call_next",
                "A wrapper yields instead of calling it.",
            )
        return
    if hook == _SETUP:
        return
    if inspect.isgeneratorfunction(target) or async_generator:
        _refuse(
            source,
            hook,
            function,
            f"{hook} yields but is no wrapper",
            "Use @hookimpl(wrapper=True), or write it with call_next.",
        )
    if waits and hook not in _MAY_BE_ASYNC:
        _refuse(
            source, hook, function, f"{hook} is a coroutine function", "Observers of this hook are plain functions."
        )


def _refuse(
    source: PluginSource, hook: str | None, function: Callable[..., Any] | None, problem: str, remedy: str
) -> NoReturn:
    file, line = code_place(function) if function is not None else (None, None)
    place = f" at {file}:{line}" if file else ""
    raise PluginSpecError(
        f"{source.label}: {problem}{place}.",
        remedy=remedy,
        plugin=source.name,
        distribution=source.distribution,
        version=source.version,
        hook=hook,
        known=[*OBSERVERS, *WATERFALLS, _SETUP],
        file=file,
        line=line,
    )
