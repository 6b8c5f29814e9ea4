"""`unshard compare` between MySQL servers: JSON as documents, positions of MySQL, and an old server."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, kinds, only_table
from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mysql_server import Mysql56Server, MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_documents_and_a_task_that_follows(
    mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    mysql_source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, j JSON, g POINT, y YEAR, v VARCHAR(9))",
        f"""INSERT INTO {schema}.t VALUES (1, '{{"b": 1, "aa": [2.50, null]}}', POINT(1, 2), 2024, 'é'), (2, '1', NULL,
        NULL, NULL)""",
    )
    files = TaskFiles(tmp_path, f"task_{schema}", {"s1": mysql_source}, mysql_target, (schema,)).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        mysql_source.run(f"INSERT INTO {schema}.t VALUES (3, '[1e2]', NULL, NULL, NULL)")
        found = compared(files, spark)
        assert found.exit_code == 0
        assert only_table(found).target_rows in (2, 3)
        run.catch_up()
        mysql_target.run(
            f"UPDATE {schema}.t SET j = '[101]' WHERE id = 3", f"UPDATE {schema}.t SET v = 'e' WHERE id = 1"
        )
        table = only_table(compared(files, spark))
    assert kinds(table) == {"id=1": "changed", "id=3": "changed"}
    assert [one.columns for one in table.differences] == [("v",), ("j",)]


def test_an_old_target(mysql_source: MysqlServer, schema: str, tmp_path: Path, spark: SparkSession) -> None:
    with Mysql56Server() as old:
        for server in (mysql_source, old):
            server.run(
                f"CREATE DATABASE {schema}",
                f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, f FLOAT, d DATETIME(2), e ENUM('a', 'b'))",
                f"INSERT INTO {schema}.t VALUES (1, 0.1, '2024-02-29 01:02:03.45', 'b'), (2, -1e30, NULL, NULL)",
            )
        keys = {"task-mode": "full"}
        files = TaskFiles(tmp_path, f"task_{schema}", {"s1": mysql_source}, old, (schema,), keys).write()
        assert compared(files, spark).exit_code == 0
        old.run(f"UPDATE {schema}.t SET f = 0.2 WHERE id = 1")
        assert kinds(only_table(compared(files, spark))) == {"id=1": "changed"}
