"""A sharding DDL that dies behind each of its durable writes in turn: it is resolved, and every change applied once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shard_runs import Shards, ends_at, take_out
from support.task_runs import Command, TaskRun
from support.waiting import wait_until
from unshard.model.table import TableName
from unshard.testing.applied_once import not_once
from unshard.testing.binlog_count import row_log
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]

ENDS = (
    "sync-move-before",
    "sync-move-after",
    "sync-move-before:2",
    "sync-move-after:2",
    "shard-report-before",
    "shard-report-after",
    "sync-open-before",
    "sync-open-after",
    "ddl-execute-before",
    "ddl-execute-after",
    "ddl-noted",
    "sync-close-before",
    "sync-close-after",
    "sync-open-before:2",
    "sync-open-after:2",
    "sync-close-before:2",
    "sync-close-after:2",
)
"""Of the driver: an error there leaves in the target what a kill would, and a run in a thread costs no JVM."""
KILLS = ("ddl-execute-after", "sync-chunk-commit:1")


def change(shards: Shards, number: int) -> None:
    """All shards get a column, with changes of both structures around it, and a statement between what is held."""
    for table in (0, 1):
        shards.alter("s1", table, f"ADD COLUMN c_{number} INT")
        for row in range(3):
            shards.insert("s1", 0, 10 * (number + 1) + 5 * table + row, **{f"c_{number}": str(row)})
    shards.update("s1", 1, 0, f"c_{number} = {number}")
    shards.alter("s1", 2, f"ADD COLUMN c_{number} INT")
    shards.update("s1", 2, 0, f"c_{number} = {number}")


def assert_each_once(shards: Shards, source: MariadbServer, target: MariadbServer) -> None:
    assert shards.merged_rows() == shards.expected()
    merged = TableName(f"{shards.name}_all", "t")
    log = row_log(source, [TableName(f"{shards.name}_s", f"t_{table}") for table in range(shards.tables)])
    against = not_once((replace(event, table=merged) for event in log), target, [merged])
    assert not against, "\n".join(against)


@pytest.fixture
def shards(source: MariadbServer, target: MariadbServer, schema: str, tmp_path: Path) -> Shards:
    # no move of the checkpoint by the clock: the places are counted
    syncer = {"compact": False, "batch": 2, "checkpoint-flush-interval": 600}
    return Shards(schema, {"s1": source}, target, tmp_path, tables=3, syncer=syncer)


@pytest.mark.parametrize("places", [ENDS[:9], ENDS[9:]], ids=["met", "run"])
def test_every_end_leaves_every_change_applied_once(
    places: Sequence[str],
    shards: Shards,
    spark: SparkSession,
    source: MariadbServer,
    target: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    for number, place in enumerate(places):
        change(shards, number)
        assert ends_at(place, shards.files(), spark, monkeypatch), place
    with TaskRun(shards.files(), spark) as run:
        shards.wait_in_step(run)
    assert_each_once(shards, source, target)


@pytest.mark.faults
def test_every_death_leaves_every_change_applied_once(
    shards: Shards, spark: SparkSession, source: MariadbServer, target: MariadbServer
) -> None:
    """The command itself and its Spark worker, by SIGKILL."""
    with TaskRun(shards.files(), spark) as run:
        run.catch_up()
    for number, place in enumerate(KILLS):
        change(shards, number)
        with Command(shards.files(), crash_at=place) as command:
            command.dies(place)
    with TaskRun(shards.files(), spark) as run:
        shards.wait_in_step(run)
    assert_each_once(shards, source, target)


def test_deaths_between_statements_that_a_copy_has(
    shards: Shards, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """t_1 is copied behind two DDL that the others meet in sync; nothing of them is left to run then."""
    early = ["ADD COLUMN c INT", "ADD COLUMN d INT NULL DEFAULT 7"]
    files = shards.files()
    with shards.copied_late("s1", 1, *early) as let:
        assert ends_at("sync-move-before:2", files, spark, monkeypatch, let)
    met = [shards.items("s1", 1)]
    for place in ("sync-move-after", "sync-move-before", "sync-move-after"):
        assert ends_at(place, files, spark, monkeypatch), place
        met.append(shards.items("s1", 1))
    assert met == [0, 1, 1, 2]
    shards.insert("s1", 1, 1, c="1")
    for table in (0, 2):
        shards.insert("s1", table, 1)
        shards.alter("s1", table, early[0])
        shards.insert("s1", table, 2, c="2")
    for place in ("shard-report-after", "sync-move-before", "sync-move-after"):
        assert ends_at(place, files, spark, monkeypatch), place
    with TaskRun(files, spark) as run:
        for table in (0, 2):
            shards.alter("s1", table, early[1])
            shards.update("s1", table, 0, "d = 8")
        shards.settle(run)


@pytest.mark.parametrize("place", ["sync-move-before:2", "sync-move-after:2"])
@pytest.mark.parametrize("model", [0, 1], ids=["altered", "as before"])
@pytest.mark.faults
def test_a_death_while_a_new_shard_joins_a_ddl_that_waits(
    place: str, model: int, shards: Shards, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new table is declared to other sources before the group and the checkpoint have it."""
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
    shards.alter("s1", 0, "ADD COLUMN c INT")
    shards.run("s1", f"CREATE TABLE {shards.at(3)} LIKE {shards.at(model)}")
    shards.run("s1", f"INSERT INTO {shards.at(3)} (id, v) VALUES (7, 'new')")
    assert ends_at(place, files, spark, monkeypatch)
    with TaskRun(files, spark) as run:
        for table in (1, 2) if model == 0 else (1, 2, 3):
            shards.alter("s1", table, "ADD COLUMN c INT")
        shards.settle(run)


@pytest.mark.faults
def test_an_owner_that_dies_in_its_ddl_and_is_taken_out_of_the_task_comes_back(
    shards: Shards, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
    for number, place in enumerate(("ddl-execute-before", "ddl-execute-after")):
        change(shards, number)
        assert ends_at(place, files, spark, monkeypatch), place
        take_out(files, "s1")
    with TaskRun(files, spark) as run:
        shards.settle(run)


@pytest.mark.faults
def test_the_next_owner_goes_on_with_the_ddl_of_one_that_is_taken_out(
    source: MariadbServer,
    second_source: MariadbServer,
    target: MariadbServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It dies before the target has the DDL, behind it, and the next one too; both go on where they were."""
    syncer = {"checkpoint-flush-interval": 600}
    shards = Shards(schema, {"s1": source, "s2": second_source}, target, tmp_path, tables=1, syncer=syncer)
    files = shards.files()
    rest = replace(files, sources={"s2": second_source})
    with TaskRun(files, spark) as run:
        run.catch_up()
    for number, place in enumerate(("ddl-execute-before", "ddl-execute-after")):

        def meet(run: TaskRun, number: int = number) -> None:
            shards.alter("s1", 0, f"ADD COLUMN c_{number} INT NOT NULL DEFAULT 7")
            shards.insert("s1", 0, number + 1)
            wait_until(lambda: shards.held() == 1, "s1 has met it")
            wait_until(lambda: shards.owner() == "s1", "s1 has reported it")
            shards.alter("s2", 0, f"ADD COLUMN c_{number} INT NOT NULL DEFAULT 7")
            shards.update("s2", 0, 0, f"c_{number} = 8")

        assert ends_at(place, files, spark, monkeypatch, meet), place
        take_out(files, "s1")
        assert ends_at("sync-close-before", rest.write(), spark, monkeypatch)
        with TaskRun(rest, spark) as run:
            run.catch_up()
            wait_until(lambda: shards.held() == 1, "s2 is in step, s1 is not there")
        with TaskRun(files.write(), spark) as run:
            shards.settle(run)
