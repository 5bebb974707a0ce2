"""How spans and times are written, and that the text is three lines whatever they are."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from harness_time._texts import elapsed_line, reading, span, timestamp, zone_line
from hypothesis import given, strategies as st

SIZES = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


@pytest.mark.spec("TIME-25")
@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (59_999, "59s"),
        (3_600_000, "1h 0s"),
        (86_460_000, "1d 1m 0s"),
        (0, "0s"),
        (999, "0s"),
        (-5_000, "0s"),
        (90_061_000, "1d 1h 1m 1s"),
        (1_000 * 86_400_000, "1000d 0s"),
    ],
)
def test_spans_are_written_largest_unit_first(milliseconds: int, text: str) -> None:
    assert span(milliseconds) == text


@given(st.integers(0, 2**53))
def test_a_span_says_its_seconds_exactly(milliseconds: int) -> None:
    words = span(milliseconds).split()
    units = [word[-1] for word in words]
    assert units == [unit for unit in SIZES if unit in units]
    assert units[-1] == "s"
    counts = [int(word[:-1]) for word in words]
    assert all(counts[:-1]), "only seconds are written when they are zero"
    assert sum(count * SIZES[unit] for count, unit in zip(counts, units, strict=True)) == milliseconds // 1000


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("Europe/London", "2026-07-15T02:01:01+01:00[Europe/London]"),
        ("America/New_York", "2026-07-14T21:01:01-04:00[America/New_York]"),
        ("Asia/Kathmandu", "2026-07-15T06:46:01+05:45[Asia/Kathmandu]"),
        ("Pacific/Apia", "2026-07-15T14:01:01+13:00[Pacific/Apia]"),
        ("America/St_Johns", "2026-07-14T22:31:01-02:30[America/St_Johns]"),
        ("UTC", "2026-07-15T01:01:01+00:00[UTC]"),
    ],
)
def test_times_are_local_with_a_numeric_offset(zone: str, text: str) -> None:
    assert timestamp(1_784_077_261_999, ZoneInfo(zone)) == text


@given(st.integers(-(10**12), 10**14), st.sampled_from(["UTC", "Asia/Kathmandu", "America/New_York"]))
def test_a_time_reads_back_as_the_same_second(now: int, zone: str) -> None:
    text, _, name = timestamp(now, ZoneInfo(zone)).partition("[")
    read = datetime.fromisoformat(text)
    assert name == f"{zone}]"
    assert (read - datetime.fromisoformat("1970-01-01T00:00:00+00:00")) == timedelta(seconds=now // 1000)


@pytest.mark.parametrize("zones", [[], ["Asia/Tokyo"], ["Asia/Tokyo", "Europe/Berlin"]])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("elapsed", [None, 1_000])
def test_a_reading_is_three_lines(zones: list[str], first: bool, elapsed: int | None) -> None:
    text = reading(3, 2, timestamp(0, ZoneInfo("UTC")), zone_line(zones), elapsed_line(first, elapsed))
    lines = text.split("\n")
    assert len(lines) == 3
    assert "turn 3, step 2, 1970-01-01T00:00:00+00:00[UTC]" in lines[0]
    assert lines[2].endswith("unavailable" if elapsed is None else "1s")
    assert ("ask the user" in lines[1]) == (len(zones) != 1)


def test_several_zones_are_listed_as_json() -> None:
    assert '["Asia/Tokyo","Europe/Berlin"]' in zone_line(["Asia/Tokyo", "Europe/Berlin"])
