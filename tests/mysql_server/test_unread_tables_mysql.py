"""CREATE TABLE IF NOT EXISTS of tables of which the log has brought nothing yet.

MySQL logs it in any case, as MariaDB did before 10.11. These two do not log in which character set the values of a row
are.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, stopped_run
from support.shard_runs import Shards
from support.task_runs import TaskRun
from unshard.errors import UnshardError
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROW = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) CHARACTER SET {} NOT NULL"
TODAY, LONG_AGO = ROW.format("utf8mb4"), ROW.format("latin1")


@pytest.fixture(params=["mysql_56", "old_mariadb"])
def shards(request: pytest.FixtureRequest, target_server: ThrowawayServer, schema: str, tmp_path: Path) -> Shards:
    """Their rows are on the target already."""
    source: ThrowawayServer = request.getfixturevalue(request.param)
    keys = {"task-mode": "incremental"}
    found = Shards(schema, {"s1": source}, target_server, tmp_path, keys=keys, row=TODAY)
    target_server.run(f"CREATE DATABASE {schema}_all", f"CREATE TABLE {found.merged} ({TODAY})")
    for row, text in found.expected():
        target_server.run(f"INSERT INTO {found.merged} VALUES ({row}, '{text}')")
    return found


def create(shards: Shards, table: int) -> str:
    """What an application runs at each start, and a row after it."""
    statement = f"CREATE TABLE IF NOT EXISTS {shards.at(table)} ({LONG_AGO})"
    shards.run("s1", statement)
    shards.insert("s1", table, 1)
    shards.update("s1", table, 1, "v = 'Zoë'")
    return statement


def test_a_create_without_effect_does_not_tell_how_rows_are_read(shards: Shards, spark: SparkSession) -> None:
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
        create(shards, 1)
        create(shards, 2)
        shards.settle(run)


@pytest.mark.parametrize("case", ["there", "made"])
def test_a_create_that_may_have_had_an_effect(case: str, shards: Shards, spark: SparkSession) -> None:
    """It ran while the task stood still: the source does not tell any more whether the table was there before."""
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
    table = 1 if case == "there" else 2
    statement = create(shards, table)
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-081"
    assert "v varchar(20) latin1" in str(error)
    assert "v varchar(20) utf8mb4" in str(error)
    if case == "there":
        task, source = str(files.task_path), str(files.source_paths[0])
        ctl("binlog-schema", "update", task, f"{shards.name}_s", f"t_{table}", "--from-target", "-s", source)
    else:
        ctl("binlog", "replace", str(files.task_path), "-s", "s1", statement)
    with TaskRun(files, spark) as run:
        shards.settle(run)


@pytest.mark.parametrize("running", [True, False])
def test_a_create_of_a_table_that_the_copy_left_out(running: bool, shards: Shards, spark: SparkSession) -> None:
    """The dump's flags have chosen others, so nothing is known of it."""
    shards.keys = {}
    shards.instance = {**shards.instance, "mydumper": {"extra-args": f"-T {shards.name}_s.t_0"}}
    brought = shards.expected()
    shards.target.run(f"DELETE FROM {shards.merged}")
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
        for row, text in brought:
            shards.target.run(f"INSERT IGNORE INTO {shards.merged} VALUES ({row}, '{text}')")
        if running:
            create(shards, 1)
            shards.settle(run)
    if not running:
        create(shards, 1)
        error = stopped_run(files, spark)
        assert isinstance(error, UnshardError)
        assert error.code == "SYNC-081"


def test_a_create_of_a_table_that_an_earlier_list_left_out(shards: Shards, spark: SparkSession) -> None:
    """It may have been there, and then its rows are missing, whatever its structure."""
    names = [{"db-name": f"{shards.name}_s", "tbl-name": f"t_{table}"} for table in (0, 1)]
    files = replace(shards.files(), keys={**shards.files().keys, "block-allow-list": {"own": {"do-tables": names[:1]}}})
    with TaskRun(files.write(), spark) as run:
        run.catch_up()
    shards.run("s1", f"CREATE TABLE IF NOT EXISTS {shards.at(1)} ({TODAY})")
    files = replace(files, keys={**files.keys, "block-allow-list": {"own": {"do-tables": names}}}).write()
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-084"
