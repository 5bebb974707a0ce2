"""The clock of the kit: time that passes when a test says so, or when somebody sleeps."""

from __future__ import annotations

import anyio
import pytest

from harness_core.errors import HarnessError
from harness_core.testing import FakeClock

pytestmark = pytest.mark.anyio


async def test_sleeping_takes_no_time_and_moves_the_clock() -> None:
    clock = FakeClock(1_000)
    await clock.sleep(2.5)
    await clock.sleep(0)
    assert (clock(), clock.slept, clock.sleepers) == (3_500, [2.5, 0], 0)


async def test_who_sleeps_at_the_same_time_does_not_add_up() -> None:
    clock = FakeClock(0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 5)
        tasks.start_soon(clock.sleep, 3)
    assert clock() == 5_000


async def test_a_manual_clock_wakes_those_whose_time_has_come() -> None:
    clock = FakeClock(0, manual=True)
    awake: list[float] = []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        awake.append(seconds)

    async with anyio.create_task_group() as tasks:
        for seconds in (3, 1, 0):
            tasks.start_soon(sleep, seconds)
        await anyio.wait_all_tasks_blocked()
        assert (awake, clock.sleepers, clock()) == ([0], 2, 0)
        clock.advance(0.999)
        await anyio.wait_all_tasks_blocked()
        assert awake == [0]
        clock.advance(0.001)
        await anyio.wait_all_tasks_blocked()
        assert awake == [0, 1]
        clock.advance(60)
    assert awake == [0, 1, 3]
    assert clock() == 61_000


async def test_who_is_cancelled_no_longer_waits() -> None:
    clock = FakeClock(0, manual=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 1)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert clock.sleepers == 0


def test_a_clock_does_not_go_back() -> None:
    with pytest.raises(HarnessError, match="does not go back"):
        FakeClock().advance(-1)
