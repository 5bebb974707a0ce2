"""Which names of time zones count."""

from __future__ import annotations

import zoneinfo
from typing import Any

import pytest
from harness_time import ClientZoneError, UnknownZoneError, ZoneTable, client_source
from harness_time.evidence import named_zone, zones_in_force

from harness_core import Source


@pytest.mark.parametrize(
    ("name", "counting"),
    [
        ("UTC", "UTC"),
        ("Etc/UTC", "UTC"),
        ("Zulu", "UTC"),
        ("Asia/Calcutta", "Asia/Kolkata"),
        ("Europe/Kiev", "Europe/Kyiv"),
        ("US/Eastern", "America/New_York"),
        ("Asia/Kolkata", "Asia/Kolkata"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
        # A country's own zone is no alias, even where it shares another's data.
        ("Europe/Stockholm", "Europe/Stockholm"),
        ("America/Montreal", "America/Toronto"),
    ],
)
def test_aliases_lead_to_the_name_that_counts(table: ZoneTable, name: str, counting: str) -> None:
    assert table.canonical(name) == counting
    assert table.canonical(counting) == counting
    assert table.checked(counting) == counting


@pytest.mark.spec("TIME-18")
@pytest.mark.parametrize(
    "name",
    [
        "+08:00", "Not/A", "Asia/Calcutta", "Etc/UTC", "utc", "asia/shanghai", "EST5EDT", "Factory", "localtime", "",
        " UTC", "UTC\n", "../UTC", "/etc/passwd", "Europe/", "Europe", 5, None, True, ["UTC"], {"a": 1},
    ],
)  # fmt: skip
def test_what_does_not_count_is_refused(table: ZoneTable, name: Any) -> None:
    with pytest.raises(UnknownZoneError):
        table.checked(name)
    with pytest.raises(ClientZoneError) as error:
        zones_in_force(["Europe/Berlin", name], table)
    assert error.value.plugin == "time-context"


def test_every_name_of_the_table_leads_to_one_whose_data_can_be_read(table: ZoneTable) -> None:
    names = zoneinfo.available_timezones() - {"localtime"}
    assert len(names) > 400
    for name in names:
        assert table.zone(name).key == table.canonical(name)


def test_a_table_that_goes_round_in_circles_ends() -> None:
    table = ZoneTable.of(["L A/B C/D", "L C/D A/B", "Z E/F 0 - X"], ["#code", "XX\t+0\tE/F\t"])
    assert table.canonical("A/B") in {"A/B", "C/D"}
    assert table.canonical("E/F") == "E/F"


def test_data_that_cannot_be_read_is_an_error_of_the_zone() -> None:
    with pytest.raises(UnknownZoneError, match="cannot be read"):
        ZoneTable.of(["Z No/Data 0 - X", "Z ../x 0 - X"], []).zone("No/Data")
    with pytest.raises(UnknownZoneError, match="cannot be read"):
        ZoneTable.of(["Z ../x 0 - X"], []).zone("../x")


@pytest.mark.spec("TIME-17")
@pytest.mark.parametrize(
    ("source", "zone"),
    [
        (Source(data={"rpc_id": "1", "client_time_zone": "Asia/Tokyo"}), "Asia/Tokyo"),
        (Source(data={"client_time_zone": "Asia/Tokyo"}), None),
        (Source(data={"rpc_id": "", "client_time_zone": "Asia/Tokyo"}), None),
        (Source(data={"rpc_id": None, "client_time_zone": "Asia/Tokyo"}), None),
        (Source(data={"rpc_id": "1"}), None),
        (Source("plugin", None, "p", {"rpc_id": "1", "client_time_zone": "Asia/Tokyo"}), None),
    ],
)
def test_only_a_user_s_request_gives_evidence(source: Source, zone: str | None) -> None:
    assert named_zone(source) == zone


def test_a_host_records_the_name_that_counts() -> None:
    source = client_source("r1", "Asia/Calcutta")
    assert source == Source(data={"rpc_id": "r1", "client_time_zone": "Asia/Kolkata"})
    with pytest.raises(UnknownZoneError):
        client_source("r1", "+05:30")
