"""The time for pluggy-harness: a reading of the clock in each step, in the user's time zone."""

from harness_time.config import Config
from harness_time.evidence import ClientZoneError, client_source
from harness_time.plugin import TimeContext
from harness_time.zones import UnknownZoneError, ZoneTable

__all__ = ["ClientZoneError", "Config", "TimeContext", "UnknownZoneError", "ZoneTable", "client_source"]
