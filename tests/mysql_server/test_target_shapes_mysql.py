"""Targets of another shape than their sources, and a row that is not found, with MySQL at both ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.errors import UnshardError
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

SOURCE = "(id INT PRIMARY KEY, n INT NOT NULL UNIQUE, v VARCHAR(20))"
TARGETS = {
    "extra": "(id INT PRIMARY KEY, n INT NOT NULL, v VARCHAR(20), x INT, y INT NOT NULL DEFAULT 7)",
    "other_key": "(id INT, n INT NOT NULL PRIMARY KEY, v VARCHAR(20))",
    "no_key": "(id INT, n INT, v VARCHAR(20))",
    "made": "(id INT PRIMARY KEY, n INT NOT NULL, v VARCHAR(20), g INT AS (n * 2) STORED)",
    "turned": "(V VARCHAR(50), N BIGINT NOT NULL, ID BIGINT PRIMARY KEY)",
}
LATER = (
    "INSERT INTO {} VALUES (4, 40, 'd''\\\\'), (5, 50, NULL)",
    "UPDATE {} SET v = 'changed', n = 11 WHERE id = 1",
    "UPDATE {} SET id = 22 WHERE id = 2",
    "DELETE FROM {} WHERE id = 5",
    "REPLACE INTO {} VALUES (6, 30, 'both')",
)


def test_rows_fit_and_what_is_not_there_is_told(
    spark: SparkSession, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    for server in (mysql_source, mysql_target):
        server.run(f"CREATE DATABASE {schema}")
    for name, definition in TARGETS.items():
        mysql_source.run(f"CREATE TABLE {schema}.{name} {SOURCE}")
        mysql_source.run(f"INSERT INTO {schema}.{name} VALUES (1, 10, 'é'), (2, 20, ''), (3, 30, NULL)")
        mysql_target.run(f"CREATE TABLE {schema}.{name} {definition}")
    syncer = {"on-missing-row": "stop"}
    files = TaskFiles(tmp_path, schema, {"s1": mysql_source}, mysql_target, (schema,), syncer=syncer).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        for name in TARGETS:
            mysql_source.run(*(text.format(f"{schema}.{name}") for text in LATER))
        run.catch_up()
    for name in TARGETS:
        query = f"SELECT id, n, v FROM {schema}.{name} ORDER BY id"
        assert mysql_target.query(query) == mysql_source.query(query), name
    mysql_target.run(f"DELETE FROM {schema}.extra WHERE id = 4")
    mysql_source.run(f"UPDATE {schema}.extra SET v = CONCAT(id, 'x')")
    error = TaskRun(files, spark).start().error()
    assert isinstance(error, UnshardError), error
    assert error.code == "SYNC-048", error
    assert "`id` IN (4)" in str(error)
    assert f"{schema}.extra" in str(error)
