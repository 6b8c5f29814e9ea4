"""Statements that lie between the snapshots of their tables, in a copy without a lock: the copy ends, and is equal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.copied_meanwhile import copied_meanwhile
from unshard.dump import folder, plan, unit
from unshard.dump.plan import snapshot_groups
from unshard.model.table import TableName
from unshard.mysql import structure
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(9))"
CROSSING = {
    "names are swapped": "RENAME TABLE {s}.a TO {s}.x, {s}.z TO {s}.a, {s}.x TO {s}.z",
    "names change hands twice": "RENAME TABLE {s}.a TO {s}.x, {s}.z TO {s}.a, {s}.x TO {s}.z;"
    "INSERT INTO {s}.a VALUES (77, 'a'); INSERT INTO {s}.z VALUES (88, 'z');"
    "RENAME TABLE {s}.a TO {s}.x, {s}.z TO {s}.a, {s}.x TO {s}.z",
    "a chain of names": "RENAME TABLE {s}.a TO {s}.b, {s}.z TO {s}.a; INSERT INTO {s}.b VALUES (77, 'b')",
    "a table gets a new name": "RENAME TABLE {s}.z TO {s}.y; INSERT INTO {s}.y VALUES (77, 'y')",
    "a table gets a new name and goes": "RENAME TABLE {s}.z TO {s}.y; INSERT INTO {s}.y VALUES (77, 'y');"
    "DROP TABLE {s}.y",
    "a table gets a copied one's name": "DROP TABLE {s}.a; RENAME TABLE {s}.z TO {s}.a;"
    "INSERT INTO {s}.a VALUES (77, 'a')",
    "a copied table gets its name": "DROP TABLE {s}.z; RENAME TABLE {s}.a TO {s}.z; INSERT INTO {s}.z VALUES (77, 'z')",
    "several are dropped": "DROP TABLE {s}.a, {s}.z; CREATE TABLE {s}.z (id INT PRIMARY KEY, other INT);"
    "INSERT INTO {s}.z VALUES (1, 2)",
    "one that was not copied is dropped": "INSERT INTO {s}.z VALUES (77, 'z'); DROP TABLE {s}.z",
    "one is made like another": "CREATE TABLE {s}.b LIKE {s}.z; INSERT INTO {s}.b VALUES (1, 'b');"
    "ALTER TABLE {s}.z DROP COLUMN v",
    "one is made of another's rows": "CREATE TABLE {s}.b SELECT * FROM {s}.z; ALTER TABLE {s}.z DROP COLUMN v",
    "partitions are exchanged": "CREATE TABLE {s}.p (id INT PRIMARY KEY, v VARCHAR(9)) PARTITION BY RANGE (id)"
    " (PARTITION p0 VALUES LESS THAN (1000)); ALTER TABLE {s}.p EXCHANGE PARTITION p0 WITH TABLE {s}.z;"
    "INSERT INTO {s}.z VALUES (77, 'z')",
    "a schema goes and comes back": "DROP DATABASE {s}_z; CREATE DATABASE {s}_z; CREATE TABLE {s}_z.t (w INT);"
    "INSERT INTO {s}_z.t VALUES (77)",
    "a table moves to a new schema": "CREATE DATABASE {s}_n; RENAME TABLE {s}.z TO {s}_n.z;"
    "INSERT INTO {s}_n.z VALUES (77, 'z')",
}
MOST_TELLING = {"names change hands twice", "a table gets a new name and goes", "one is made like another"}


def filled(source: MariadbServer, schema: str, names: Iterable[str]) -> None:
    """Make the schema, and in each table two rows that have its name."""
    source.run(f"CREATE DATABASE {schema}")
    for name in names:
        rows = f"INSERT INTO {schema}.{name} VALUES (1, '{name}'), (2, '{name}')"
        source.run(f"CREATE TABLE {schema}.{name} {COLUMNS}", rows)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=name, marks=() if name in MOST_TELLING else pytest.mark.scenarios)
        for name, script in CROSSING.items()
    ],
)
def test_the_copy_ends_with_what_the_source_has(
    script: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    """Table a is copied before, z behind; the dump waits for m meanwhile."""
    schemas = (schema, f"{schema}_z", f"{schema}_n")
    filled(source_server, schema, "amz")
    source_server.run(
        f"CREATE DATABASE {schema}_z",
        *(f"CREATE TABLE {schema}_z.{table} {COLUMNS}" for table in "st"),
        f"INSERT INTO {schema}_z.t VALUES (1, 't')",
    )
    copied_meanwhile(script, spark, source_server, target_server, schemas, tmp_path)


@pytest.mark.parametrize(
    "script",
    [
        CROSSING["names change hands twice"],
        *(
            pytest.param(script, marks=pytest.mark.scenarios)
            for script in (
                CROSSING["a table gets a copied one's name"],
                CROSSING["several are dropped"],
                CROSSING["one is made like another"],
                "RENAME TABLE {s}.a TO {s}.x, {s}.aa1 TO {s}.a, {s}.x TO {s}.aa1; INSERT INTO {s}.aa1 VALUES (77, 'a')",
                "RENAME TABLE {s}.zz1 TO {s}.x, {s}.zz2 TO {s}.zz1, {s}.x TO {s}.zz2;"
                "INSERT INTO {s}.zz1 VALUES (77, 'z')",
                "RENAME TABLE {s}.l1 TO {s}.x, {s}.n1 TO {s}.l1, {s}.x TO {s}.n1; INSERT INTO {s}.l1 VALUES (77, 'l')",
            )
        ),
    ],
)
def test_of_many_small_tables_too(
    script: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The statements cross two groups, or are behind one, before one, or in the one of the table that is waited for."""
    sizes: set[int] = set()

    def seen(*given: Any) -> list[tuple[TableName, ...]]:
        groups = snapshot_groups(*given)
        sizes.update(map(len, groups))
        return groups

    monkeypatch.setattr(unit, "snapshot_groups", seen)
    names = [f"{letters}{number}" for letters in ("aa", "l", "n", "zz") for number in range(12)] + ["a", "m", "z"]
    filled(source_server, schema, names)
    copied_meanwhile(script, spark, source_server, target_server, (schema,), tmp_path)
    assert 6 in sizes


@pytest.mark.parametrize(
    "script",
    [
        "ALTER TABLE {s}.b MODIFY v TEXT",
        "ALTER TABLE {s}.b ADD COLUMN w INT DEFAULT 7; ALTER TABLE {s}.b DROP COLUMN v",
        "RENAME TABLE {s}.b TO {s}.c",
        "RENAME TABLE {s}.b TO {s}.x, {s}.a TO {s}.b, {s}.x TO {s}.a",
        "CREATE TABLE {s}.c LIKE {s}.b; INSERT INTO {s}.c VALUES (5, 'c'); ALTER TABLE {s}.b DROP COLUMN v",
        "CREATE INDEX v ON {s}.b (v)",
        "DROP TABLE {s}.b",
    ],
)
@pytest.mark.scenarios
def test_a_table_that_is_not_listed_is_copied(
    script: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it is in the moment in which MariaDB changes its files: neither time that the dump lists the tables.

    A statement of the log names it.
    """
    hidden = TableName(schema, "b")
    listing, names = plan.list_tables, structure.table_names
    monkeypatch.setattr(
        folder, "list_tables", lambda *asked: tuple(one for one in listing(*asked) if one.name != hidden)
    )
    monkeypatch.setattr(unit, "table_names", lambda asked: tuple(name for name in names(asked) if name != hidden))
    filled(source_server, schema, "abmz")
    copied_meanwhile(script, spark, source_server, target_server, (schema,), tmp_path)
