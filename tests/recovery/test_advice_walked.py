"""The advice of errors that say "begin anew" or "remove", followed to its end: the target then equals the sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.config.files import load_source, load_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.errors import UnshardError
from unshard.master.beginning import forget
from unshard.model.table import TableName
from unshard.operate.reset import look, undo
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]


@pytest.fixture
def shards(source: MariadbServer, schema: str) -> TableName:
    """The table that two shards with the ids 1 and 2 are routed to."""
    source.run(f"CREATE DATABASE {schema}")
    for shard in ("t_1", "t_2"):
        source.run(f"CREATE TABLE {schema}.{shard} (id BIGINT PRIMARY KEY)")
        source.run(f"INSERT INTO {schema}.{shard} VALUES (1), (2)")
    return TableName(schema, "t")


@pytest.fixture
def files(shards: TableName, source: MariadbServer, target: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    fold = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    keys = {"routes": {"fold": fold}}
    return TaskFiles(tmp_path, schema, {"s1": source}, target, (schema,), keys, {"route-rules": ["fold"]}).write()


@pytest.fixture
def fails(spark: SparkSession) -> Callable[[TaskFiles], str]:
    """Runs the task until it fails; the code of its error."""

    def run(files: TaskFiles) -> str:
        run = TaskRun(files, spark).start()
        error = run.error()
        with pytest.raises(type(error)):
            run.stop()
        assert isinstance(error, UnshardError)
        return error.code

    return run


def configs_of(files: TaskFiles) -> list[SubtaskConfig]:
    return list(plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths]))


def mapped(files: TaskFiles) -> TaskFiles:
    """The task with a column mapping that tells the shards apart."""
    rule = {
        "schema-pattern": files.schemas[0],
        "table-pattern": "t_*",
        "expression": "partition id",
        "source-column": "id",
        "target-column": "id",
        "arguments": ["1", "", "t_"],
    }
    keys = {**files.keys, "column-mappings": {"ids": rule}}
    return replace(files, keys=keys, instance={**files.instance, "column-mapping-rules": ["ids"]}).write()


def test_shards_that_share_ids(
    files: TaskFiles, shards: TableName, fails: Any, spark: SparkSession, source: MariadbServer, target: MariadbServer
) -> None:
    assert fails(files) == "LOAD-005"
    files = mapped(files)
    assert fails(files) == "LOAD-019"
    configs = configs_of(files)
    forget(configs[0])
    assert fails(files) == "LOAD-025"
    undone = look(configs)
    assert ([name for name, _ in undone.drops], undone.empties, undone.keeps) == ([shards], (), ())
    assert undone.dumps
    undo(configs, undone)
    assert not look(configs).drops
    assert not any(folder.exists() for folder in undone.dumps)
    with TaskRun(files, spark) as run:
        run.catch_up()
        source.run(f"INSERT INTO {shards.schema}.t_2 VALUES (3)")
        run.catch_up()
    found = target.query(f"SELECT id >> 44, id & 0xFFFFFFFFFFF FROM {shards} ORDER BY id")
    first, second = sorted({shard for shard, _ in found})
    assert found == [(first, 1), (first, 2), (second, 1), (second, 2), (second, 3)]


def test_a_table_that_was_there_is_emptied_and_one_with_rows_of_others_kept(
    files: TaskFiles, shards: TableName, fails: Any, spark: SparkSession, source: MariadbServer, target: MariadbServer
) -> None:
    schema = shards.schema
    source.run(f"CREATE TABLE {schema}.kept LIKE {schema}.t_1", f"INSERT INTO {schema}.kept VALUES (1)")
    target.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {shards} (id BIGINT PRIMARY KEY)")
    target.run(f"CREATE TABLE {schema}.kept LIKE {shards}", f"INSERT INTO {schema}.kept VALUES (100)")
    files = mapped(files)
    assert fails(files) == "LOAD-026"
    loader = {"own": {"dir": str(files.folder / "dump"), "incremental-import": True}}
    files = replace(files, keys={**files.keys, "loaders": loader}).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert target.query(f"SELECT id FROM {schema}.kept ORDER BY id") == [(1,), (100,)]
    configs = configs_of(files)
    undone = look(configs)
    kept = TableName(schema, "kept")
    assert (undone.drops, undone.empties, undone.keeps) == ((), ((shards, "4 rows"),), ((kept, "2 rows"),))
    undo(configs, undone)
    assert target.query(f"SELECT COUNT(*) FROM {shards}") == [(0,)]
    assert fails(files) == "LOAD-025"  # which of the rows are whose only the user knows
    target.run(f"DELETE FROM {kept} WHERE id = 1", f"DELETE FROM {files.meta}.{files.name}_load_table")
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert target.query(f"SELECT id FROM {kept} ORDER BY id") == [(1,), (100,)]
    assert target.query(f"SELECT COUNT(*) FROM {shards}") == [(4,)]
