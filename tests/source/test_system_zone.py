"""The zone of a server's host is found by its offsets."""

from __future__ import annotations

from contextlib import closing

import pytest

from unshard.mysql.connection import rows
from unshard.source.system_zone import system_zone
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("Asia/Kolkata", "+05:30"),
        ("America/St_Johns", "America/St_Johns"),
        ("XYZ5", "-05:00"),
        ("XYZ5ABC,M1.1.0,M2.1.0", "SYSTEM"),
    ],
)
def test_the_zone_of_the_host(host: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one has a summer that no place on Earth has."""
    monkeypatch.setenv("TZ", host)
    with MariadbServer() as server, closing(server.connection()) as connection:
        assert system_zone(connection) == found
        assert rows(connection, "SELECT @@session.time_zone") == [("+00:00",)]
