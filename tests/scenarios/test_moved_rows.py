"""Rows that move under their key between shards while a sharding DDL waits: none is lost, or the task says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from operated import ctl, stopped_run
from shard_runs import Shards
from task_runs import TaskRun
from unshard.errors import UnshardError
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
HELD, FREE = 0, 1


@pytest.fixture
def shards(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> Shards:
    return Shards(schema, {"s1": source_server}, target_server, tmp_path)


def move(shards: Shards, number: int, there: int, to: int) -> None:
    """The row goes over in one transaction; the shards may differ in a last column."""
    row = f"WHERE id = {shards.id('s1', HELD, number)}"
    copy = f"INSERT INTO {shards.at(to)} (id, v) SELECT id, v FROM {shards.at(there)} {row}"
    shards.sources["s1"].run("BEGIN", copy, f"DELETE FROM {shards.at(there)} {row}", "COMMIT")


def test_a_row_that_came_and_went_while_its_shard_was_held(shards: Shards, spark: SparkSession) -> None:
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        shards.insert("s1", HELD, 1, c="1")
        shards.update("s1", HELD, 1, "v = 'moves'")
        move(shards, 1, HELD, FREE)
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN c INT")
        shards.settle(run)


def test_a_row_that_goes_to_a_held_shard_and_comes_back(shards: Shards, spark: SparkSession) -> None:
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN c INT")
        move(shards, 0, HELD, FREE)
        run.catch_up()
        move(shards, 0, FREE, HELD)
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        shards.settle(run)


@pytest.mark.parametrize("compact", [True, False], ids=["at-the-new-shard", "when-it-is-read-again"])
def test_the_task_stops_and_gets_past_it(compact: bool, shards: Shards, spark: SparkSession) -> None:
    """Either the free shard's INSERT meets the old row, or the held one's, read again, the new row."""
    shards.syncer = {"compact": compact}
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        if not compact:
            shards.insert("s1", HELD, 1, c="1")
        run.catch_up()
    number = 0 if compact else 1
    move(shards, number, HELD, FREE)
    if not compact:
        shards.alter("s1", FREE, "ADD COLUMN c INT")
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SHARD-035", error
    lock, table = f"{shards.name}-`{shards.name}_all`.`t`", f"{shards.name}_s.t_{HELD} of s1"
    assert lock in str(error) and table in str(error) and "binlog skip" in str(error), error
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    with TaskRun(files, spark) as run:
        if compact:
            shards.alter("s1", FREE, "ADD COLUMN c INT")
        shards.insert("s1", FREE, 2, c="2")
        shards.wait_in_step(run)
        moved = shards.id("s1", HELD, number)
        rows = [row for row in shards.expected() if row[0] != moved]
        assert [row for row in shards.merged_rows() if row[0] != moved] == rows
