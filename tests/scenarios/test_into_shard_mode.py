"""A task that a DDL on a merged table has stopped for want of `shard-mode`, and the way out that the error names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.errors import SyncError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_with_shard_mode_it_goes_on_by_itself(
    spark: SparkSession,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    servers = {"s1": source_server, "s2": second_source}
    for number, server in enumerate(servers.values()):
        server.run(f"CREATE DATABASE {schema}_1", f"CREATE TABLE {schema}_1.t_1 (id INT PRIMARY KEY, v INT)")
        server.run(f"INSERT INTO {schema}_1.t_1 VALUES ({number}, 1)")
    route = {"schema-pattern": f"{schema}_*", "table-pattern": "t_*", "target-schema": f"{schema}_all"}
    files = TaskFiles(
        tmp_path,
        schema,
        servers,
        target_server,
        (f"{schema}_1",),
        keys={"routes": {"all": {**route, "target-table": "t"}}},
        instance={"route-rules": ["all"]},
    ).write()
    alter = f"ALTER TABLE {schema}_1.t_1 ADD COLUMN w INT DEFAULT 7"
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(alter, f"INSERT INTO {schema}_1.t_1 VALUES (10, 2, 3)")
        error = run.error()
        run.crew.errors.clear()
    assert isinstance(error, SyncError)
    assert error.code == "SYNC-011"
    assert "set `shard-mode: pessimistic` in the task file" in str(error)
    second_source.run(f"INSERT INTO {schema}_1.t_1 VALUES (11, 2)")
    files = replace(files, keys={**files.keys, "shard-mode": "pessimistic"}).write()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        second_source.run(alter, f"INSERT INTO {schema}_1.t_1 VALUES (12, 2, 4)")
        wanted = [(0, 1, 7), (1, 1, 7), (10, 2, 3), (11, 2, 7), (12, 2, 4)]
        question = f"SELECT * FROM {schema}_all.t ORDER BY id"
        wait_until(lambda: target_server.query(question) == wanted, "the statement and the rows behind it")
