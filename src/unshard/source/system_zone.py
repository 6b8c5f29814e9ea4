"""The time zone of a server's host, which its time zone SYSTEM stands for: an offset, or a zone of the IANA database.

A host with summer time has several offsets, and a statement may bring old values of a TIMESTAMP through all of them. No
server tells the name of the host's zone, only an abbreviation. So the server is asked for its offsets at many moments,
and the zone is one with the same offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from unshard.mysql.connection import rows

_DAY = 86_400
_MOMENTS = range(_DAY, 2_145_916_800, 10 * _DAY)
"""Seconds since 1970, to the end of 2037: what a TIMESTAMP of every supported server can hold.

No zone has changed its offset there and back within ten days.
"""
_REGIONS = ("Europe", "America", "Asia", "Africa", "Australia", "Pacific", "Indian", "Atlantic")
"""Regions by preference. A zone with several names gets the first one of the first region; other names are old."""


def system_zone(connection: Any) -> str:
    """Return the time zone that SYSTEM is on the server: an offset (`+02:00`) or a name (`Europe/Berlin`).

    SYSTEM itself where no zone that is known here has its offsets. The session is in UTC before and afterwards. Raises
    MySQLdb.Error.
    """
    rows(connection, "SET SESSION time_zone = 'SYSTEM'")
    try:
        found = _offsets(connection, _MOMENTS)
        if len(set(found.values())) == 1:
            return offset_text(next(iter(found.values())))
        for name in sorted(available_timezones(), key=_place):
            zone = ZoneInfo(name)
            if _has(zone, found) and _has(zone, _offsets(connection, list(_changes(zone)))):
                return name
        return "SYSTEM"
    finally:
        rows(connection, "SET SESSION time_zone = '+00:00'")


def default_zone(connection: Any) -> str:
    """Return the time zone of sessions that set none: an offset, a name, or SYSTEM as `system_zone` returns it.

    The session is in UTC before and afterwards. Raises MySQLdb.Error.
    """
    ((zone,),) = rows(connection, "SELECT @@global.time_zone")
    return system_zone(connection) if str(zone).upper() == "SYSTEM" else str(zone)


def _place(name: str) -> tuple[int, str]:
    region = name.partition("/")[0]
    return (_REGIONS.index(region) if region in _REGIONS else len(_REGIONS)), name


def _offsets(connection: Any, moments: Sequence[int]) -> Mapping[int, int]:
    """Return the seconds by which the session's time is ahead of UTC at these moments."""
    listed = ", ".join(f"TIMESTAMPDIFF(SECOND, '1970-01-01', FROM_UNIXTIME({at})) - {at}" for at in moments)
    (values,) = rows(connection, f"SELECT {listed}")
    return dict(zip(moments, map(int, values), strict=True))


def _has(zone: ZoneInfo, offsets: Mapping[int, int]) -> bool:
    return all(_offset(zone, at) == seconds for at, seconds in offsets.items())


def _changes(zone: ZoneInfo) -> Iterator[int]:
    """Yield the last second before each change of the zone's offset, and the first behind it."""
    for before, behind in pairwise(_MOMENTS):
        first = _offset(zone, before)
        if first == _offset(zone, behind):
            continue
        while behind - before > 1:
            middle = (before + behind) // 2
            before, behind = (middle, behind) if _offset(zone, middle) == first else (before, middle)
        yield from (before, behind)


def _offset(zone: ZoneInfo, at: int) -> int:
    offset = datetime.fromtimestamp(at, UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return round(offset.total_seconds())


def offset_text(seconds: int) -> str:
    """Return an offset as servers write it (`+02:00`), without what is left of a minute."""
    sign, minutes = "-" if seconds < 0 else "+", abs(seconds) // 60
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"
