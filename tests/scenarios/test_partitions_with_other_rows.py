"""Statements that take the rows of a partition: of a target with partitions of its own, and of merged tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl, go_on, stopped_run
from support.shard_rig import ShardRig
from support.shard_runs import ROW
from support.task_runs import TaskFiles
from unshard.errors import DdlError, ShardError
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

BY_RANGE = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN ({}), PARTITION p1 VALUES LESS THAN ({}))"
BY_HASH = f"{ROW}) PARTITION BY HASH (id) (PARTITION p0, PARTITION p1"
MODES = ["pessimistic", "optimistic"]


def test_past_a_partition_that_has_other_rows_on_the_target(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    """The three ways of the advice: the rows deleted by hand, equal partitions, and the statement as it is."""
    table = TableName(schema, "t")
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {table} (id INT PRIMARY KEY) {BY_RANGE.format(5, 100)}",
        f"INSERT INTO {table} VALUES (1), (2), (6), (9), (20)",
    )
    target_server.run(
        f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY) {BY_RANGE.format(8, 100)}"
    )
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    go_on(files, spark)

    def stops(sql: str) -> None:
        before = target_server.query(f"SELECT * FROM {table} ORDER BY id")
        source_server.run(f"ALTER TABLE {table} {sql}")
        error = stopped_run(files, spark)
        assert isinstance(error, DdlError)
        assert error.code == "DDL-047"
        assert target_server.query(f"SELECT * FROM {table} ORDER BY id") == before

    def goes_on() -> None:
        go_on(files, spark)
        assert_equal([(source_server, table)], (target_server, table))

    stops("TRUNCATE PARTITION p0")
    target_server.run(f"DELETE FROM {table} WHERE id < 5")
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    goes_on()
    source_server.run(f"INSERT INTO {table} VALUES (3)")
    goes_on()
    stops("TRUNCATE PARTITION p0")
    target_server.run(f"ALTER TABLE {table} {BY_RANGE.format(5, 100)}")
    goes_on()
    target_server.run(f"ALTER TABLE {table} {BY_RANGE.format(5, 200)}")
    stops("DROP PARTITION p1")
    statement = f"ALTER TABLE {table} DROP PARTITION p1"
    ctl("binlog", "replace", str(files.task_path), "-s", "s1", statement)
    goes_on()
    assert source_server.query(f"SELECT * FROM {table}") == []


@pytest.mark.parametrize("mode", MODES)
def test_a_partition_of_merged_tables(rig: ShardRig, mode: str) -> None:
    """It is emptied when all shards have emptied theirs, also where the target lacks a statement before that one."""
    shards = rig.shards(row=BY_HASH, keys={"shard-mode": mode})
    with rig.run(shards) as run:
        run.catch_up()
        for table in range(2):
            for number in range(1, 6):
                shards.insert("s1", table, number)
        run.catch_up()
        for table in range(2):
            shards.alter("s1", table, "ADD PARTITION (PARTITION p2)")
            shards.alter("s1", table, "TRUNCATE PARTITION p0")
            shards.insert("s1", table, 6)
            run.catch_up()
        shards.settle(run)
        kept = {shards.id("s1", table, number) for table in range(2) for number in range(6)}
        kept = {number for number in kept if number % 3} | {shards.id("s1", table, 6) for table in range(2)}
        assert {row[0] for row in shards.merged_rows()} == kept


@pytest.mark.scenarios
@pytest.mark.parametrize("mode", MODES)
def test_a_shard_with_other_partitions_than_the_merged_table(rig: ShardRig, mode: str) -> None:
    shards = rig.shards(row=BY_HASH, keys={"shard-mode": mode})
    with rig.run(shards) as run:
        run.catch_up()
    shards.target.run(f"ALTER TABLE {shards.merged} PARTITION BY HASH (id) (PARTITION p1, PARTITION p0)")
    before = shards.merged_rows()
    run = rig.run(shards).start()
    for table in range(2):
        shards.alter("s1", table, "TRUNCATE PARTITION p1")
    error = run.error()
    assert isinstance(error, DdlError)
    assert error.code == "DDL-047"
    assert shards.merged_rows() == before


@pytest.mark.scenarios
@pytest.mark.parametrize("mode", MODES)
def test_rows_from_behind_the_statement_that_a_copy_brings(rig: ShardRig, mode: str) -> None:
    """The statement would take them on the target, when the other shards meet it."""
    shards = rig.shards(row=BY_HASH, keys={"shard-mode": mode})
    late = shards.shards[1]
    with shards.copied_late(*late, "TRUNCATE PARTITION p0") as let:
        run = rig.run(shards).start()
        let(run)
        error = run.error()
    assert isinstance(error, ShardError)
    assert error.code == "SHARD-029"
