"""`shard-mode: optimistic` into TiDB, on real servers: two sources of two shards each."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.optimistic_runs import has_columns, in_step, optimistic
from support.shard_rig import ShardRig
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.fixture
def rig(
    schema: str,
    source_server: MariadbServer,
    second_source: MariadbServer,
    tidb: TidbServer,
    tmp_path: Path,
    spark: SparkSession,
) -> ShardRig:
    return ShardRig(schema, {"s1": source_server, "s2": second_source}, tidb, tmp_path, spark)


def test_a_column_comes_with_the_first_shard_and_goes_with_the_last(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        first, *others = shards.shards
        shards.alter(*first, "ADD COLUMN c INT NOT NULL DEFAULT 5")
        for shard in shards.shards:
            shards.insert(*shard, 1)
        shards.insert(*first, 2, c="8")
        in_step(run, shards, {"c": 5})
        for shard in others:
            shards.alter(*shard, "ADD COLUMN c INT NOT NULL DEFAULT 5")
            shards.insert(*shard, 3, c="9")
            shards.update(*shard, 1, "c = 6")
        in_step(run, shards)
        *others, last = shards.shards
        for shard in others:
            shards.alter(*shard, "DROP COLUMN c")
            shards.insert(*shard, 4)
        shards.insert(*last, 4, c="7")
        in_step(run, shards)
        has_columns(run, shards, "id", "v", "c")
        shards.alter(*last, "DROP COLUMN c")
        shards.insert(*last, 5)
        has_columns(run, shards, "id", "v")
        in_step(run, shards)
