"""Chains that record what happens in them: every listener wrapped, for one dispatch, and compiled as ever.

The wrapped listeners are compiled by the same function as the plain ones, so that a traced dispatch keeps every rule and
every error of an untraced one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from types import CoroutineType
from typing import Any, TypeAlias

import attrs

from harness_core.hooks import Chain, Listener, Style, WaterfallSpec
from harness_core.hooks._calls import Call, adapt
from harness_core.inspect.difference import changes, snapshot
from harness_core.inspect.trace import DispatchTrace, Failure, ListenerRun

__all__ = ["Compile", "Recorder", "TracedChain"]

Compile: TypeAlias = Callable[[WaterfallSpec, Sequence[Listener]], Chain | None]
Clock: TypeAlias = Callable[[], int]


class TracedChain(Chain):
    """Stands where a compiled chain would; compiles a recording one for each dispatch.

    ``watchers`` says, when a dispatch begins, who is to be told of it.
    """

    __slots__ = ("_begin", "_compile")

    def __init__(
        self,
        spec: WaterfallSpec,
        listeners: Sequence[Listener],
        compile_chain: Compile,
        begin: Callable[[WaterfallSpec, Any, Any, Sequence[Listener]], Recorder],
    ) -> None:
        self.spec = spec
        self.listeners = tuple(listeners)
        self._compile = compile_chain
        self._begin = begin

    async def run(self, value: Any, context: Any, end: Callable[[Any], Any]) -> Any:
        """Send a value through, and record what becomes of it."""
        recorder = self._begin(self.spec, value, context, self.listeners)
        chain = self._compile(self.spec, [recorder.wrapped(listener) for listener in self.listeners])
        with recorder:
            if chain is not None:
                result = await chain.run(value, context, recorder.ending(end))
            else:
                result = await recorder.ending(end)(value)
            recorder.returned(result)
        return result


class Recorder:
    """Records one dispatch; ``done`` is called with the trace when it is over."""

    def __init__(
        self, spec: WaterfallSpec, trace: DispatchTrace, now: Clock, done: Callable[[DispatchTrace], None]
    ) -> None:
        self._spec = spec
        self._now = now
        self._done = done
        self._open: list[int] = []
        self.trace = trace

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.trace.ended = self._now()
        if error is not None:
            self.trace.failure = Failure.of(error)
        self._done(self.trace)

    def returned(self, result: Any) -> None:
        self.trace.result = snapshot(result)

    def ending(self, end: Callable[[Any], Any]) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """The innermost answer, with its time."""

        async def timed(value: Any) -> Any:
            began = self._now()
            try:
                result = end(value)
                return await result if type(result) is CoroutineType else result
            finally:
                self.trace.end = self._now() - began

        return timed

    # --- one listener -------------------------------------------------------------------------------------------------

    def wrapped(self, listener: Listener) -> Listener:
        """The listener, recording."""
        call = adapt(self._spec, listener)
        make = {Style.CALL_NEXT: self._around, Style.WRAPPER: self._wrapper}.get(listener.style, self._plain)
        arguments = self._spec.arguments if listener.style is Style.CALL_NEXT else self._spec.arguments[:-1]
        return attrs.evolve(listener, function=make(listener, call), argnames=arguments)

    def _begin(self, listener: Listener, value: Any) -> ListenerRun:
        parent = self._open[-1] if self._open else None
        runs = self.trace.runs
        received = snapshot(value)
        run = ListenerRun(listener=listener, number=len(runs), parent=parent, began=self._now(), received=received)
        runs.append(run)
        return run

    def _hand(self, run: ListenerRun, value: Any, handed: Any) -> int:
        """The listener is done with its way in; returns when what is further in begins."""
        before = self._now()
        run.inward = changes(run.received, snapshot(handed))
        run.handed_other = handed is not value
        self._open.append(run.number)
        since = self._now()
        run.recording += since - before
        return since

    def _back(self, run: ListenerRun, since: int) -> None:
        run.inner += self._now() - since
        del self._open[self._open.index(run.number) :]  # whoever was still open further in is over as well

    def _end(self, run: ListenerRun, inner: _Inner, result: Any) -> None:
        run.ended = self._now()
        run.returned = snapshot(result)
        run.answered = not inner.asked
        run.own_result = not inner.came_back or result is not inner.result
        run.caught = inner.failure
        if inner.asked:
            run.outward = changes(inner.seen, run.returned)
        else:
            run.inward = changes(run.received, run.returned)

    def _fail(self, run: ListenerRun, inner: _Inner, error: BaseException) -> None:
        run.ended = self._now()
        run.raised = Failure.of(error)
        if inner.failure is not None and inner.failure.error is not error:
            run.caught = inner.failure

    def _around(self, listener: Listener, call: Call) -> Callable[..., Any]:
        with_context = self._spec.context is not None

        async def recording(value: Any, *rest: Any) -> Any:
            context, call_next = rest if with_context else (None, rest[0])
            run, inner = self._begin(listener, value), _Inner()

            def further(*given: Any, **named: Any) -> Coroutine[Any, Any, Any]:
                coroutine = call_next(*given, **named)
                inner.asked = True
                replacement = [*given, *named.values()]
                return self._followed(run, inner, value, replacement[0] if replacement else value, coroutine)

            try:
                result = call(value, context, further)
                if isinstance(result, Awaitable):
                    result = await result
            except BaseException as error:
                self._fail(run, inner, error)
                raise
            self._end(run, inner, result)
            return result

        return recording

    async def _followed(
        self, run: ListenerRun, inner: _Inner, value: Any, handed: Any, coroutine: Coroutine[Any, Any, Any]
    ) -> Any:
        since = self._hand(run, value, handed)
        try:
            result = await coroutine
        except BaseException as error:
            inner.fail(error, handed)
            raise
        else:
            inner.take(result)
            return result
        finally:
            self._back(run, since)

    def _plain(self, listener: Listener, call: Call) -> Callable[..., Any]:
        async def recording(value: Any, context: Any = None) -> Any:
            run, inner = self._begin(listener, value), _Inner()
            try:
                result = call(value, context, None)
                if isinstance(result, Awaitable):
                    result = await result
            except BaseException as error:
                self._fail(run, inner, error)
                raise
            run.ended = self._now()
            handed = value if result is None else result
            run.returned = snapshot(handed)
            run.inward = changes(run.received, run.returned)
            run.handed_other = handed is not value and self._spec.plain_replaces
            run.answered = result is not None and not self._spec.plain_replaces
            run.own_result = result is not None
            return result

        return recording

    def _wrapper(self, listener: Listener, call: Call) -> Callable[..., Any]:
        def recording(value: Any, context: Any = None) -> Generator[None, Any, Any]:
            run, inner = self._begin(listener, value), _Inner()
            generator = call(value, context, None)
            try:
                next(generator)
            except StopIteration:
                run.ended = self._now()
                return None  # did not yield; the chain says so
            except BaseException as error:
                self._fail(run, inner, error)
                raise
            inner.asked = True
            since = self._hand(run, value, value)
            try:
                result = yield
            except BaseException as failure:
                self._back(run, since)
                inner.fail(failure, value)
                over, answer = self._step(run, inner, partial(generator.throw, failure))
            else:
                self._back(run, since)
                inner.take(result)
                over, answer = self._step(run, inner, partial(generator.send, result))
            if over:
                self._end(run, inner, answer)
                return answer
            try:
                yield  # a second time; the chain says so
            finally:
                run.ended = self._now()
                generator.close()

        return recording

    def _step(self, run: ListenerRun, inner: _Inner, resume: Callable[[], Any]) -> tuple[bool, Any]:
        """Let a generator go on: whether it is over, and what it returned."""
        try:
            resume()
        except StopIteration as stop:
            return True, stop.value
        except BaseException as error:
            self._fail(run, inner, error)
            raise
        return False, None


class _Inner:
    """What came of the listeners further in, as one listener saw it."""

    __slots__ = ("asked", "came_back", "failure", "result", "seen")

    def __init__(self) -> None:
        self.asked = False
        self.came_back = False
        self.failure: Failure | None = None
        self.result: Any = None
        self.seen = snapshot(None)

    def take(self, result: Any) -> None:
        self.came_back, self.result, self.seen = True, result, snapshot(result)

    def fail(self, error: BaseException, handed: Any) -> None:
        """Whatever was changed in place before it failed is not this listener's doing."""
        self.failure, self.seen = Failure.of(error), snapshot(handed)
