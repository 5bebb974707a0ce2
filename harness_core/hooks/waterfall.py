"""Waterfalls: compiling the listeners of a hook into a chain, and running values through it (D3).

A chain is compiled once for each scope and set of listeners. Each ``call_next`` listener is one link, each run of
plain listeners one, each run of generator wrappers one; a link checks what its listener returns and puts the plugin's
name on what it raises. One dispatch owns one small state object, so concurrent dispatches do not meet. Which
listeners exist, and in what order, is the source's business.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from types import CoroutineType
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from harness_core.errors import WaterfallError
from harness_core.hooks._calls import Call, adapt
from harness_core.hooks.listeners import Listener, ListenerSource, Style
from harness_core.hooks.specs import WaterfallSpec
from harness_core.scopes import ScopeNode

__all__ = ["Chain", "Waterfall", "annotate", "compile_chain"]

V = TypeVar("V")
R = TypeVar("R")

End: TypeAlias = Callable[[Any], Any]
"""The innermost answer: a plain or coroutine function of the value."""

Link: TypeAlias = Callable[["_State", Any], Coroutine[Any, Any, Any]]

_SAME: Any = object()
_ENDED = sys.maxsize
_FRAMES_PER_LINK = 2
_FRAMES_FOR_OTHERS = 200
"""Stack frames left to the application and to the listeners' own calls."""


class _State:
    """One dispatch: the innermost answer, the argument that all listeners share, and how far inwards it has come.

    ``pos`` is twice the number of the link that was last asked for, plus one once that link has begun to run: a listener
    that calls ``call_next()`` and does not await it leaves it even.
    """

    __slots__ = ("context", "end", "pos")

    def __init__(self, context: Any, end: End) -> None:
        self.context = context
        self.end = end
        self.pos = 0


class Chain:
    """A compiled waterfall, immutable; listeners that come or go later are in the next one (ASM-24)."""

    __slots__ = ("link", "listeners", "spec")

    def __init__(self, spec: WaterfallSpec, listeners: tuple[Listener, ...], link: Link) -> None:
        self.spec = spec
        self.listeners = listeners
        self.link = link
        """The outermost link; it holds on to the others."""

    async def run(self, value: Any, context: Any, end: End) -> Any:
        """Send a value through; returns what the outermost listener returned.

        Raises:
            WaterfallError: a listener broke the contract.
        """
        state = _State(context, end)
        try:
            return await self.link(state, value)
        finally:
            state.pos = _ENDED


def compile_chain(spec: WaterfallSpec, listeners: Sequence[Listener]) -> Chain | None:
    """The chain of these listeners, outermost first, or None when there are none.

    Raises:
        WaterfallError: there are more nested listeners than the interpreter has stack for.
    """
    if not listeners:
        return None
    groups: list[list[Listener]] = []
    for listener in listeners:
        alone = listener.style is Style.CALL_NEXT
        if alone or not groups or groups[-1][0].style is not listener.style:
            groups.append([listener])
        else:
            groups[-1].append(listener)
    limit = (sys.getrecursionlimit() - _FRAMES_FOR_OTHERS) // _FRAMES_PER_LINK
    if len(groups) > limit:
        raise WaterfallError(
            f"{spec.hook} has {len(groups)} nested listeners; at most {limit} fit under the recursion limit of "
            f"{sys.getrecursionlimit()}.",
            remedy="Write listeners that need no code after call_next() in the plain style, or raise the limit.",
            hook=spec.hook,
        )
    link = _innermost(len(groups))
    for index in range(len(groups) - 1, -1, -1):
        group = groups[index]
        build = {Style.CALL_NEXT: _around, Style.WRAPPER: _wrappers}.get(group[0].style, _plain)
        link = build(spec, index, [(listener, adapt(spec, listener)) for listener in group], link)
    return Chain(spec, tuple(listeners), link)


def _around(spec: WaterfallSpec, index: int, group: list[tuple[Listener, Call]], next_link: Link) -> Link:
    listener, call = group[0]
    function = listener.function
    usual = listener.argnames == (spec.value, "call_next") and inspect.iscoroutinefunction(function)
    returns, begun, asked = spec.returns, 2 * index + 1, 2 * index + 2
    only = returns[0] if len(returns) == 1 else None

    def advance(state: _State, given: Any, replacement: Any = _SAME) -> Coroutine[Any, Any, Any]:
        if state.pos >= asked:
            _refuse_call(spec, listener, state)
        if replacement is not _SAME:
            if not isinstance(replacement, spec.accepts):
                _refuse_value(spec, listener, "handed", replacement, spec.accepts)
            given = replacement
        state.pos = asked
        return next_link(state, given)

    async def usual_link(state: _State, value: Any) -> Any:
        # The same as below for the shape that most listeners have, without what that shape does not need.
        state.pos = begun
        try:
            result = await function(value, partial(advance, state, value))
        except Exception as error:
            annotate(error, listener)
            raise
        if state.pos == asked:
            _refuse_unawaited(spec, listener)
        if type(result) is not only and not isinstance(result, returns):
            _refuse_value(spec, listener, "returned", result, returns)
        return result

    async def link(state: _State, value: Any) -> Any:
        state.pos = begun
        try:
            result = call(value, state.context, partial(advance, state, value))
            if type(result) is CoroutineType or isinstance(result, Awaitable):
                result = await result
        except Exception as error:
            annotate(error, listener)
            raise
        if state.pos == asked:
            _refuse_unawaited(spec, listener)
        if type(result) is not only and not isinstance(result, returns):
            _refuse_value(spec, listener, "returned", result, returns)
        return result

    return usual_link if usual else link


def _plain(spec: WaterfallSpec, index: int, group: list[tuple[Listener, Call]], next_link: Link) -> Link:
    begun = 2 * index + 1

    async def link(state: _State, value: Any) -> Any:
        state.pos = begun
        for listener, call in group:
            try:
                result = call(value, state.context, None)
                if isinstance(result, Awaitable):
                    result = await result
            except Exception as error:
                annotate(error, listener)
                raise
            if result is None:
                continue
            if not isinstance(result, spec.returns):
                _refuse_value(spec, listener, "returned", result, spec.returns)
            if not spec.plain_replaces:
                return result
            value = result
        return await next_link(state, value)

    return link


def _wrappers(spec: WaterfallSpec, index: int, group: list[tuple[Listener, Call]], next_link: Link) -> Link:
    begun = 2 * index + 1

    async def link(state: _State, value: Any) -> Any:
        state.pos = begun
        entered: list[tuple[Listener, Any]] = []
        result: Any = None
        failure: BaseException | None = None
        try:
            for listener, call in group:
                generator = call(value, state.context, None)
                try:
                    next(generator)
                except StopIteration:
                    raise WaterfallError(
                        f"The wrapper of {spec.hook} by {listener.label} did not yield.",
                        remedy="A wrapper yields exactly once: result = yield.",
                        **listener.facts(),
                    ) from None
                except Exception as error:
                    annotate(error, listener)
                    raise
                entered.append((listener, generator))
            result = await next_link(state, value)
        except BaseException as error:  # wrappers must see cancellation too; it is raised again below
            failure = error
        for listener, generator in reversed(entered):
            result, failure = _leave_wrapper(spec, listener, generator, result, failure)
        if failure is not None:
            raise failure
        return result

    return link


def _leave_wrapper(
    spec: WaterfallSpec, listener: Listener, generator: Any, result: Any, failure: BaseException | None
) -> tuple[Any, BaseException | None]:
    try:
        if failure is not None:
            generator.throw(failure)
        else:
            generator.send(result)
    except StopIteration as stop:
        if isinstance(stop.value, spec.returns):
            return stop.value, None
        try:
            _refuse_value(spec, listener, "returned", stop.value, spec.returns)
        except WaterfallError as error:
            return None, error
    except BaseException as error:
        if isinstance(error, Exception):
            annotate(error, listener)
        return None, error
    generator.close()
    return None, WaterfallError(
        f"The wrapper of {spec.hook} by {listener.label} yielded a second time.",
        remedy="A wrapper yields exactly once.",
        **listener.facts(),
    )


def _innermost(index: int) -> Link:
    begun = 2 * index + 1

    async def link(state: _State, value: Any) -> Any:
        state.pos = begun
        result = state.end(value)
        return await result if type(result) is CoroutineType else result

    return link


_NOTE = "raised in the listener of "


def annotate(error: BaseException, listener: Listener) -> None:
    """Put the plugin's name on an exception; the innermost listener's note is the one that counts (UC-26)."""
    if not any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())):
        error.add_note(f"{_NOTE}{listener.hook} by {listener.label}, scope {listener.scope.name!r}")


def _refuse_call(spec: WaterfallSpec, listener: Listener, state: _State) -> NoReturn:
    when = "after the dispatch had ended" if state.pos == _ENDED else "a second time"
    raise WaterfallError(
        f"The listener of {spec.hook} by {listener.label} used call_next {when}.",
        remedy="Call it at most once, and await it before you return.",
        **listener.facts(),
    )


def _refuse_unawaited(spec: WaterfallSpec, listener: Listener) -> NoReturn:
    raise WaterfallError(
        f"The listener of {spec.hook} by {listener.label} called call_next() without awaiting it, so that nothing "
        "further in ran.",
        remedy="Write 'result = await call_next()' in an async function, or 'return call_next()' in a plain one.",
        **listener.facts(),
    )


def _refuse_value(spec: WaterfallSpec, listener: Listener, verb: str, value: Any, wanted: tuple[type, ...]) -> NoReturn:
    names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in wanted)
    remedy = {
        "returned": "Return what call_next() gave you, or a value of that kind of your own.",
        "handed": "Call call_next() without an argument to hand on the value that you were given.",
    }[verb]
    kind = "None" if value is None else f"a {type(value).__name__}"
    raise WaterfallError(
        f"The listener of {spec.hook} by {listener.label} {verb} {kind} where {names} is due.",
        remedy=remedy,
        **listener.facts(),
    )


class Waterfall(Generic[V, R]):
    """One hook's waterfall over a source of listeners; compiled chains are kept with the scopes they serve."""

    def __init__(self, spec: WaterfallSpec, source: ListenerSource) -> None:
        self.spec = spec
        self._source = source
        self.compile: Callable[[WaterfallSpec, Sequence[Listener]], Chain | None] = compile_chain
        """How chains are made; a tracer puts its own in place and calls `recompile`."""
        self._epoch = 0

    def recompile(self) -> None:
        """Forget all compiled chains."""
        self._epoch += 1

    def chain(self, scope: ScopeNode) -> Chain | None:
        """The chain for a scope as of now; None when no listener is admitted."""
        listeners, links, epoch = self._source.generation, scope.tree.generation, self._epoch
        cached = scope.attachments.get(self)
        if cached is not None:
            chain: Chain | None = cached[0]
            if cached[1] == listeners and cached[2] == links and cached[3] == epoch:
                return chain
        chain = self.compile(self.spec, self._source.listeners(self.spec.hook, scope))
        scope.attachments[self] = (chain, listeners, links, epoch)
        return chain

    async def dispatch(self, scope: ScopeNode, value: V, context: Any, end: Callable[[V], R | Awaitable[R]]) -> R:
        """Send ``value`` through the listeners that ``scope`` admits; ``end`` is the innermost answer.

        Raises:
            WaterfallError: a listener broke the contract.
        """
        chain = self.chain(scope)
        if chain is not None:
            result: R = await chain.run(value, context, end)
            return result
        answer = end(value)
        return await answer if type(answer) is CoroutineType else answer  # type: ignore[return-value]
