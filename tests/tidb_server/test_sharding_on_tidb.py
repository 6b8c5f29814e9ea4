"""Sharding DDL into TiDB: shards meet it in their own words, and TiDB's are found when it is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import ctl
from support.shard_rig import ShardRig
from support.shard_runs import Shards
from support.task_runs import TaskRun
from unshard.errors import UnshardError
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


def columns(shards: Shards) -> list[str]:
    return [row[0] for row in shards.target.query(f"SHOW COLUMNS FROM {shards.merged}")]


def refused(rig: ShardRig, shards: Shards) -> str:
    """The code of the error that a run stops with."""
    found = TaskRun(shards.files(), rig.spark).start().error()
    assert isinstance(found, UnshardError)
    return found.code


def test_shards_with_other_defaults_have_the_same_ddl(rig: ShardRig) -> None:
    """The text says nothing of the character set that each table gives to its new column."""
    shards = rig.shards(2)
    for source, charset in (("s1", "latin1"), ("s2", "utf8mb4 COLLATE utf8mb4_unicode_ci")):
        shards.alter(source, 1, f"DEFAULT CHARSET {charset}")
    with rig.run(shards) as run:
        run.catch_up()
        for source in shards.sources:
            for table in (1, 0):
                shards.alter(source, table, "ADD COLUMN note VARCHAR(20) NOT NULL DEFAULT 'none'")
                shards.insert(source, table, 1, note="'é'")
        shards.settle(run)


def test_a_ddl_that_depends_on_one_that_still_waits(rig: ShardRig) -> None:
    """TiDB drops no column of a key over several; the key is not there yet when the first shard meets the DROP."""
    shards = rig.shards(2)
    changes = (
        "ADD COLUMN c INT, ADD KEY both_of (c, v)",
        "DROP COLUMN c",
        "ADD CONSTRAINT short CHECK (v <> 'x')",
        "DROP CONSTRAINT short",
        "ADD COLUMN d INT",
    )
    with rig.run(shards) as run:
        run.catch_up()
        for source, table in shards.shards:
            for number, change in enumerate(changes, 1):
                shards.alter(source, table, change)
                shards.insert(source, table, number)
            run.catch_up()
        shards.settle(run)
    assert columns(shards) == ["id", "v", "d"]
    assert {row[2] for row in shards.target.query(f"SHOW INDEX FROM {shards.merged}")} == {"PRIMARY", "both_of"}


def test_what_an_operator_gives_is_held_against_the_sources_own_words(rig: ShardRig) -> None:
    shards = rig.shards()
    task = str(shards.files().task_path)
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="1")
        run.catch_up()
    shards.alter("s1", 1, "ADD COLUMN c INT NULL DEFAULT NULL")
    shards.insert("s1", 1, 1, c="1")
    assert refused(rig, shards) == "SHARD-001"
    ctl("binlog", "replace", task, "-s", "s1", f"ALTER TABLE {shards.at(1)} ADD COLUMN c INT")
    with rig.run(shards) as run:
        shards.settle(run)
    assert columns(shards) == ["id", "v", "c"]
