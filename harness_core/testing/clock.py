"""A clock that tests set: wall-clock time and waiting without waiting. Reads no other clock."""

from __future__ import annotations

import anyio
import anyio.lowlevel

from harness_core.errors import HarnessError

__all__ = ["FakeClock"]

_START_MS = 1_767_225_600_000
"""The first of January 2026, midnight UTC: a time that looks like one in a log."""


class FakeClock:
    """A harness's time in a test: ``AgentSettings(clock=clock, sleep=clock.sleep)``.

    Calling it gives milliseconds since 1970. Without more, whoever sleeps goes on at once, and the clock is on by what it
    slept; with ``manual=True`` it waits until `advance` has brought the clock there.

    Args:
        start_ms: what it shows at first.
        manual: move only when told to.

    ``slept`` lists what was slept, in seconds.
    """

    def __init__(self, start_ms: int = _START_MS, *, manual: bool = False) -> None:
        self.slept: list[float] = []
        self._now_ms = start_ms
        self._manual = manual
        self._sleepers: list[tuple[int, anyio.Event]] = []

    def __call__(self) -> int:
        return self._now_ms

    def advance(self, seconds: float) -> None:
        """Let time pass; who sleeps that long goes on at the next chance.

        Raises:
            HarnessError: backwards.
        """
        if seconds < 0:
            raise HarnessError(f"A clock does not go back: advance({seconds!r}).", remedy="Make another FakeClock.")
        self._reach(self._now_ms + round(seconds * 1000))

    async def sleep(self, seconds: float) -> None:
        """Sleep, in the time of this clock."""
        self.slept.append(seconds)
        due = self._now_ms + max(0, round(seconds * 1000))
        if self._manual and due > self._now_ms:
            sleeper = (due, anyio.Event())
            self._sleepers.append(sleeper)
            try:
                await sleeper[1].wait()
            finally:
                self._sleepers = [each for each in self._sleepers if each is not sleeper]
            return
        await anyio.lowlevel.checkpoint()
        self._reach(max(due, self._now_ms))

    @property
    def sleepers(self) -> int:
        """How many wait for `advance`."""
        return sum(not awake.is_set() for _, awake in self._sleepers)

    def _reach(self, now_ms: int) -> None:
        self._now_ms = now_ms
        for due, awake in sorted(self._sleepers, key=lambda each: each[0]):
            if due <= now_ms:
                awake.set()
