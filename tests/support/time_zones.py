"""Names of time zones in a server, which has none until somebody loads them, as mysql_tzinfo_to_sql does it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

_HOUR = 3600
_END = 2_145_916_800
"""2038"""


@contextmanager
def server_of(host_zone: str) -> Iterator[MariadbServer]:
    """A server whose host has this time zone, until the end of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", host_zone)
        with MariadbServer() as server:
            yield server


@contextmanager
def server_that_knows(zone: str) -> Iterator[MariadbServer]:
    """A server with the name of this time zone, until the end of the block."""
    with MariadbServer() as server:
        load_zone(server, zone)
        yield server


def load_zone(server: ThrowawayServer, name: str) -> None:
    """Load one zone: its changes of whole hours, from 1970 to 2037."""
    zone = ZoneInfo(name)

    def rule(at: int) -> tuple[int, int, str]:
        then = datetime.fromtimestamp(at, UTC).astimezone(zone)
        offset, summer = then.utcoffset(), then.dst()
        assert offset is not None
        return round(offset.total_seconds()), int(bool(summer)), then.tzname() or ""

    rules = [rule(at) for at in range(0, _END, _HOUR)]
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(rules))}
    changes = [
        (at, rules[at // _HOUR]) for at in range(_HOUR, _END, _HOUR) if rules[at // _HOUR] != rules[at // _HOUR - 1]
    ]
    moments = [(0, rules[0]), *changes]
    statements = [
        "INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N')",
        "SET @id = LAST_INSERT_ID()",
        f"INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('{name}', @id)",
        "INSERT INTO mysql.time_zone_transition_type VALUES "
        + ", ".join(f"(@id, {number}, {offset}, {dst}, '{short}')" for (offset, dst, short), number in kinds.items()),
        "INSERT INTO mysql.time_zone_transition VALUES "
        + ", ".join(f"(@id, {at}, {kinds[kind]})" for at, kind in moments),
    ]
    server.run(*statements)
