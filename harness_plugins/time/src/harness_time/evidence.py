"""Evidence of the user's time zone: what clients send along with what a user says, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable

from harness_core import HarnessError, Source
from harness_time.zones import UnknownZoneError, ZoneTable

__all__ = ["CLIENT_ZONE", "RPC_ID", "ClientZoneError", "client_source", "named_zone", "zones_in_force"]

CLIENT_ZONE = "client_time_zone"
"""The key of a user message's source under which a client's zone is recorded."""
RPC_ID = "rpc_id"
"""The key of the request that the zone came with. A zone without it is nobody's statement."""


class ClientZoneError(HarnessError):
    """A recorded client's zone is none, or not the name that counts; ``entry`` is the name that was recorded."""

    code = "client-time-zone"


def client_source(rpc_id: str, time_zone: str, table: ZoneTable | None = None) -> Source:
    """The source of what a user said through a client that told its time zone; aliases are resolved here.

    Raises:
        UnknownZoneError: there is no such zone.
    """
    table = table if table is not None else ZoneTable.packaged()
    return Source(data={RPC_ID: rpc_id, CLIENT_ZONE: table.canonical(time_zone)})


def named_zone(source: Source) -> object | None:
    """The zone that a message's source gives evidence of; None where it gives none (TIME-17)."""
    if source.kind != "user" or source.data.get(RPC_ID) in (None, ""):
        return None
    return source.data.get(CLIENT_ZONE)


def zones_in_force(named: Iterable[object], table: ZoneTable) -> list[str]:
    """The distinct zones, in order of their names. Every one is checked, also where several make them useless (TIME-18).

    Raises:
        ClientZoneError: one of them is no zone, or not under the name that counts.
    """
    found: set[str] = set()
    for name in named:
        try:
            found.add(table.checked(name))
        except UnknownZoneError as error:
            raise ClientZoneError(
                f"A user message carries a client's time zone that cannot be used: {error.message}",
                remedy=f"{error.remedy} harness_time.client_source() records the right name.",
                plugin="time-context",
                entry=str(name)[:80],
            ) from error
    return sorted(found)
