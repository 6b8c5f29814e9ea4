"""`shard-mode: optimistic` between MySQL servers, whose log has no names of columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.optimistic_runs import OPTIMISTIC, has_columns, in_step
from support.shard_runs import Shards
from support.task_runs import TaskRun
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_shards_are_altered_one_by_one(
    spark: SparkSession, mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    """They differ when they are copied: the second shard has a column of its own."""
    shards = Shards(schema, {"s1": mysql_source}, mysql_target, tmp_path, tables=3, keys=OPTIMISTIC)
    shards.alter("s1", 1, "ADD COLUMN own VARCHAR(9) NOT NULL DEFAULT 'none'")
    add, rename = "ADD COLUMN c INT NOT NULL DEFAULT 4, ALGORITHM=INSTANT", "RENAME COLUMN c TO e"
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        in_step(run, shards, {"own": "none"})
        shards.alter("s1", 0, add)
        shards.insert("s1", 0, 1, c="6")
        shards.update("s1", 0, 0, "c = 7")
        in_step(run, shards, {"own": "none", "c": 4})
        for table in (1, 2):
            shards.alter("s1", table, add)
            shards.update("s1", table, 0, "v = 'changed'")
        in_step(run, shards, {"own": "none"})
        for table in (0, 1, 2):
            shards.alter("s1", table, rename)
            shards.insert("s1", table, 2, e="9")
        shards.alter("s1", 1, "DROP COLUMN own")
        has_columns(run, shards, "id", "v", "e")
        in_step(run, shards)
