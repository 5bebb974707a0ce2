"""Names of time zones: which exist, and which one of several names for the same zone counts. Reads no clock.

The table is the one that the tzdata distribution ships, so that a host that records names and this plugin agree
whatever the machine's own files say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from zoneinfo import ZoneInfo

import attrs

from harness_core import HarnessError

__all__ = ["UTC", "UnknownZoneError", "ZoneTable"]

UTC = "UTC"
"""The one name without a location that counts; the table itself calls it an alias of Etc/UTC."""
_UTC_OF_THE_TABLE = "Etc/UTC"
_AREA_AND_LOCATION = re.compile(r"[A-Za-z_]+(/[A-Za-z0-9_+-]+)+")


class UnknownZoneError(HarnessError, ValueError):
    """A name that is no time zone's, or not the one that counts; ``entry`` is the name."""

    code = "unknown-time-zone"


@attrs.frozen(kw_only=True)
class ZoneTable:
    """What zones there are: for each name the one that counts.

    A link of the table is an alias, unless a country lists it as its own zone: Europe/Stockholm is no other name for
    Europe/Berlin, although both have had the same time for long enough to share their data.
    """

    names: Mapping[str, str]
    """Each name, aliases included, with the one that counts."""

    @classmethod
    def packaged(cls) -> ZoneTable:
        """The table of the installed tzdata distribution."""
        folder = files("tzdata") / "zoneinfo"
        table = (folder / "tzdata.zi").read_text(encoding="utf-8")
        countries = (folder / "zone.tab").read_text(encoding="utf-8")
        return cls.of(table.splitlines(), countries.splitlines())

    @classmethod
    def of(cls, table: Iterable[str], countries: Iterable[str]) -> ZoneTable:
        """The table of a ``tzdata.zi``'s lines and a ``zone.tab``'s."""
        own = {line.split("\t")[2].strip() for line in countries if line.strip() and not line.startswith("#")}
        zones: set[str] = set()
        links: dict[str, str] = {}
        for line in table:
            fields = line.split()
            if len(fields) >= 3 and fields[0] == "Z":
                zones.add(fields[1])
            elif len(fields) == 3 and fields[0] == "L":
                links[fields[2]] = fields[1]
        return cls(names={name: _counting(name, links, own) for name in (*zones, *links)})

    def canonical(self, name: object) -> str:
        """The name that counts for this zone; hosts record this one.

        Raises:
            UnknownZoneError: no zone has the name.
        """
        found = self.names.get(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownZoneError(
                f"{name!r:.80} is no time zone.",
                remedy="Use a name such as 'UTC' or 'Europe/Berlin', in this spelling; offsets are no zones.",
                entry=str(name)[:80],
            )
        return found

    def checked(self, name: object) -> str:
        """The name, if it is ``UTC`` or in Area/Location form, exists, and is the one that counts.

        Raises:
            UnknownZoneError: it is not.
        """
        counting = self.canonical(name)
        if counting != name or not (name == UTC or _AREA_AND_LOCATION.fullmatch(counting)):
            raise UnknownZoneError(
                f"{name!r} is not the name of a time zone that counts.",
                remedy=f"Record {counting!r}." if counting != name else "Record a zone in Area/Location form.",
                entry=counting,
            )
        return counting

    def zone(self, name: object) -> ZoneInfo:
        """The zone of any of its names, under the one that counts.

        Raises:
            UnknownZoneError: no zone has the name, or its data cannot be read.
        """
        counting = self.canonical(name)
        try:
            return ZoneInfo(counting)
        except (KeyError, ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
            raise UnknownZoneError(
                f"The data of the time zone {counting!r} cannot be read: {error}.",
                remedy="Install the tzdata distribution anew.",
                entry=counting,
            ) from error


def _counting(name: str, links: Mapping[str, str], own: set[str]) -> str:
    if name == UTC or name in own:
        return name
    seen = {name}
    while name in links and name not in own:
        name = links[name]
        if name in seen:
            break  # a table that goes round in circles; any of them will do
        seen.add(name)
    return UTC if name == _UTC_OF_THE_TABLE else name
