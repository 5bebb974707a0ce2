"""Settings that cannot be used stop the harness from starting, by their names."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from harness_time import Config, TimeContext, UnknownZoneError
from harness_time.plugin import process_zone

from harness_core import Harness, HarnessError
from harness_core.errors import PluginConfigError

pytestmark = pytest.mark.anyio


async def load(local: Any = lambda: "UTC", **config: Any) -> None:
    async with Harness(autoload=False) as harness:
        await harness.install(TimeContext(local_zone=local), config=config)


@pytest.mark.spec("TIME-23")
@pytest.mark.parametrize("value", [-1, 0.5, 2**53, float("inf"), float("nan"), True, "5", 1.0])
async def test_an_interval_that_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(PluginConfigError, match="refresh_interval_ms"):
        await load(refresh_interval_ms=value)
    with pytest.raises((ValueError, TypeError), match="must"):
        Config(refresh_interval_ms=value)


@pytest.mark.spec("TIME-05")
@pytest.mark.parametrize("value", [0, 1, 2**53 - 1])
async def test_intervals_from_zero_up_are_taken(value: int) -> None:
    await load(refresh_interval_ms=value)


@pytest.mark.spec("TIME-21", "TIME-22")
@pytest.mark.parametrize("value", ["", "+02:00", "Not/A", "europe/berlin", "../UTC", 5])
async def test_a_fallback_zone_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(PluginConfigError, match="time_zone") as error:
        await load(time_zone=value)
    assert str(value) in str(error.value) or not isinstance(value, str)


async def test_any_name_of_a_zone_will_do_as_the_fallback() -> None:
    await load(time_zone="US/Eastern")


@pytest.mark.spec("TIME-21")
@pytest.mark.parametrize("outcome", [OSError("no such file"), UserWarning("assuming UTC"), "not a zone", None])
async def test_a_process_without_a_zone_needs_the_setting(outcome: Any) -> None:
    def local() -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with pytest.raises(HarnessError, match="time zone of this process") as error:
        await load(local)
    assert isinstance(error.value, UnknownZoneError)
    assert "time_zone" in str(error.value)
    await load(local, time_zone="Asia/Tokyo")


@pytest.mark.spec("TIME-20")
def test_the_process_zone_is_the_one_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.environ.get("TZ")
    try:
        for zone in ("Asia/Tokyo", "Europe/Berlin"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert process_zone() == zone
    finally:
        monkeypatch.undo()
        assert os.environ.get("TZ") == before
        time.tzset()
