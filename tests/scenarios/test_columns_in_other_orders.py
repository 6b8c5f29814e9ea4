"""Shards whose columns stand in other orders: each value arrives in the column of its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.errors import ShardError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def routes(schema: str) -> dict[str, dict[str, str]]:
    return {"fold": {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}}


def test_each_value_arrives_in_the_column_of_its_name(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source, target = source_server, target_server
    source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t_1 (id INT PRIMARY KEY, x INT NOT NULL, y INT NOT NULL, z INT NOT NULL)",
        f"CREATE TABLE {schema}.t_2 (z INT NOT NULL, y INT NOT NULL, id INT PRIMARY KEY, x INT NOT NULL)",
        f"INSERT INTO {schema}.t_1 (id, x, y, z) VALUES (1, 10, 20, 30), (2, 10, 20, 30)",
        f"INSERT INTO {schema}.t_2 (id, x, y, z) VALUES (101, 11, 21, 31), (102, 11, 21, 31)",
    )
    keys = {"routes": routes(schema), "ignore-checking-items": ["schema_of_shard_tables"]}
    files = TaskFiles(tmp_path, schema, {"s1": source}, target, (schema,), keys, {"route-rules": ["fold"]}).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        source.run(
            "BEGIN",
            *(f"INSERT INTO {schema}.t_1 (id, x, y, z) VALUES ({n}, 10, 20, 30)" for n in range(3, 30)),
            *(f"INSERT INTO {schema}.t_2 (id, x, y, z) VALUES ({n}, 11, 21, 31)" for n in range(103, 130)),
            f"UPDATE {schema}.t_1 SET x = 12 WHERE id = 1",
            f"UPDATE {schema}.t_2 SET x = 13 WHERE id = 101",
            f"UPDATE {schema}.t_1 SET y = 22 WHERE id = 2",
            f"UPDATE {schema}.t_2 SET y = 23 WHERE id = 102",
            "COMMIT",
        )
        run.catch_up()
    asked = "SELECT id, x, y, z FROM {schema}.{table} ORDER BY id"
    upstream = [row for table in ("t_1", "t_2") for row in source.query(asked.format(schema=schema, table=table))]
    assert target.query(asked.format(schema=schema, table="t")) == sorted(upstream)


def test_tables_of_other_columns_do_not_share_statements(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    source, target = source_server, target_server
    source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t_1 (id INT PRIMARY KEY, x INT, y INT)",
        f"CREATE TABLE {schema}.t_2 (id INT PRIMARY KEY, x INT, z INT)",
    )
    target.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, x INT, y INT, z INT)")
    keys = {"routes": routes(schema), "ignore-checking-items": ["schema_of_shard_tables"]}
    files = TaskFiles(tmp_path, schema, {"s1": source}, target, (schema,), keys, {"route-rules": ["fold"]}).write()
    run = TaskRun(files, spark).start()
    run.catch_up()
    source.run(
        "BEGIN",
        f"INSERT INTO {schema}.t_1 VALUES (1, 10, 20)",
        f"INSERT INTO {schema}.t_2 VALUES (101, 11, 31)",
        "COMMIT",
    )
    with pytest.raises(ShardError, match=r"(?s)SHARD-049.*y, z are not in all of them"):
        raise run.error()
    with pytest.raises(ShardError):
        run.stop()
    assert target.query(f"SELECT * FROM {schema}.t") == []
