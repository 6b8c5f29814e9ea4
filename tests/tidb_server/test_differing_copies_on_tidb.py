"""Sharding DDL into TiDB where the copies of the shards have other columns than each other (folders of scenarios)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.scenario_folders import Scenario
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
FOLDERS = Path(__file__).parents[1] / "scenarios" / "shard_ddl"


@pytest.mark.parametrize(
    "folder", ["copies_that_differ", "in_all_copies_of_one_source", "in_the_copy_what_cannot_be_kept"]
)
def test_the_merged_table_is_as_the_folder_says(
    folder: str,
    source_server: MariadbServer,
    second_source: MariadbServer,
    tidb: TidbServer,
    spark: SparkSession,
    schema: str,
    tmp_path: Path,
) -> None:
    Scenario(FOLDERS / folder, schema, {"s1": source_server, "s2": second_source}, tidb, tmp_path, spark).play()
