"""Rows that move under their key between shards while a sharding DDL waits: none is lost, or the task says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from operated import ctl, stopped_run
from shard_runs import Shards, ends_at
from task_runs import TaskRun
from unshard.errors import UnshardError
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]
HELD, FREE = 0, 1


def _at_least_once(shards: Shards) -> None:
    shards.keys = {"delivery": "at-least-once"}


def _safe_mode(shards: Shards) -> None:
    shards.syncer = {"safe-mode": True}


def _one_by_one(shards: Shards) -> None:
    shards.syncer = {"compact": False}


MODES = {"one-by-one": _one_by_one, "at-least-once": _at_least_once, "safe-mode": _safe_mode}
"""With the last two a row of the target is written over, and nobody is told."""


@pytest.fixture
def shards(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> Shards:
    return Shards(schema, {"s1": source_server}, target_server, tmp_path)


def move(shards: Shards, number: int, there: int, to: int, *, first: str = "INSERT", v: str = "v") -> None:
    """The row goes over in one transaction, which begins with that; the shards may differ in a last column."""
    row = f"WHERE id = {shards.id('s1', HELD, number)}"
    copy = f"INSERT INTO {shards.at(to)} (id, v) SELECT id, {v} FROM {shards.at(there)} {row}"
    if first == "DELETE":
        server = shards.sources["s1"]
        ((id, text),) = server.query(f"SELECT id, {v} FROM {shards.at(there)} {row}")
        copy = f"INSERT INTO {shards.at(to)} (id, v) VALUES ({id}, '{text}')"
    steps = [copy, f"DELETE FROM {shards.at(there)} {row}"]
    shards.sources["s1"].run("BEGIN", *(steps if first == "INSERT" else reversed(steps)), "COMMIT")


@pytest.mark.parametrize("mode", ["one-by-one", "at-least-once"])
def test_a_row_that_came_and_went_while_its_shard_was_held(
    mode: str, shards: Shards, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process ends in the re-sync, which leaves its INSERT, UPDATE and DELETE out."""
    MODES[mode](shards)
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        shards.insert("s1", HELD, 1, c="1")
        shards.update("s1", HELD, 1, "v = 'moves'")
        move(shards, 1, HELD, FREE)
        run.catch_up()
    shards.alter("s1", FREE, "ADD COLUMN c INT")
    shards.insert("s1", HELD, 2, c="2")
    place = "sync-close-before" if mode == "one-by-one" else "sync-move-before"
    assert ends_at(place, files, spark, monkeypatch)
    with TaskRun(files, spark) as run:
        shards.settle(run)


@pytest.mark.parametrize(("mode", "first"), [("at-least-once", "INSERT"), ("safe-mode", "DELETE")])
def test_a_row_that_was_there_before(mode: str, first: str, shards: Shards, spark: SparkSession) -> None:
    """Its new row is written over the old one, which waits to be deleted; across a stop of the task too."""
    MODES[mode](shards)
    moved = f"WHERE id = {shards.id('s1', HELD, 0)}"
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        move(shards, 0, HELD, FREE, first=first, v="'moved'")
        run.catch_up()
    with TaskRun(shards.files(), spark) as run:
        shards.run("s1", f"UPDATE {shards.at(FREE)} SET v = 'stays' {moved}")
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN c INT")
        shards.run("s1", f"UPDATE {shards.at(FREE)} SET c = 5 {moved}")
        shards.settle(run)


def test_a_row_that_moves_between_two_ddl(shards: Shards, spark: SparkSession) -> None:
    """It is found by the structures that its shards had then: the key has another place in each."""
    _at_least_once(shards)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT FIRST")
        shards.alter("s1", HELD, "ADD COLUMN d INT FIRST")
        move(shards, 0, HELD, FREE, first="DELETE")
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN c INT FIRST")
        shards.insert("s1", FREE, 1, c="1")
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN d INT FIRST")
        shards.wait_in_step(run)
        query = "SELECT id, v, c, d FROM {} ORDER BY id"
        rows = [row for n in (HELD, FREE) for row in shards.sources["s1"].query(query.format(shards.at(n)))]
        assert list(shards.target.query(query.format(shards.merged))) == sorted(rows)


@pytest.mark.parametrize("mode", ["exactly-once", "at-least-once"])
def test_a_row_that_goes_to_a_held_shard_and_comes_back(mode: str, shards: Shards, spark: SparkSession) -> None:
    MODES.get(mode, lambda shards: None)(shards)
    with TaskRun(shards.files(), spark) as run:
        run.reach("sync")
        run.catch_up()
        shards.alter("s1", FREE, "ADD COLUMN c INT")
        move(shards, 0, HELD, FREE)
        run.catch_up()
        move(shards, 0, FREE, HELD)
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        shards.settle(run)


def test_the_task_stops_at_the_new_shard_and_gets_past_it(shards: Shards, spark: SparkSession) -> None:
    """Exactly once the free shard's INSERT meets the old row, and is not written over it."""
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        run.catch_up()
    move(shards, 0, HELD, FREE)
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SHARD-035", error
    lock, table = f"{shards.name}-`{shards.name}_all`.`t`", f"{shards.name}_s.t_{HELD} of s1"
    assert lock in str(error) and table in str(error) and "binlog skip" in str(error), error
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    with TaskRun(files, spark) as run:
        shards.alter("s1", FREE, "ADD COLUMN c INT")
        _others_arrive(shards, run, 0)


@pytest.mark.parametrize("change", ["both have it", "its key is given away"])
def test_what_no_order_puts_right_stops_the_task(change: str, shards: Shards, spark: SparkSession) -> None:
    _safe_mode(shards)
    files, row = shards.files(), f"WHERE id = {shards.id('s1', HELD, 0)}"
    with TaskRun(files, spark) as run:
        run.catch_up()
        shards.alter("s1", HELD, "ADD COLUMN c INT")
        if change == "both have it":
            shards.update("s1", HELD, 0, "c = 1")
        else:
            shards.run("s1", f"UPDATE {shards.at(HELD)} SET id = 5 {row}")
        shards.run("s1", f"INSERT INTO {shards.at(FREE)} (id, v) VALUES ({shards.id('s1', HELD, 0)}, 'twice')")
        run.catch_up()
    shards.alter("s1", FREE, "ADD COLUMN c INT")
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert error.code == "SHARD-031" and f"{shards.name}_s.t_{HELD}" in str(error), error
    ctl("binlog", "skip", str(files.task_path), "-s", "s1")
    with TaskRun(files, spark) as run:
        _others_arrive(shards, run, 0, 5)


def _others_arrive(shards: Shards, run: TaskRun, *numbers: int) -> None:
    """All but the rows of these numbers, which a human is to put right."""
    shards.insert("s1", FREE, 2, c="2")
    shards.wait_in_step(run)
    moved = [shards.id("s1", HELD, number) for number in numbers]
    rows = [row for row in shards.expected() if row[0] not in moved]
    assert [row for row in shards.merged_rows() if row[0] not in moved] == rows
