"""Tables with foreign keys that change rows by themselves, and random changes of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import MySQLdb

from support.log_to_target import Carrier, Way
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway_server import ThrowawayServer

TABLES = {
    "parent": "(id INT PRIMARY KEY, v INT)",
    "child": "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "grandchild": "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES child (id) ON DELETE CASCADE)",
    "loose": "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL)",
    "strict": "(id INT PRIMARY KEY, p INT UNIQUE, FOREIGN KEY (p) REFERENCES grandchild (id))",
    "tree": "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES tree (id) ON DELETE CASCADE)",
    "bare": "(id INT, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
}


def carry_families(
    source: ThrowawayServer, target: ThrowawayServer, schema: str, ways: Sequence[Way], *, foreign_keys: bool
) -> None:
    """Random changes of all of the tables, carried in these ways: no change may find no row."""
    for server in (source, target):
        server.run(f"CREATE DATABASE {schema}")
        server.run(*(f"CREATE TABLE {name} {columns}" for name, columns in TABLES.items()), database=schema)
    carrier = Carrier(source, target, schema, foreign_keys=foreign_keys)
    assert _change(source, schema, random.Random(5)) > 200
    try:
        for way in ways:
            target.run("SET foreign_key_checks = 0", *(f"DELETE FROM {schema}.{name}" for name in TABLES))
            carrier.carry(way)
            for name in TABLES:
                place = TableName(schema, name)
                assert_equal([(source, place)], (target, place))
    finally:
        carrier.close()


def _change(source: ThrowawayServer, schema: str, chosen: random.Random) -> int:
    """How many of the statements the source took."""
    connection: Any = source.connection(schema)
    done = 0
    with connection.cursor() as cursor:
        for number in range(700):
            try:
                cursor.execute(_statement(chosen, number))
                done += 1
            except MySQLdb.Error:
                continue
        cursor.execute("COMMIT")
    connection.close()
    return done


def _statement(chosen: random.Random, number: int) -> str:
    table = chosen.choice(list(TABLES))
    one, other = chosen.randint(1, 12), chosen.randint(1, 12)
    kind = chosen.random()
    if kind < 0.06:
        return chosen.choice(("BEGIN", "COMMIT", "ROLLBACK"))
    if kind < 0.5:
        second = "NULL" if table == "tree" and chosen.random() < 0.5 else other
        return f"INSERT INTO {table} VALUES ({one}, {second}), ({one + 20}, {second})"
    if kind < 0.6:
        return f"UPDATE {table} SET id = {other + chosen.choice((0, 20, 40))} WHERE id = {one}"
    if kind < 0.75:
        column = "v" if table == "parent" else "p"
        return f"UPDATE {table} SET {column} = {other if column == 'p' else number} WHERE id < {one}"
    return f"DELETE FROM {table} WHERE id BETWEEN {one} AND {one + chosen.choice((0, 0, 2, 20))}"
