"""Which server it is, and where its binlog stands."""

from __future__ import annotations

import pytest

from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.mysql.flavour import (
    Flavour,
    binary_logs,
    current_location,
    executed_gtids,
    flavour_of,
    gtid_at,
    gtid_before,
    identify,
    version_of,
)
from unshard.testing.mariadb_server import MariadbServer


@pytest.mark.parametrize(
    ("text", "flavour", "version"),
    [
        ("10.11.6-MariaDB-0+deb12u1-log", "mariadb", (10, 11, 6)),
        ("5.5.5-10.4.1-MariaDB", "mariadb", (10, 4, 1)),
        ("8.0.36", "mysql", (8, 0, 36)),
        ("9.7.4-2", "mysql", (9, 7, 4)),
        ("5.7.25-TiDB-v7.5.0", "mysql", (5, 7, 25)),
    ],
)
def test_versions(text: str, flavour: str, version: tuple[int, int, int]) -> None:
    assert (flavour_of(text), version_of(text)) == (flavour, version)


@pytest.mark.server
def test_a_mariadb_server(source_server: MariadbServer, schema: str) -> None:
    source_server.run(f"CREATE DATABASE {schema}", "FLUSH BINARY LOGS")
    with session(source_server.endpoint, "source") as connection:
        server = identify(connection)
        begun = gtid_before(connection, server, binary_logs(connection)[-1].name)
        source_server.run(f"CREATE TABLE {schema}.t (id INT)")
        here = current_location(connection, server)
        newest = executed_gtids(connection, server)
        assert (server.flavour, server.uuid) == (Flavour.MARIADB, f"0-{server.server_id}")
        assert here is not None
        assert here.gtid == newest
        assert here.position == Position(binary_logs(connection)[-1].name, here.position.offset)
        assert begun == server.gtid_set(gtid_at(connection, Position(here.position.file)))
        assert server.gtid_set(newest).contains(begun)  # type: ignore[arg-type]
        assert not begun.contains(server.gtid_set(newest))  # type: ignore[arg-type]
