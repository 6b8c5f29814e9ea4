"""Operators that are given and taken back while the task runs, before it gets to their position."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import copied_task, ctl, operator_states
from support.shard_runs import Shards
from support.task_runs import TaskFiles, TaskRun, newest
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.scenarios]


def ids(server: ThrowawayServer, schema: str) -> list[int]:
    return [found for (found,) in server.query(f"SELECT id FROM {schema}.t ORDER BY id")]


@pytest.fixture
def files(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> TaskFiles:
    """A task that is copied, over a table `t` with one row."""
    return copied_task(spark, source_server, target_server, schema, tmp_path)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_each_batch_looks_for_them(
    delivery: str, files: TaskFiles, spark: SparkSession, source_server: MariadbServer, schema: str
) -> None:
    files = replace(files, keys={"delivery": delivery}).write()
    target, task = files.target, str(files.task_path)
    insert = f"INSERT INTO {schema}.t VALUES ({{}}, 'later')"
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(insert.format(2))
        run.catch_up()
        first = str(newest(source_server))
        ctl("binlog", "skip", task, "-s", "s1", "-b", first)
        source_server.run(insert.format(3), insert.format(4))
        run.catch_up()
        assert ids(target, schema) == [1, 2, 4]
        second = str(newest(source_server))
        ctl("binlog", "skip", task, "-s", "s1", "-b", second)
        ctl("binlog", "revert", task, "-s", "s1", "-b", second)
        source_server.run(insert.format(5))
        run.catch_up()
        assert ids(target, schema) == [1, 2, 4, 5]
        third = str(newest(source_server))
        ctl("binlog", "skip", task, "-s", "s1", "-b", third)
    with TaskRun(files, spark) as run:
        run.catch_up()
        ctl("binlog", "revert", task, "-s", "s1", "-b", third)
        source_server.run(insert.format(6), insert.format(7))
        run.catch_up()
        assert ids(target, schema) == [1, 2, 4, 5, 6, 7]
    assert operator_states(files) == ["applied", "reverted", "reverted"]


def test_a_change_that_waits_for_a_sharding_ddl(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """It is left out when the log is read again, though the operator came while the shard waited."""
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path)
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="1")
        place = str(newest(source_server))
        shards.insert("s1", 0, 2, c="2")
        run.catch_up()
        ctl("binlog", "skip", str(files.task_path), "-s", "s1", "-b", place)
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.insert("s1", 1, 1, c="1")
        shards.wait_in_step(run)
    skipped = shards.id("s1", 0, 2)
    assert target_server.query(f"SELECT c FROM {shards.merged} WHERE id = {skipped}") == []
    assert [row for row in shards.expected() if row[0] != skipped] == shards.merged_rows()
    assert operator_states(files) == ["applied"]
