"""A source fails over to its replica while a sharding DDL waits, or while what was held is read again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.replicas import Pair, replicated
from support.shard_runs import Shards, ends_at
from support.task_runs import TaskFiles, TaskRun
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with replicated() as pair:
        yield pair


def by_gtid(shards: Shards) -> TaskFiles:
    return replace(shards.files(), source={"enable-gtid": True}).write()


@pytest.mark.parametrize("place", ["", "sync-open-after:2"], ids=["it waits", "an open batch"])
def test_what_is_held_is_read_from_the_log_of_the_replica(
    place: str,
    pair: Pair,
    target_server: MariadbServer,
    schema: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    shards = Shards(schema, {"s1": pair.primary}, target_server, tmp_path)
    with TaskRun(by_gtid(shards), spark) as run:
        run.catch_up()
        for number, column in enumerate("cd", 1):
            shards.alter("s1", 0, f"ADD COLUMN {column} INT")
            shards.insert("s1", 0, number, **{column: "1"})
            shards.update("s1", 0, 0, f"{column} = {number}")
        shards.insert("s1", 1, 1)
        run.catch_up()
        assert shards.held()
    if place:
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.insert("s1", 1, 2, c="2")
        assert ends_at(place, by_gtid(shards), spark, monkeypatch)
    pair.promote()
    shards.sources = {"s1": pair.replica}
    assert ends_at("sync-cross-before", by_gtid(shards), spark, monkeypatch)
    with TaskRun(by_gtid(shards), spark) as run:
        shards.insert("s1", 0, 3, d="3")
        run.catch_up()
        if not place:
            shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.alter("s1", 1, "ADD COLUMN d INT")
        shards.update("s1", 1, 0, "d = 8")
        shards.settle(run)


def test_statements_that_a_copy_has_go_over_to_the_replica(
    pair: Pair,
    target_server: MariadbServer,
    schema: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The first of two is met, the checkpoint lies before the snapshot that both are in."""
    early = ["ADD COLUMN c INT", "ADD COLUMN d INT NULL DEFAULT 7"]
    still = {"checkpoint-flush-interval": 600}  # no move of the checkpoint by the clock: they are counted
    shards = Shards(schema, {"s1": pair.primary}, target_server, tmp_path, tables=3, syncer=still)
    with shards.copied_late("s1", 1, *early) as let:
        assert ends_at("sync-move-after:2", by_gtid(shards), spark, monkeypatch, let)
    assert shards.items("s1", 1) == 1
    pair.promote()
    shards.sources = {"s1": pair.replica}
    with TaskRun(by_gtid(shards), spark) as run:
        shards.insert("s1", 1, 1, d="1")
        for change in early:
            for table in (0, 2):
                shards.alter("s1", table, change)
                shards.update("s1", table, 0, "v = CONCAT(v, '+')")
        shards.settle(run)
