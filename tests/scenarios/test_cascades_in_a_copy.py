"""Rows that a cascading foreign key changes while their tables are copied without a lock: MariaDB does not log them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.copied_meanwhile import copied_meanwhile
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

MEANWHILE = {
    "DELETE": "DELETE FROM {s}.{parent} WHERE id = 1",
    "DELETE, and the rows come back": "DELETE FROM {s}.{parent} WHERE id = 1; INSERT INTO {s}.{parent} VALUES (1);"
    "INSERT INTO {s}.{child} VALUES (11, 1)",
    "UPDATE of the key": "UPDATE {s}.{parent} SET id = 3 WHERE id = 1",
}


@pytest.mark.parametrize(
    "names",
    [pytest.param(("a_parent", "z_child"), marks=pytest.mark.scenarios), ("z_parent", "a_child")],
    ids=["parent first", "child first"],
)
@pytest.mark.parametrize("script", MEANWHILE.values(), ids=MEANWHILE)
@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
def test_both_tables_are_as_in_the_source(
    action: str,
    script: str,
    names: tuple[str, str],
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    """One table comes before and one behind m, for which the dump waits while the rows change."""
    parent, child = names
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.{parent} (id INT PRIMARY KEY)",
        f"CREATE TABLE {schema}.{child} (id INT PRIMARY KEY, p INT,"
        f" FOREIGN KEY (p) REFERENCES {parent} (id) ON DELETE {action} ON UPDATE {action})",
        f"CREATE TABLE {schema}.m (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.{parent} VALUES (1), (2)",
        f"INSERT INTO {schema}.{child} VALUES (10, 1), (20, 2)",
    )
    target = {"host": "127.0.0.1", "user": "root", "port": target_server.port, "session": {"foreign_key_checks": 1}}
    text = script.format(s=schema, parent=parent, child=child)
    more = {"target-database": target}
    copied_meanwhile(text, spark, source_server, target_server, (schema,), tmp_path, more)
