"""Effects: everything that an owner (a plugin activation, a scope) has done and that must be undone with it.

The list is explicit: each effect has a handle, undoing is exact, idempotent and last-in first-out, and a failing undo
never keeps the others from running (D5, EFF-*). Knows nothing of what the effects are.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from enum import Enum
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

import anyio

from harness_core.errors import HarnessError, InactiveOwnerError
from harness_core.scopes.origin import Origin

__all__ = ["Effects", "Handle", "OwnerState", "TeardownError"]

_T = TypeVar("_T")


class OwnerState(Enum):
    """The life of an owner; it only ever goes forward."""

    ACTIVE = "active"
    CLOSING = "closing"
    CLOSED = "closed"


class TeardownError(HarnessError, ExceptionGroup[Exception]):
    """One or more undos failed; all of the others ran. ``exceptions`` holds the failures, in the order they happened."""

    code: ClassVar[str] = "teardown"

    def __new__(cls, message: str, exceptions: list[Exception], **facts: Any) -> Self:
        return super().__new__(cls, message, exceptions)

    def __init__(self, message: str, exceptions: list[Exception], **facts: Any) -> None:
        HarnessError.__init__(self, message, **facts)

    def derive(self, excs: Any, /) -> TeardownError:  # type: ignore[override]
        return TeardownError(self.message, list(excs))


class Handle:
    """The exact undo of one effect. Disposing again does nothing; usable in ``with``."""

    __slots__ = ("_owner", "_undo", "label")

    def __init__(self, owner: Effects, undo: Callable[[], object], label: str) -> None:
        self._owner = owner
        self._undo: Callable[[], object] | None = undo
        self.label = label

    @property
    def active(self) -> bool:
        """Is the effect still in force?"""
        return self._undo is not None

    def dispose(self) -> None:
        """Undo the effect now.

        Raises:
            TypeError: the undo is asynchronous; await `aclose` instead. Nothing has been undone.
        """
        undo = self._undo
        if undo is None:
            return
        if inspect.iscoroutinefunction(undo):
            raise TypeError(
                f"{self.label!r} must be undone with 'await handle.aclose()': its clean-up is asynchronous."
            )
        self._undo = None
        self._owner._effects.pop(self, None)
        undo()

    async def aclose(self) -> None:
        """Undo the effect now, whether its clean-up is synchronous or not."""
        undo = self._undo
        if undo is None:
            return
        self._undo = None
        self._owner._effects.pop(self, None)
        with anyio.CancelScope(shield=True):
            result = undo()
            if inspect.isawaitable(result):
                # The owner, when it closes meanwhile, joins this running teardown (EFF-03).
                done = self._owner._running.setdefault(self, anyio.Event())
                try:
                    await result
                finally:
                    del self._owner._running[self]
                    done.set()

    def forget(self) -> None:
        """Drop the handle without undoing anything: whoever files effects has undone this one already."""
        self._undo = None
        self._owner._effects.pop(self, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<Handle {self.label} {'active' if self.active else 'disposed'}>"


class Effects:
    """The effects of one owner, in the vocabulary of an exit stack."""

    __slots__ = (
        "_closed", "_closer", "_effects", "_failure", "_running", "before_undoing", "label", "origin", "outer", "state",
    )  # fmt: skip

    def __init__(self, label: str, origin: Origin, outer: Effects | None = None) -> None:
        self.label = label
        self.origin = origin
        self.outer = outer
        """The owner with which this one is closed."""
        self.state = OwnerState.ACTIVE
        self.before_undoing: Callable[[], Awaitable[None]] | None = None
        """Runs when the owner closes, before the first undo: whoever works in a scope stops before it is taken apart."""
        self._effects: dict[Handle, None] = {}
        self._running: dict[Handle, anyio.Event] = {}
        self._closed: anyio.Event | None = None
        self._closer: int | None = None
        self._failure: BaseException | None = None

    @property
    def active(self) -> bool:
        return self.state is OwnerState.ACTIVE

    def require_active(self) -> None:
        """Raise unless something may still be registered here.

        Raises:
            InactiveOwnerError: the owner is closed or closing (SCOPE-11, EFF-07).
        """
        if self.state is not OwnerState.ACTIVE:
            raise InactiveOwnerError(
                f"{self.label} is {self.state.value}: nothing can be registered through it any more.",
                remedy="Register through a scope or plugin that is active, or earlier.",
                plugin=self.origin.plugin,
                distribution=self.origin.distribution,
                version=self.origin.version,
                layer=self.origin.scope,
            )

    def add(self, undo: Callable[[], object], label: str) -> Handle:
        """File an undo without further checks; the registries' way in."""
        handle = Handle(self, undo, label)
        self._effects[handle] = None
        return handle

    def callback(self, function: Callable[..., object], /, *args: Any, **kwargs: Any) -> Handle:
        """Call ``function(*args, **kwargs)`` when the owner goes; it may be a coroutine function.

        Raises:
            InactiveOwnerError: the owner is closed or closing.
        """
        self.require_active()
        label = getattr(function, "__qualname__", repr(function))
        if not args and not kwargs:
            return self.add(function, label)
        if inspect.iscoroutinefunction(function):

            async def call_later() -> None:
                await function(*args, **kwargs)

            return self.add(call_later, label)
        return self.add(lambda: function(*args, **kwargs), label)

    def enter_context(self, manager: AbstractContextManager[_T]) -> _T:
        """Enter a context manager now, leave it when the owner goes."""
        self.require_active()
        value = manager.__enter__()
        self.add(lambda: manager.__exit__(None, None, None), type(manager).__qualname__)
        return value

    async def enter_async_context(self, manager: AbstractAsyncContextManager[_T]) -> _T:
        """Enter an asynchronous context manager now, leave it when the owner goes."""
        self.require_active()
        value = await manager.__aenter__()

        async def leave() -> None:
            await manager.__aexit__(None, None, None)

        self.add(leave, type(manager).__qualname__)
        if not self.active:
            # The owner was closed while the manager was entered: it must not outlive it (EFF-09).
            await manager.__aexit__(None, None, None)
            self.require_active()
        return value

    def nested(self, label: str) -> Effects:
        """An owner of its own inside this one: closed with it, in its place of the order, or before (EFF-10)."""
        self.require_active()
        inner = Effects(label, self.origin, self)
        handle = self.add(inner.aclose, label)
        inner.add(handle.forget, "leave the outer list")
        return inner

    def owners(self) -> Iterator[Effects]:
        """This owner, the one with which it is closed, and so on."""
        owner: Effects | None = self
        while owner is not None:
            yield owner
            owner = owner.outer

    def labels(self) -> list[str]:
        """What is in force, in order of registration (SCOPE-23)."""
        return [handle.label for handle in self._effects]

    def __len__(self) -> int:
        return len(self._effects)

    async def aclose(self) -> None:
        """Undo everything, last first, and return when all is quiet.

        Calls that come while it runs wait for the same end and see the same failure; later ones return at once.

        Raises:
            TeardownError: undos failed; all the others ran nevertheless.
        """
        if self.state is OwnerState.CLOSED:
            return
        if self.state is OwnerState.CLOSING:
            if self._closer == anyio.get_current_task().id or self._closed is None:
                return  # an undo asks for the end of its own owner: it is part of that end
            await self._closed.wait()
            if self._failure is not None:
                raise self._failure
            return
        self.state = OwnerState.CLOSING
        closed = self._closed = anyio.Event()
        self._closer = anyio.get_current_task().id
        with anyio.CancelScope(shield=True):
            try:
                errors, interrupt = await self._undo_all()
            finally:
                self.state = OwnerState.CLOSED
            self._failure = interrupt or self._grouped(errors)
            closed.set()
        if self._failure is not None:
            raise self._failure

    async def _undo_all(self) -> tuple[list[Exception], BaseException | None]:
        errors: list[Exception] = []
        interrupt: BaseException | None = None
        for running in list(self._running.values()):
            await running.wait()
        if self.before_undoing is not None:
            self.add(self.before_undoing, "what still runs")
        while self._effects:
            handle, _ = self._effects.popitem()
            undo, handle._undo = handle._undo, None
            if undo is None:
                continue
            try:
                result = undo()
                if isinstance(result, Awaitable):
                    await result
            except Exception as error:
                error.add_note(f"raised while {self.label} undid {handle.label!r}")
                errors.append(error)
            except BaseException as error:  # kept until the others have run, then raised again
                interrupt = error
        return errors, interrupt

    def _grouped(self, errors: list[Exception]) -> TeardownError | None:
        if not errors:
            return None
        return TeardownError(
            f"{len(errors)} of the clean-ups of {self.label} failed; all the others ran.",
            errors,
            plugin=self.origin.plugin,
            distribution=self.origin.distribution,
            version=self.origin.version,
            layer=self.origin.scope,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
