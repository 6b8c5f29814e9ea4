"""The rig of the tests of sharding."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shard_rig import ShardRig
from unshard.testing.mariadb_server import MariadbServer


@pytest.fixture
def rig(
    schema: str,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    tmp_path: Path,
    spark: SparkSession,
) -> ShardRig:
    return ShardRig(schema, {"s1": source_server, "s2": second_source}, target_server, tmp_path, spark)
