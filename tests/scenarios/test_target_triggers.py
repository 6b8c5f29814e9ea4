"""A trigger that the target gets while a task runs is seen when the structure of its table is read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from unshard.errors import SyncError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def target_server() -> Iterator[MariadbServer]:
    """A MariaDB, whatever the run's target is: TiDB has no triggers."""
    with MariadbServer() as server:
        yield server


@pytest.fixture
def files(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.orders (id INT PRIMARY KEY)",
        f"CREATE TABLE {schema}.history (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20))",
        f"INSERT INTO {schema}.orders VALUES (1)",
    )
    return TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()


def trigger(schema: str, body: str) -> str:
    return f"CREATE TRIGGER {schema}.late AFTER INSERT ON {schema}.orders FOR EACH ROW {body}"


DOUBLES = "INSERT INTO history (what) VALUES ('by the trigger')"


def test_one_that_writes_rows_of_the_task_stops_it_before_the_next_row(
    files: TaskFiles, source_server: MariadbServer, target_server: MariadbServer, schema: str, spark: SparkSession
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(f"INSERT INTO {schema}.orders VALUES (2)")
        run.catch_up()
    run = TaskRun(files, spark)
    with run.failing():
        run.catch_up()
        target_server.run(trigger(schema, DOUBLES))
        source_server.run(f"ALTER TABLE {schema}.orders ADD v INT", f"INSERT INTO {schema}.orders VALUES (3, 3)")
        error = run.error()
    assert isinstance(error, SyncError)
    assert error.code == "SYNC-076"
    assert f"may write to {schema}.history" in str(error)
    assert target_server.query(f"SELECT MAX(id) FROM {schema}.orders") == [(2,)]
    target_server.run(f"DROP TRIGGER {schema}.late")
    with TaskRun(files, spark) as run:
        run.catch_up()
    assert target_server.query(f"SELECT MAX(id) FROM {schema}.orders") == [(3,)]
    assert target_server.query(f"SELECT * FROM {schema}.history") == []


@pytest.mark.parametrize(
    ("keys", "body"),
    [
        ({}, "SET @seen = NEW.id"),
        ({"ignore-checking-items": ["target_triggers"]}, DOUBLES),
        ({"delivery": "at-least-once"}, DOUBLES),
    ],
)
def test_others_and_those_that_are_wanted_run(
    keys: dict[str, object],
    body: str,
    files: TaskFiles,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    spark: SparkSession,
) -> None:
    files.keys = keys
    files.write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        target_server.run(trigger(schema, body))
        source_server.run(f"ALTER TABLE {schema}.orders ADD v INT", f"INSERT INTO {schema}.orders VALUES (3, 3)")
        run.catch_up()
    assert target_server.query(f"SELECT MAX(id) FROM {schema}.orders") == [(3,)]
    assert len(target_server.query(f"SELECT * FROM {schema}.history")) == (body == DOUBLES)
