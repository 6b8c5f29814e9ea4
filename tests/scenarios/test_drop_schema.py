"""DROP DATABASE upstream, where several schemas share one in the target: nobody else's tables may go with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.errors import SyncError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def files(folder: Path, schema: str, source: MariadbServer, target: MariadbServer) -> TaskFiles:
    for shard in (f"{schema}_1", f"{schema}_2"):
        source.run(f"CREATE DATABASE {shard}")
    source.run(f"CREATE TABLE {schema}_1.kept (id INT PRIMARY KEY)", f"INSERT INTO {schema}_1.kept VALUES (1)")
    source.run(f"CREATE TABLE {schema}_2.own (id INT PRIMARY KEY)")
    return TaskFiles(
        folder,
        schema,
        {"one": source},
        target,
        (f"{schema}_1", f"{schema}_2"),
        keys={"routes": {"all": {"schema-pattern": f"{schema}_*", "target-schema": f"{schema}_all"}}},
        instance={"route-rules": ["all"]},
    ).write()


def test_a_schema_that_others_share_in_the_target_is_not_dropped(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    with TaskRun(files(tmp_path, schema, source_server, target_server), spark) as run:
        run.catch_up()
        source_server.run(f"DROP DATABASE {schema}_2")
        error = run.error()
        run.crew.errors.clear()
    assert isinstance(error, SyncError)
    assert error.code == "SYNC-074"
    assert "kept" in str(error)
    assert target_server.query(f"SELECT id FROM {schema}_all.kept") == [(1,)]


def test_a_schema_whose_tables_are_all_its_own_is_dropped(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    with TaskRun(files(tmp_path, schema, source_server, target_server), spark) as run:
        run.catch_up()
        source_server.run(f"DROP TABLE {schema}_1.kept", f"DROP DATABASE {schema}_2")
        run.catch_up()
    assert target_server.query(f"SHOW DATABASES LIKE '{schema}_all'") == []
