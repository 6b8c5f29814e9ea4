"""`--reset` also undoes what statements of the log have made: the next copy finds none of its own rows there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shard_runs import ends_at
from support.task_runs import TaskFiles, TaskRun
from unshard.config.files import load_source, load_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.model.table import TableName
from unshard.operate.reset import Undone, look, undo
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(20)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"


@pytest.fixture
def files(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    source_server.run(
        f"CREATE DATABASE {schema}",
        *(f"CREATE TABLE {schema}.{name} {COLUMNS}" for name in ("a", "b", "gone", "users")),
        f"INSERT INTO {schema}.a VALUES (1, 'a')",
    )
    target_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.users {COLUMNS}")
    return TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()


def configs_of(files: TaskFiles) -> tuple[SubtaskConfig, ...]:
    return plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])


def names(undone: Undone) -> tuple[list[str], list[str], list[str]]:
    found = (undone.drops, undone.empties, undone.keeps)
    drops, empties, keeps = ([name.table for name, _ in listed] for listed in found)
    return drops, empties, keeps


def ends_equal(files: TaskFiles, spark: SparkSession, *tables: str) -> None:
    (source,) = files.sources.values()
    with TaskRun(files, spark) as run:
        run.catch_up()
    for table in tables:
        name = TableName(files.schemas[0], table)
        assert_equal([(source, name)], (files.target, name))


def test_tables_that_the_log_makes_renames_and_drops(
    files: TaskFiles, source_server: MariadbServer, target_server: MariadbServer, schema: str, spark: SparkSession
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
        target_server.run(f"CREATE TABLE {schema}.found {COLUMNS}", f"CREATE TABLE {schema}.full {COLUMNS}")
        target_server.run(f"INSERT INTO {schema}.full VALUES (100, 'of others')")
        source_server.run(
            f"CREATE TABLE {schema}.made {COLUMNS}",
            f"INSERT INTO {schema}.made VALUES (1, 'x')",
            f"CREATE TABLE {schema}.copied LIKE {schema}.made",
            f"RENAME TABLE {schema}.b TO {schema}.x, {schema}.a TO {schema}.b, {schema}.x TO {schema}.a",
            f"ALTER TABLE {schema}.users RENAME TO {schema}.theirs",
            f"DROP TABLE {schema}.gone",
            f"CREATE TABLE {schema}.found {COLUMNS}",
            f"CREATE TABLE {schema}.full {COLUMNS}",
            f"INSERT INTO {schema}.full VALUES (1, 'ours')",
        )
        run.catch_up()
    target_server.run(f"CREATE TABLE {schema}.gone {COLUMNS}", f"INSERT INTO {schema}.gone VALUES (1, 'of others')")
    configs = configs_of(files)
    undone = look(configs)
    assert names(undone) == (["a", "b", "copied", "made"], ["found", "theirs"], ["full"])
    undo(configs, undone)
    left = sorted(table for (table,) in target_server.query(f"SHOW TABLES FROM {schema}"))
    assert left == ["found", "full", "gone", "theirs"]
    target_server.run(
        f"DELETE FROM {schema}.full WHERE id = 1",
        f"DELETE FROM {files.meta}.{files.name}_load_table",
        f"DROP TABLE {schema}.full",
    )
    ends_equal(files, spark, "a", "b", "copied", "found", "full", "made", "theirs")


def test_after_a_schema_is_dropped_nothing_of_it_is_on_record(
    files: TaskFiles, source_server: MariadbServer, target_server: MariadbServer, schema: str, spark: SparkSession
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"DROP DATABASE {schema}")
        run.catch_up()
    assert names(look(configs_of(files))) == ([], [], [])


@pytest.mark.parametrize(
    "place",
    [
        "ddl-execute-after",
        *(
            pytest.param(place, marks=pytest.mark.scenarios)
            for place in ("ddl-execute-before", "ddl-noted", "sync-close-before")
        ),
    ],
)
def test_wherever_it_dies_the_next_copy_is_not_stopped_by_its_own_rows(
    place: str,
    files: TaskFiles,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    source_server.run(
        f"CREATE TABLE {schema}.made {COLUMNS}",
        f"INSERT INTO {schema}.made VALUES (1, 'x')",
        f"RENAME TABLE {schema}.b TO {schema}.x, {schema}.a TO {schema}.b, {schema}.x TO {schema}.a",
    )
    assert ends_at(place, files, spark, monkeypatch)
    with TaskRun(files, spark) as run:
        run.catch_up()
    configs = configs_of(files)
    undone = look(configs)
    drops, empties, _ = names(undone)
    assert sorted(drops + empties) == ["a", "b", "gone", "made", "users"]
    assert ("made" in empties) == (place == "ddl-execute-after"), "who has made it is not known then"
    undo(configs, undone)
    ends_equal(files, spark, "a", "b", "made")
