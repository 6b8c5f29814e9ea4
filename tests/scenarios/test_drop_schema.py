"""DROP DATABASE upstream, where several schemas share one in the target: nobody else's tables may go with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun, newest
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


@pytest.mark.parametrize("mode", ["all", pytest.param("incremental", marks=pytest.mark.scenarios)])
def test_tables_of_a_dropped_schema_go_where_they_are_routed_to(
    mode: str,
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    """The schema comes again with one of them: the target has its new rows alone."""
    parent, child = (
        "(id INT PRIMARY KEY)",
        f"(id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES {schema}_1.a_orders (id))",
    )
    shop = [
        f"CREATE DATABASE {schema}_1",
        f"CREATE TABLE {schema}_1.a_orders {parent}",
        f"CREATE TABLE {schema}_1.b_lines {child}",
        f"CREATE TABLE {schema}_1.own {parent}",
    ]
    source_server.run(*shop)
    target_server.run(f"CREATE DATABASE {schema}_all", f"CREATE TABLE {schema}_all.of_others (id INT)")
    at = newest(source_server)
    pattern = {"schema-pattern": f"{schema}_1", "target-schema": f"{schema}_all"}
    task = TaskFiles(
        tmp_path,
        schema,
        {"one": source_server},
        target_server,
        (f"{schema}_1",),
        keys={"routes": {"b": {**pattern, "table-pattern": "b_*"}, "a": {**pattern, "table-pattern": "a_*"}}},
        instance={"route-rules": ["a", "b"]},
    )
    if mode == "incremental":
        target_server.run(*(text.replace("_1.a_", "_all.a_").replace("_1.b_", "_all.b_") for text in shop))
        task.keys = {**task.keys, "task-mode": mode}
        task.instances = {"one": {"meta": {"binlog-name": at.file, "binlog-pos": at.offset}}}
    with TaskRun(task.write(), spark) as run:
        run.reach("sync")
        source_server.run(*(f"INSERT INTO {schema}_1.{name} VALUES (1), (2)" for name in ("a_orders", "b_lines")))
        run.catch_up()
        source_server.run(f"DROP DATABASE {schema}_1")
        run.catch_up()
        assert target_server.query(f"SHOW TABLES FROM {schema}_all") == [("of_others",)]
        assert target_server.query(f"SHOW DATABASES LIKE '{schema}_1'") == []
        source_server.run(*shop[:2], f"INSERT INTO {schema}_1.a_orders VALUES (2)")
        run.catch_up()
    assert target_server.query(f"SELECT id FROM {schema}_all.a_orders") == [(2,)]


@pytest.mark.scenarios
def test_a_schema_that_is_replaced_takes_no_table_of_others(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    task = files(tmp_path, schema, source_server, target_server)
    with TaskRun(task, spark) as run:
        run.catch_up()
        source_server.run(f"CREATE OR REPLACE DATABASE {schema}_2")
        with pytest.raises(SyncError, match="SYNC-074"):
            run.catch_up()
        run.crew.errors.clear()
    assert target_server.query(f"SELECT id FROM {schema}_all.kept") == [(1,)]
