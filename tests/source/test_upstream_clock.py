"""A local time of the source's zone in UTC, asked of the source itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.source_clock import utc_of

pytestmark = pytest.mark.server

SUMMER, WINTER = 1711846800, 1729990800  # 2024-03-31 and 2024-10-27, each at 01:00 in UTC


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbServer]:
    """Its zone `Here` is an hour before UTC, two in the summer of 2024."""
    with MariadbServer() as found:
        found.run(
            "INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (9999, 'N')",
            "INSERT INTO mysql.time_zone_name VALUES ('Here', 9999)",
            "INSERT INTO mysql.time_zone_transition_type VALUES (9999, 0, 3600, 0, 'W'), (9999, 1, 7200, 1, 'S')",
            f"INSERT INTO mysql.time_zone_transition VALUES (9999, 0, 0), (9999, {SUMMER}, 1), (9999, {WINTER}, 0)",
        )
        yield found


@pytest.mark.parametrize(
    ("zone", "local", "utc"),
    [
        ("+05:30", "2024-05-01 00:00:00", "2024-04-30 18:30:00"),
        ("-03:00", "2024-05-01 00:00:00", "2024-05-01 03:00:00"),
        ("Here", "2024-05-01 00:00:00", "2024-04-30 22:00:00"),
        ("Here", "2024-12-01 00:00:00", "2024-11-30 23:00:00"),
        ("Here", "2024-03-31 01:59:59", "2024-03-31 00:59:59"),
        ("Here", "2024-03-31 02:30:00", None),
        ("Here", "2024-03-31 03:00:00", "2024-03-31 01:00:00"),
        ("Here", "2024-10-27 01:59:59", "2024-10-26 23:59:59"),
        ("Here", "2024-10-27 02:30:00", None),
        ("Here", "2024-10-27 03:00:00", "2024-10-27 02:00:00"),
        ("+00:00", "1000-01-01 00:00:00", None),
        ("+00:00", "9999-12-31 00:00:00", None),
    ],
)
def test_a_local_time(server: MariadbServer, zone: str, local: str, utc: str | None) -> None:
    server.run(f"SET GLOBAL time_zone = '{zone}'")
    assert utc_of(server.endpoint, local) == utc
