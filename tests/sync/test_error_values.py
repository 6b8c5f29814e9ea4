"""The error value of an ENUM arrives as it is, and lets nothing else pass that a strict session would refuse."""

from __future__ import annotations

import pytest

from support.error_values import TABLES, carry_error_values
from support.log_to_target import Carrier, Way
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server
AGAIN = "(id INT PRIMARY KEY, e ENUM('a',''), f ENUM('x','y') NOT NULL, w VARCHAR(9))"
WAYS = (Way(), Way(budget=1), Way(multiple_rows=False), Way(compact=False, twice=True), Way(exchange="shuffled"))


def test_error_values_of_enums(source_server: MariadbServer, target_server: ThrowawayServer, schema: str) -> None:
    carrier = carry_error_values(source_server, target_server, schema, WAYS)
    target_server.run(
        *(f"DELETE FROM {schema}.{name}" for name in TABLES),
        *(["SET GLOBAL tidb_enable_check_constraint = ON"] if isinstance(target_server, TidbServer) else []),
        f"ALTER TABLE {schema}.keyed ADD CHECK (w <> 'zz')",
    )
    source_server.run(f"INSERT INTO {schema}.keyed VALUES (9, 'a', 'x', 'zz')")
    with pytest.raises(UnshardError, match="SYNC-004"):
        carrier.carry(Way(compact=False, budget=1))
    carrier.close()
    if isinstance(target_server, TidbServer):
        target_server.run("SET GLOBAL tidb_enable_check_constraint = OFF")


@pytest.mark.parametrize("way", [*WAYS, Way(partitions=3, shares=2)])
def test_a_row_that_is_deleted_and_comes_again_in_one_batch(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, way: Way
) -> None:
    """Of a table whose ENUM has an empty member: an UPDATE in the target, whichever change of the row was the first."""
    rows = ", ".join(f"({n}, '', 'x', 'a')" for n in range(20, 30))
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.again {AGAIN}")
        server.run(f"INSERT INTO {schema}.again VALUES {rows}")
    carrier = Carrier(source_server, target_server, schema)
    source_server.run(
        "BEGIN",
        f"DELETE FROM {schema}.again WHERE id IN (20, 21, 22)",
        f"INSERT INTO {schema}.again VALUES (20, 'a', 'y', 'b'), (21, 'a', 'x', 'a')",
        f"UPDATE {schema}.again SET w = 'c' WHERE id = 21",
        f"REPLACE INTO {schema}.again VALUES (23, 'a', 'y', 'd'), (40, '', 'x', 'new')",
        f"UPDATE {schema}.again SET id = 41, w = 'moved' WHERE id = 24",
        f"UPDATE {schema}.again SET w = 'later' WHERE id IN (40, 41)",
        f"UPDATE {schema}.again SET id = 22 WHERE id = 25",
        "COMMIT",
    )
    carrier.carry(way)
    query = f"SELECT * FROM {schema}.again ORDER BY id"
    assert target_server.query(query) == source_server.query(query)
    carrier.close()


def test_what_else_a_strict_session_refuses_is_refused(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str
) -> None:
    """Both in one list of rows: the first is an error value, the second too large for the target."""
    carrier = carry_error_values(source_server, target_server, schema, ())
    target_server.run(f"ALTER TABLE {schema}.bare MODIFY id TINYINT")
    source_server.run(
        "SET sql_mode = ''",
        f"INSERT INTO {schema}.bare VALUES (1, 'no', 'a'), (1000, 'a', 'b')",
    )
    with pytest.raises(UnshardError, match="SYNC-004"):
        carrier.carry(Way())
    assert target_server.query(f"SELECT COUNT(*) FROM {schema}.bare WHERE id = 127") == [(0,)]
    carrier.close()


def test_what_else_an_update_would_change_is_refused(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str
) -> None:
    """One of its values is an error value, the other too long for the target. TiDB does not name the ENUM's column."""
    carrier = carry_error_values(source_server, target_server, schema, ())
    for server, length in ((source_server, 3), (target_server, 1)):
        server.run(
            f"CREATE TABLE {schema}.flags (id INT PRIMARY KEY, u INT UNIQUE, e ENUM('a'), w VARCHAR({length}))",
            f"INSERT INTO {schema}.flags VALUES (1, 1, 'a', 'p'), (2, 2, 'a', 'p')",
        )
    carrier.begin = carrier.now()
    source_server.run("SET sql_mode = ''", f"UPDATE {schema}.flags SET e = 'no' WHERE id = 1")
    carrier.carry(Way())
    assert target_server.query(f"SELECT e, e + 0 FROM {schema}.flags WHERE id = 1") == [("", 0)]
    carrier.begin = carrier.now()
    source_server.run("SET sql_mode = ''", f"UPDATE {schema}.flags SET e = 'no', w = 'pq' WHERE id = 2")
    with pytest.raises(UnshardError, match="SYNC-004"):
        carrier.carry(Way())
    assert target_server.query(f"SELECT e, w FROM {schema}.flags WHERE id = 2") == [("a", "p")]
    carrier.close()
