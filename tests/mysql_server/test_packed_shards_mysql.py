"""Sharding DDL over transactions that the source has compressed: many changes of all shards in one event."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shard_runs import Shards
from support.task_runs import TaskRun
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
HELD, FREE, OTHER = 0, 1, 2


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_what_is_held_and_what_moves_in_packed_transactions(
    delivery: str,
    spark: SparkSession,
    packing_mysql: MysqlServer,
    mysql_target: MysqlServer,
    schema: str,
    tmp_path: Path,
) -> None:
    shards = Shards(schema, {"s1": packing_mysql}, mysql_target, tmp_path, 3, keys={"delivery": delivery})
    held, free, other = (shards.at(table) for table in (HELD, FREE, OTHER))
    new, old = shards.id("s1", HELD, 1), shards.id("s1", HELD, 0)

    def many(table: int, first: int) -> str:
        rows = ", ".join(f"({shards.id('s1', table, n)}, '{'x' * 20}')" for n in range(first, first + 100))
        return f"INSERT INTO {shards.at(table)} (id, v) VALUES {rows}"

    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        shards.run("s1", f"INSERT INTO {held} (id, v) VALUES ({new}, 'new')")
        moves = [(new, "new")] if delivery == "exactly-once" else [(new, "new"), (old, "old")]
        packing_mysql.run(
            "BEGIN",
            many(HELD, 100),
            many(OTHER, 100),
            *(f"INSERT INTO {free} VALUES ({id}, '{text}')" for id, text in moves),
            f"UPDATE {held} SET c = 5",
            *(f"DELETE FROM {held} WHERE id = {id}" for id, _ in moves),
            many(HELD, 200),
            "COMMIT",
        )
        shards.alter("s1", HELD, "ADD COLUMN d INT")
        packing_mysql.run("BEGIN", f"UPDATE {held} SET d = id", f"DELETE FROM {other} LIMIT 50", "COMMIT")
        run.catch_up()
        for table in (FREE, OTHER):
            shards.alter("s1", table, "ADD COLUMN c INT")
            packing_mysql.run("BEGIN", f"UPDATE {shards.at(table)} SET c = 7", many(HELD, 300 + 100 * table), "COMMIT")
        run.catch_up()
        for table in (FREE, OTHER):
            shards.alter("s1", table, "ADD COLUMN d INT")
        shards.settle(run)
