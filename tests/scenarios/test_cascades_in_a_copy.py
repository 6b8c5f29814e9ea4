"""Rows that a cascading foreign key changes while their tables are copied without a lock: MariaDB does not log them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

MEANWHILE = {
    "DELETE": "DELETE FROM {s}.{parent} WHERE id = 1",
    "DELETE, and the rows come back": "DELETE FROM {s}.{parent} WHERE id = 1; INSERT INTO {s}.{parent} VALUES (1);"
    "INSERT INTO {s}.{child} VALUES (11, 1)",
    "UPDATE of the key": "UPDATE {s}.{parent} SET id = 3 WHERE id = 1",
}


@pytest.mark.parametrize(
    "names", [("a_parent", "z_child"), ("z_parent", "a_child")], ids=["parent first", "child first"]
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
    keys = {
        "mydumpers": {"own": {"threads": 1}},
        "target-database": {
            "host": "127.0.0.1",
            "user": "root",
            "port": target_server.port,
            "session": {"foreign_key_checks": 1},
        },
    }
    instance = {"mydumper-config-name": "own"}
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,), keys, instance).write()
    held = source_server.connection()
    held.query(f"LOCK TABLES {schema}.m WRITE")
    with TaskRun(files, spark) as run:
        (subtask,) = run.crew.subtasks

        def one_is_copied() -> bool:
            assert not run.crew.errors, run.crew.errors
            progress = subtask.status().progress
            return progress is not None and progress.tables_done > 0

        try:
            wait_until(one_is_copied, "the first table is copied")
            text = script.format(s=schema, parent=parent, child=child)
            source_server.run(*(one for one in text.split(";") if one.strip()))
        finally:
            held.close()
        run.catch_up()
    for table in (*names, "m"):
        name = TableName(schema, table)
        assert_equal([(source_server, name)], (target_server, name))
