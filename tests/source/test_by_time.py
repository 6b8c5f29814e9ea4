"""Where a start by time begins: the first transaction of that second, over several files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.server_clock import next_second
from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.mysql.flavour import identify
from unshard.source.position_at import position_at
from unshard.source.replica import Idle, Piece, ReplicaStream
from unshard.testing.mariadb_server import MariadbServer


def place(server: MariadbServer) -> Position:
    ((file, offset, *_),) = server.query("SHOW MASTER STATUS")
    return Position(str(file), int(offset))


def first_transaction(server: MariadbServer, behind: Position) -> Position:
    """A rotation may write an event of its own later: the transaction need not begin at `behind`."""
    events = server.query(f"SHOW BINLOG EVENTS IN '{behind.file}' FROM {behind.offset}")
    return Position(behind.file, next(int(at) for _, at, kind, *_ in events if kind == "Gtid"))


def test_the_first_transaction_from_a_moment_on(source_server: MariadbServer, schema: str) -> None:
    server = source_server
    server.query(f"CREATE DATABASE {schema}")
    server.query(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    found: list[tuple[Position, int]] = []
    for number in range(3):
        next_second(server)
        if number:
            server.query("FLUSH BINARY LOGS")
        ((moment,),) = server.query("SELECT UNIX_TIMESTAMP()")
        before = place(server)
        server.query(f"INSERT INTO {schema}.t VALUES ({number})")
        found.append((first_transaction(server, before), int(moment)))
        server.query(f"INSERT INTO {schema}.t VALUES ({number + 100})")
    with session(server.endpoint, "source") as connection:
        known = identify(connection)
        for position, moment in found:
            assert position_at(server.endpoint, connection, known, moment - 0.5) == position
        assert position_at(server.endpoint, connection, known, moment + 1000) is None


def test_a_source_that_falls_silent_on_the_way_is_waited_for(
    source_server: MariadbServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = source_server
    server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)", "FLUSH BINARY LOGS")
    pieces = ReplicaStream.pieces

    def haltingly(stream: ReplicaStream, idle_seconds: float) -> Iterator[Piece]:
        yield Idle()
        for piece in pieces(stream, idle_seconds):
            yield piece
            yield Idle()

    with session(server.endpoint, "source") as connection:
        ((moment,),) = server.query("SELECT UNIX_TIMESTAMP()")
        server.run(f"INSERT INTO {schema}.t VALUES (1)")
        known = identify(connection)
        found = position_at(server.endpoint, connection, known, moment)
        monkeypatch.setattr(ReplicaStream, "pieces", haltingly)
        assert position_at(server.endpoint, connection, known, moment) == found is not None
