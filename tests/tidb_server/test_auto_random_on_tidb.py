"""A target's table whose key TiDB draws by itself where none is given: AUTO_RANDOM."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_an_auto_random_key_takes_the_sources_values(
    source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)",
        f"INSERT INTO {schema}.t VALUES (1, 1), (7, 7)",
    )
    tidb.run(
        f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id BIGINT AUTO_RANDOM(5) PRIMARY KEY CLUSTERED, v INT)"
    )
    with TaskRun(TaskFiles(tmp_path, schema, {"s": source_server}, tidb, (schema,)).write(), spark) as run:
        run.catch_up()
        assert tidb.query(f"SELECT id, v FROM {schema}.t ORDER BY id") == [(1, 1), (7, 7)]
        source_server.run(
            f"INSERT INTO {schema}.t (v) VALUES (8)",
            f"UPDATE {schema}.t SET id = 70 WHERE id = 7",
            f"DELETE FROM {schema}.t WHERE id = 1",
        )
        run.catch_up()
    assert tidb.query(f"SELECT id, v FROM {schema}.t ORDER BY id") == [(8, 8), (70, 7)]
