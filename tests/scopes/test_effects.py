"""Effects: what an owner has done, undone exactly once, last first, whatever fails on the way."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator

import anyio
import pytest

from harness_core.errors import InactiveOwnerError
from harness_core.scopes import Effects, Origin, TeardownError

pytestmark = pytest.mark.anyio


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def owner() -> Effects:
    return Effects("the owner", Origin(scope="global", plugin="weather", distribution="harness-weather", version="1.2"))


@pytest.mark.spec("EFF-01", "EFF-02", "EFF-06")
async def test_all_kinds_of_effects_are_undone_last_first(owner: Effects, log: list[str]) -> None:
    @contextlib.contextmanager
    def entered() -> Iterator[str]:
        yield "value"
        log.append("context")

    @contextlib.asynccontextmanager
    async def entered_async() -> AsyncIterator[str]:
        yield "async value"
        await anyio.lowlevel.checkpoint()
        log.append("async context")

    async def later(text: str) -> None:
        await anyio.lowlevel.checkpoint()
        log.append(text)

    owner.callback(log.append, "first")
    assert owner.enter_context(entered()) == "value"
    assert await owner.enter_async_context(entered_async()) == "async value"
    owner.callback(later, "coroutine")
    owner.callback(lambda: log.append("last"))
    assert len(owner) == 5
    await owner.aclose()
    assert log == ["last", "coroutine", "async context", "context", "first"]
    assert len(owner) == 0


@pytest.mark.spec("EFF-02", "EFF-03", "REG-10")
async def test_a_handle_undoes_its_effect_once_and_at_once(owner: Effects, log: list[str]) -> None:
    handle = owner.callback(log.append, "done")
    assert handle.active
    handle.dispose()
    assert log == ["done"]
    assert not handle.active
    handle.dispose()
    await handle.aclose()
    await owner.aclose()
    assert log == ["done"]


async def test_a_handle_is_a_context_manager(owner: Effects, log: list[str]) -> None:
    with owner.callback(log.append, "sync"):
        assert log == []
    async with owner.callback(log.append, "async"):
        pass
    assert log == ["sync", "async"]


@pytest.mark.spec("EFF-02")
async def test_an_asynchronous_clean_up_refuses_synchronous_disposal_and_stays(owner: Effects, log: list[str]) -> None:
    async def later() -> None:
        log.append("later")

    handle = owner.callback(later)
    with pytest.raises(TypeError, match="aclose"):
        handle.dispose()
    assert handle.active
    await handle.aclose()
    assert log == ["later"]


@pytest.mark.spec("EFF-03")
async def test_the_owner_joins_a_teardown_that_is_under_way(owner: Effects, log: list[str]) -> None:
    release, started = anyio.Event(), anyio.Event()

    async def slow() -> None:
        started.set()
        await release.wait()
        log.append("slow")

    handle = owner.callback(slow)

    async def close() -> None:
        await owner.aclose()
        log.append("owner closed")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(handle.aclose)
        await started.wait()
        await handle.aclose()
        log.append("second call returned")
        tasks.start_soon(close)
        await anyio.wait_all_tasks_blocked()
        assert log == ["second call returned"]
        release.set()
    assert log == ["second call returned", "slow", "owner closed"]


@pytest.mark.spec("EFF-04", "EFF-05", "X-17", "D5")
async def test_failing_undos_are_grouped_and_keep_no_other_from_running(owner: Effects, log: list[str]) -> None:
    def fails(text: str) -> None:
        raise ValueError(text)

    owner.callback(log.append, "first")
    owner.callback(fails, "one")
    owner.callback(log.append, "second")
    owner.callback(fails, "two")
    with pytest.raises(TeardownError) as caught:
        await owner.aclose()
    assert [str(error) for error in caught.value.exceptions] == ["two", "one"]
    assert log == ["second", "first"]
    assert (caught.value.plugin, caught.value.distribution, caught.value.version) == (
        "weather",
        "harness-weather",
        "1.2",
    )
    assert all("the owner" in error.__notes__[0] for error in caught.value.exceptions)
    with pytest.raises(ExceptionGroup):
        raise caught.value


@pytest.mark.spec("EFF-07", "SCOPE-11")
async def test_nothing_is_registered_while_the_owner_closes_or_afterwards(owner: Effects) -> None:
    refused: list[InactiveOwnerError] = []

    def late() -> None:
        try:
            owner.callback(print)
        except InactiveOwnerError as error:
            refused.append(error)

    owner.callback(late)
    await owner.aclose()
    [error] = refused
    assert error.plugin == "weather"
    with pytest.raises(InactiveOwnerError, match="closed"):
        owner.callback(print)
    with pytest.raises(InactiveOwnerError):
        owner.enter_context(contextlib.nullcontext())
    with pytest.raises(InactiveOwnerError):
        owner.nested("inner")


@pytest.mark.spec("EFF-09")
async def test_what_is_entered_while_the_owner_closes_does_not_outlive_it(owner: Effects, log: list[str]) -> None:
    entering, release = anyio.Event(), anyio.Event()

    @contextlib.asynccontextmanager
    async def slow() -> AsyncIterator[None]:
        entering.set()
        await release.wait()
        yield
        log.append("left")

    async def enter() -> None:
        with pytest.raises(InactiveOwnerError):
            await owner.enter_async_context(slow())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(enter)
        await entering.wait()
        await owner.aclose()
        release.set()
    assert log == ["left"]


@pytest.mark.spec("EFF-10", "SCOPE-23")
async def test_a_nested_owner_has_its_place_in_the_order(owner: Effects, log: list[str]) -> None:
    owner.callback(log.append, "outer first")
    inner = owner.nested("inner")
    owner.callback(log.append, "outer last")
    inner.callback(log.append, "inner")
    assert owner.labels()[1] == "inner"
    await owner.aclose()
    assert log == ["outer last", "inner", "outer first"]
    assert not inner.active


@pytest.mark.spec("EFF-10", "EFF-11")
async def test_a_nested_owner_may_be_closed_before(owner: Effects, log: list[str]) -> None:
    inner = owner.nested("inner")
    inner.callback(log.append, "inner")
    await inner.aclose()
    assert owner.labels() == []
    await owner.aclose()
    assert log == ["inner"]


@pytest.mark.spec("SCOPE-10")
async def test_racing_calls_share_one_end_and_one_failure(owner: Effects) -> None:
    release, started = anyio.Event(), anyio.Event()
    seen: list[BaseException] = []

    async def slow() -> None:
        started.set()
        await release.wait()
        raise ValueError("slow")

    owner.callback(slow)

    async def close() -> None:
        try:
            await owner.aclose()
        except TeardownError as error:
            seen.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(close)
        await started.wait()
        tasks.start_soon(close)
        await anyio.wait_all_tasks_blocked()
        release.set()
    assert len(seen) == 2
    assert seen[0] is seen[1]
    await owner.aclose()  # later calls have nothing to say


@pytest.mark.spec("EFF-08")
async def test_an_undo_that_closes_its_own_owner_does_not_wait_for_itself(owner: Effects, log: list[str]) -> None:
    owner.callback(log.append, "rest")
    owner.callback(owner.aclose)
    with anyio.fail_after(5):
        await owner.aclose()
    assert log == ["rest"]


async def test_cancellation_never_keeps_clean_ups_from_running(owner: Effects, log: list[str]) -> None:
    async def slow() -> None:
        await anyio.lowlevel.checkpoint()
        log.append("slow")

    owner.callback(log.append, "first")
    owner.callback(slow)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await owner.aclose()
        await anyio.lowlevel.checkpoint()
        log.append("not reached")
    assert scope.cancelled_caught
    assert log == ["slow", "first"]


async def test_an_interrupt_in_an_undo_is_raised_after_the_others_have_run(owner: Effects, log: list[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    owner.callback(log.append, "first")
    owner.callback(interrupt)
    with pytest.raises(KeyboardInterrupt):
        await owner.aclose()
    assert log == ["first"]
