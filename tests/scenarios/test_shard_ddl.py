"""Each folder of tests/scenarios/shard_ddl, on real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.scenario_folders import Scenario
from support.source_servers import new_source
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
FOLDERS = sorted(path for path in Path(__file__).with_name("shard_ddl").iterdir() if path.is_dir())

QUICK = frozenset({"in_the_middle_of_a_transaction_load", "many_sources_many_tables", "rename_within_the_group"})
"""One each of those that merge by one statement, by many, and that change the group: for `make test`."""


def of_its_suite(folder: Path) -> Any:
    return pytest.param(folder, id=folder.name, marks=() if folder.name in QUICK else pytest.mark.scenarios)


@pytest.fixture(scope="module")
def more_sources() -> Iterator[tuple[ThrowawayServer, ThrowawayServer]]:
    with new_source(3) as third, new_source(4) as fourth:
        yield third, fourth


@pytest.mark.parametrize("folder", [of_its_suite(folder) for folder in FOLDERS])
def test_the_merged_table_is_as_the_folder_says(
    folder: Path,
    source_server: ThrowawayServer,
    second_source: ThrowawayServer,
    more_sources: tuple[ThrowawayServer, ThrowawayServer],
    target_server: ThrowawayServer,
    spark: SparkSession,
    schema: str,
    tmp_path: Path,
) -> None:
    servers = dict(zip(("s1", "s2", "s3", "s4"), (source_server, second_source, *more_sources), strict=True))
    Scenario(folder, schema, servers, target_server, tmp_path, spark).play()
