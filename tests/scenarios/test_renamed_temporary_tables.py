"""MariaDB logs the RENAME of a temporary table as that of a real one, whose name it may hide from its session."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.source_traits import read_traits

pytestmark = [pytest.mark.server, pytest.mark.spark]

LATER = "SET TIMESTAMP = UNIX_TIMESTAMP() + 1000"
"""So that all tables are as old as tables are."""


@pytest.fixture
def files(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    source_server.run(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {schema}.{name} (id INT PRIMARY KEY, v VARCHAR(20))" for name in ("t", "u", "w")),
        *(f"INSERT INTO {schema}.{name} VALUES (1, '{name}')" for name in ("t", "u", "w")),
    )
    return TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()


@pytest.mark.parametrize(
    ("statements", "left"),
    [
        (["CREATE TEMPORARY TABLE t (x INT)", LATER, "RENAME TABLE t TO t2"], "t u w"),
        (["CREATE TEMPORARY TABLE t (x INT)", LATER, "RENAME TABLE t TO t2, t2 TO t3"], "t u w"),
        (["CREATE TEMPORARY TABLE t (x INT)", LATER, "RENAME TABLE u TO u2, t TO t2, w TO w2"], "t u2 w2"),
        ([LATER, "RENAME TABLE t TO x, u TO t, x TO u"], "t u w"),
        ([LATER, "RENAME TABLE t TO t2"], "t2 u w"),
        (["RENAME TABLE t TO t2", "CREATE TABLE t LIKE t2", "DROP TABLE t2"], "t u w"),
    ],
)
def test_the_real_table_keeps_its_name(
    statements: list[str],
    left: str,
    files: TaskFiles,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    spark: SparkSession,
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    source_server.run(*statements, database=schema)
    source_server.run(*(f"INSERT INTO {schema}.{name} VALUES (2, 'later')" for name in left.split()))
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert sorted(name for (name,) in target_server.query(f"SHOW TABLES FROM {schema}")) == left.split()
    for name in left.split():
        table = TableName(schema, name)
        assert_equal([(source_server, table)], (target_server, table))


def test_the_real_table_is_renamed_later(
    files: TaskFiles, source_server: MariadbServer, target_server: MariadbServer, schema: str, spark: SparkSession
) -> None:
    with (
        closing(source_server.connection(schema)) as connection,
        connection.cursor() as cursor,
        TaskRun(files, spark) as run,
    ):
        run.catch_up()
        for statement in ("CREATE TEMPORARY TABLE t (x INT)", LATER, "RENAME TABLE t TO t2"):
            cursor.execute(statement)
        run.catch_up()
        cursor.execute("RENAME TABLE t TO t3")
        run.catch_up()
    assert target_server.query(f"SHOW TABLES FROM {schema}") == [("t3",), ("u",), ("w",)]
    assert target_server.query(f"SELECT v FROM {schema}.t3") == [("t",)]


def test_a_source_that_is_away_is_not_waited_for(schema: str) -> None:
    """The statement is then what it looks like; a real table's, as nearly always."""
    old, new = TableName(schema, "t"), TableName(schema, "t2")
    with MariadbServer() as server:
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {old} (id INT PRIMARY KEY)")
        traits = read_traits(server.endpoint)
        assert traits.keeps_name(old, new, time.time() + 1000)
        assert not traits.keeps_name(old, new, time.time())
        assert not traits.keeps_name(new, old, time.time() + 1000)
        server.stop()
        assert not traits.keeps_name(old, new, time.time() + 1000)
