"""`shard-mode: optimistic` from a MySQL before 8.0 into a TiDB."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.optimistic_runs import OPTIMISTIC, has_columns, in_step
from support.shard_runs import Shards
from support.task_runs import TaskRun
from unshard.testing.mysql_server import Mysql56Server
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_text_keeps_its_collation(spark: SparkSession, tidb: TidbServer, schema: str, tmp_path: Path) -> None:
    """MySQL before 8.0 names no collation where it is general_ci; from 8.0 on the same text means another one."""
    with Mysql56Server() as source:
        shards = Shards(schema, {"s1": source}, tidb, tmp_path, keys=OPTIMISTIC)
        with TaskRun(shards.files(), spark) as run:
            run.reach("sync")
            for change in (
                "MODIFY v VARCHAR(40) NOT NULL",
                "ADD KEY by_v (v), ADD COLUMN w VARCHAR(9)",
                "CHANGE v x VARCHAR(40) NOT NULL",
            ):
                for table in (0, 1):
                    shards.alter("s1", table, change)
            has_columns(run, shards, "id", "x", "w")
            in_step(run, shards)
    asked = "SELECT DISTINCT COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND DATA_TYPE = %s"
    assert tidb.query(asked, (f"{schema}_all", "varchar")) == [("utf8mb4_general_ci",)]
