"""Changes with the error value of an ENUM, carried to a server whose sessions are strict."""

from __future__ import annotations

from collections.abc import Sequence

from support.log_to_target import Carrier, Way
from unshard.testing.throwaway_server import ThrowawayServer

TABLES = {
    "keyed": "(id INT PRIMARY KEY, e ENUM('a','b'), f ENUM('x') NOT NULL, w VARCHAR(3))",
    "several": "(id INT PRIMARY KEY, n INT UNIQUE, e ENUM('a','b') NOT NULL, f ENUM('x'), w VARCHAR(3) UNIQUE)",
    "in_key": "(id INT, e ENUM('a','b') NOT NULL, w VARCHAR(3), PRIMARY KEY (e, id))",
    "alone": "(e ENUM('a','b') PRIMARY KEY, w VARCHAR(3))",
    "bare": "(id INT, e ENUM('a','b'), w VARCHAR(3))",
    "has_empty": "(id INT PRIMARY KEY, e ENUM('a',''), f ENUM('','0','bb') NOT NULL, w VARCHAR(3) UNIQUE)",
    "bare_empty": "(id INT, e ENUM('','b') CHARACTER SET latin1, w VARCHAR(3))",
}
COLUMNS = {
    "keyed": "id, e, f, w",
    "several": "id, n, e, f, w",
    "in_key": "id, e, w",
    "alone": "1 AS id, e, w",
    "bare": "id, e, w",
    "has_empty": "id, e, f, f + 0, w",
    "bare_empty": "id, e, w",
}


def carry_error_values(source: ThrowawayServer, target: ThrowawayServer, schema: str, ways: Sequence[Way]) -> Carrier:
    """Both ends show the same numbers, text and rows in the end; the carrier, still open."""
    for server in (source, target):
        server.run(f"CREATE DATABASE {schema}")
        server.run(*(f"CREATE TABLE {name} {columns}" for name, columns in TABLES.items()), database=schema)
    carrier = Carrier(source, target, schema)
    source.run(
        "SET sql_mode = ''",
        "INSERT INTO keyed VALUES (1, 'no', 'no', 'a'), (2, 'a', 'x', 'b'), (3, NULL, 'no', NULL), (4, 'b', 'x', '')",
        "UPDATE keyed SET e = 'no', f = 'no' WHERE id IN (2, 4)",
        "UPDATE keyed SET e = 'a' WHERE id = 1",
        "DELETE FROM keyed WHERE id = 4",
        "INSERT INTO several VALUES (1, 1, 'a', 'x', 'a'), (2, 2, 'no', 'no', 'b'), (3, 3, 'b', NULL, 'c')",
        "UPDATE several SET e = 'no' WHERE id IN (1, 3)",
        "UPDATE several SET n = n + 10",
        "UPDATE several SET n = 1 WHERE id = 3",
        "INSERT INTO in_key VALUES (1, 'no', 'a'), (2, 'a', 'b'), (3, 'no', 'c')",
        "UPDATE in_key SET e = 'no', w = 'd' WHERE id = 2",
        "UPDATE in_key SET w = 'e' WHERE id = 1",
        "DELETE FROM in_key WHERE id = 3",
        "INSERT INTO alone VALUES ('no', 'a'), ('a', 'b')",
        "UPDATE alone SET w = 'c'",
        "UPDATE alone SET e = 'b' WHERE w = 'c' AND e = 'a'",
        "DELETE FROM alone WHERE e + 0 = 0",
        "UPDATE alone SET e = 'no'",
        "INSERT INTO bare VALUES (1, 'no', 'a'), (1, 'a', 'a'), (2, 'no', 'b')",
        "UPDATE bare SET w = 'c' WHERE id = 1",
        "DELETE FROM bare WHERE id = 2",
        "INSERT INTO has_empty VALUES (1, 'no', 'no', 'a'), (2, '', '', 'b'), (3, NULL, '0', 'c'), (4, 'a', 'bb', 'd')",
        "UPDATE has_empty SET e = 'no', f = 'no' WHERE id = 4",
        "UPDATE has_empty SET e = '', f = '0' WHERE id = 1",
        "INSERT INTO bare_empty VALUES (1, 'no', 'a'), (1, '', 'a'), (1, NULL, 'a'), (2, 'no', 'b'), (3, '', 'b')",
        "UPDATE bare_empty SET w = 'c' WHERE id = 1 AND e + 0 = 0",
        "DELETE FROM bare_empty WHERE id = 2 OR e = 1",
        database=schema,
    )
    for way in ways:
        target.run(*(f"DELETE FROM {schema}.{name}" for name in TABLES))
        carrier.carry(way)
        for name, columns in COLUMNS.items():
            query = f"SELECT {columns}, e + 0 FROM {schema}.{name} ORDER BY id, w, e"
            assert target.query(query) == source.query(query), (name, way)
    return carrier
