"""Converts a local time of the source's time zone to UTC, by asking the source."""

from __future__ import annotations

from datetime import UTC, datetime

from unshard.mysql.connection import Endpoint, rows, session

_SHIFTS = (0, 1800, -1800, 3600, -3600, 7200, -7200)
"""By how many seconds clocks are set forth and back: another moment of the same local time is so far away."""


def utc_of(endpoint: Endpoint, local: str) -> str | None:
    """Return `YYYY-MM-DD HH:MM:SS` of the source's global time zone in UTC; None where it is no moment or several.

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
