"""Where a start by time begins at a MySQL 5.6 without GTIDs, which logs no event before a transaction's first one."""

from __future__ import annotations

from support.server_clock import next_second
from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.mysql.flavour import identify
from unshard.source.position_at import position_at
from unshard.testing.mysql_server import Mysql56Server


def test_the_first_transaction_from_a_moment_on() -> None:
    with Mysql56Server({"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}) as server:
        server.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
        found: list[tuple[Position, int]] = []
        for number, statement in enumerate(("INSERT INTO d.t VALUES (1)", "CREATE TABLE d.u (x INT)")):
            next_second(server)
            if number:
                server.run("FLUSH BINARY LOGS")
            ((moment,),) = server.query("SELECT UNIX_TIMESTAMP()")
            ((file, _, *_),) = server.query(server.position_query)
            server.run(statement)
            events = server.query(f"SHOW BINLOG EVENTS IN '{file}'")
            begins = [int(at) for _, at, kind, _, _, text in events if kind == "Query" and text != "COMMIT"]
            found.append((Position(str(file), begins[-1]), int(moment)))
            server.run(f"INSERT INTO d.t VALUES ({number + 100})")
        with session(server.endpoint, "source") as connection:
            known = identify(connection)
            for position, moment in found:
                assert position_at(server.endpoint, connection, known, moment - 0.5) == position
            assert position_at(server.endpoint, connection, known, moment + 1000) is None
