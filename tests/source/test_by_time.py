"""Where a start by time begins: the first transaction of that second, over several files."""

from __future__ import annotations

import time

from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.mysql.flavour import identify
from unshard.source.by_time import position_at
from unshard.testing.servers import MariadbServer


def place(server: MariadbServer) -> Position:
    ((file, offset, *_),) = server.query("SHOW MASTER STATUS")
    return Position(str(file), int(offset))


def test_the_first_transaction_from_a_moment_on(source_server: MariadbServer, schema: str) -> None:
    server = source_server
    server.query(f"CREATE DATABASE {schema}")
    server.query(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    found: list[tuple[Position, int]] = []
    for number in range(3):
        time.sleep(1.1)
        if number:
            server.query("FLUSH BINARY LOGS")
        ((moment,),) = server.query("SELECT UNIX_TIMESTAMP()")
        found.append((place(server), int(moment)))
        server.query(f"INSERT INTO {schema}.t VALUES ({number})")
        server.query(f"INSERT INTO {schema}.t VALUES ({number + 100})")
    with session(server.endpoint, "source") as connection:
        known = identify(connection)
        for position, moment in found:
            assert position_at(server.endpoint, connection, known, moment - 0.5) == position
        assert position_at(server.endpoint, connection, known, moment + 1000) is None
