"""DDL of merged tables, brought together: the pessimistic protocol on real servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shard_runs import Shards
from task_runs import TaskRun
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_one_source_two_tables_one_column(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    shards = Shards(schema, {"s1": source_server}, target_server, tmp_path)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="7")
        shards.insert("s1", 1, 1)
        shards.update("s1", 0, 0, "c = 5")
        run.catch_up()
        assert shards.held() == 2
        assert len(shards.merged_rows()) == 3
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.insert("s1", 1, 2, c="8")
        shards.delete("s1", 0, 0)
        shards.settle(run)
