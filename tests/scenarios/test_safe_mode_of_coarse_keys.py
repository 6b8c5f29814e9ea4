"""Safe mode never removes a row of the source because the target takes its key for equal to another row's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.errors import SyncError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

FINE, COARSE = "utf8mb4_bin", "utf8mb4_general_ci"


def table(name: TableName, collation: str) -> str:
    kind = f"VARCHAR(9) CHARACTER SET utf8mb4 COLLATE {collation}"
    return f"CREATE TABLE {name} (id INT PRIMARY KEY, v {kind}, w {kind}, UNIQUE KEY v (v))"


@pytest.fixture
def name(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> TableName:
    """A table whose unique key is coarser in the target. Another column is so too, which does no harm."""
    name = TableName(schema, "t")
    source_server.run(f"CREATE DATABASE {schema}", table(name, FINE), f"INSERT INTO {name} VALUES (1, 'a', 'x')")
    target_server.run(f"CREATE DATABASE {schema}", table(name, COARSE))
    return name


@pytest.fixture
def files(source_server: MariadbServer, target_server: MariadbServer, name: TableName, tmp_path: Path) -> TaskFiles:
    files = TaskFiles(tmp_path, name.schema, {"s1": source_server}, target_server, (name.schema,))
    return replace(files, syncer={"safe-mode": True}).write()


def test_it_stops_before_the_first_row(
    files: TaskFiles, source_server: MariadbServer, target_server: MariadbServer, name: TableName, spark: SparkSession
) -> None:
    run = TaskRun(files, spark)
    with run.failing():
        run.catch_up()
        source_server.run(f"INSERT INTO {name} VALUES (2, 'A', 'X')")
        error = run.error()
    assert isinstance(error, SyncError)
    assert error.code == "SYNC-077"
    assert "column v of a unique key" in str(error)
    assert "(A = À" in str(error)
    assert target_server.query(f"SELECT id FROM {name}") == [(1,)]
    for change in ("DROP KEY v", f"MODIFY v VARCHAR(9) CHARACTER SET utf8mb4 COLLATE {FINE}", "ADD UNIQUE KEY v (v)"):
        target_server.run(f"ALTER TABLE {name} {change}")
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert_equal([(source_server, name)], (target_server, name))


def test_who_knows_that_there_are_no_such_texts_may_go_on(
    files: TaskFiles, source_server: MariadbServer, target_server: MariadbServer, name: TableName, spark: SparkSession
) -> None:
    files = replace(files, keys={"ignore-checking-items": ["target_keys"]}).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"INSERT INTO {name} VALUES (2, 'b', 'X')", f"UPDATE {name} SET v = 'c' WHERE id = 1")
        run.catch_up()
    assert_equal([(source_server, name)], (target_server, name))


def test_exactly_once_such_a_row_is_a_duplicate(
    files: TaskFiles, source_server: MariadbServer, target_server: MariadbServer, name: TableName, spark: SparkSession
) -> None:
    files = replace(files, syncer={}).write()
    run = TaskRun(files, spark)
    with run.failing():
        run.catch_up()
        source_server.run(f"INSERT INTO {name} VALUES (2, 'A', 'X')")
        error = run.error()
    assert isinstance(error, SyncError)
    assert error.code == "SYNC-003"
    assert target_server.query(f"SELECT id FROM {name}") == [(1,)]
