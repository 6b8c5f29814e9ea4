"""The source's own clock: what a local time of its time zone is in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.flavour import Flavour, identify
from unshard.sync.statements.reader import SourceTraits

_SHIFTS = (0, 1800, -1800, 3600, -3600, 7200, -7200)
"""By how many seconds clocks are set forth and back: another moment of the same local time is so far away."""


def utc_of(endpoint: Endpoint, local: str) -> str | None:
    """`YYYY-MM-DD HH:MM:SS` of the source's global time zone in UTC, None where it is no moment or several.

    Raises SourceError.
    """
    with session(endpoint, "source") as connection:
        rows(connection, "SET SESSION time_zone = @@global.time_zone")
        ((seconds,),) = rows(connection, f"SELECT UNIX_TIMESTAMP('{local}')")
        if not seconds:
            return None
        begin = int(seconds)
        asked = ", ".join(f"CAST(FROM_UNIXTIME({max(begin + shift, 1)}) AS CHAR)" for shift in _SHIFTS)
        ((first, *others),) = rows(connection, f"SELECT {asked}")
    if _text(first) != local or local in map(_text, others):
        return None
    return datetime.fromtimestamp(begin, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _text(found: object) -> str:
    return found.decode() if isinstance(found, bytes) else str(found)


# What a source's statements take from their server.


_OFFSET_OF_SYSTEM = """
SELECT CAST(TIME_TO_SEC(TIMEDIFF(CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'), UTC_TIMESTAMP())) AS SIGNED)
"""


def read_traits(endpoint: Endpoint) -> SourceTraits:
    """Its flavour, how it folds names, and what SYSTEM is as a time zone there. Raises SourceError."""
    with session(endpoint, "source") as connection:
        server = identify(connection)
        ((names, zone),) = rows(connection, "SELECT @@lower_case_table_names, @@global.time_zone")
        if str(zone).upper() == "SYSTEM":
            ((seconds,),) = rows(connection, _OFFSET_OF_SYSTEM)
            sign, minutes = "-" if int(seconds) < 0 else "+", abs(int(seconds)) // 60
            zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
        return SourceTraits(server.flavour is Flavour.MARIADB, int(names) == 1, str(zone))
