"""Sharding without a copy: shards of which the log brings nothing before another shard's ALTER has been run."""

from __future__ import annotations

from typing import Any

import pytest

from support.shard_rig import ShardRig
from support.shard_runs import ROW, Shards
from support.task_runs import TaskRun
from support.waiting import wait_until

pytestmark = [pytest.mark.server, pytest.mark.spark]


def begun(rig: ShardRig, mode: str = "optimistic", **given: Any) -> Shards:
    """Shards whose rows the target has already; the task goes on from now."""
    shards = rig.shards(keys={"task-mode": "incremental", "shard-mode": mode}, **given)
    rig.target.run(f"CREATE DATABASE {rig.name}_all", f"CREATE TABLE {shards.merged} ({ROW})")
    for row, text in shards.expected():
        rig.target.run(f"INSERT INTO {shards.merged} VALUES ({row}, '{text}')")
    return shards


def settled(shards: Shards, run: TaskRun) -> None:
    shards.wait_in_step(run)
    width = max(len(row) for row in shards.merged_rows())
    padded = [(*row, *([None] * (width - len(row)))) for row in shards.expected()]
    assert shards.merged_rows() == padded


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("first", ["a row", "its ALTER"])
def test_a_shards_first_event_comes_behind_an_ALTER_of_another_one(first: str, restarts: bool, rig: ShardRig) -> None:
    shards = begun(rig)
    files = shards.files()

    def alter_the_other_one(run: TaskRun) -> None:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="7")
        wait_until(lambda: len(shards.merged_rows()[0]) == 3, "the target has the column")
        settled(shards, run)

    def follow(run: TaskRun) -> None:
        if first == "a row":
            shards.insert("s1", 1, 1)
            shards.update("s1", 1, 0, "v = 'changed'")
            settled(shards, run)
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.insert("s1", 1, 2, c="8")
        settled(shards, run)

    with TaskRun(files, rig.spark) as run:
        alter_the_other_one(run)
        if not restarts:
            follow(run)
    if restarts:
        with TaskRun(files, rig.spark) as run:
            follow(run)


@pytest.mark.scenarios
@pytest.mark.parametrize("first", ["a row", "its ALTER"])
def test_all_has_been_altered_before_the_task_goes_on(first: str, rig: ShardRig) -> None:
    """Neither end has the structure any more that the shard's first event was written with."""
    shards = begun(rig)
    files = shards.files()
    with TaskRun(files, rig.spark) as run:
        run.catch_up()
    shards.alter("s1", 0, "ADD COLUMN c INT")
    shards.insert("s1", 0, 1, c="7")
    if first == "a row":
        shards.insert("s1", 1, 1)
    shards.alter("s1", 1, "ADD COLUMN c INT")
    shards.insert("s1", 1, 2, c="8")
    with TaskRun(files, rig.spark) as run:
        settled(shards, run)


@pytest.mark.scenarios
@pytest.mark.parametrize("first", ["a row", "its ALTER"])
def test_a_shard_whose_first_event_comes_while_another_one_waits(first: str, rig: ShardRig) -> None:
    """In pessimistic mode the target keeps its structure until all of its shards have the statement."""
    shards = begun(rig, "pessimistic")
    files = shards.files()
    with TaskRun(files, rig.spark) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="7")
        run.catch_up()
    if first == "a row":
        shards.insert("s1", 1, 1)
    shards.alter("s1", 1, "ADD COLUMN c INT")
    shards.insert("s1", 1, 2, c="8")
    with TaskRun(files, rig.spark) as run:
        shards.settle(run)


@pytest.mark.scenarios
def test_a_shard_that_lacks_a_column_of_the_target_from_the_start(rig: ShardRig) -> None:
    """Others have given it to the target."""
    shards = begun(rig)
    rig.target.run(f"ALTER TABLE {shards.merged} ADD COLUMN c INT")
    with rig.run(shards) as run:
        run.catch_up()
        shards.insert("s1", 1, 1)
        settled(shards, run)


@pytest.mark.scenarios
@pytest.mark.parametrize("late", ["a row", "its ALTER"])
def test_another_sources_shard_whose_first_event_comes_behind(late: str, rig: ShardRig) -> None:
    shards = begun(rig, sources=2, tables=1)
    files = shards.files()
    with TaskRun(files, rig.spark) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="7")
        wait_until(lambda: len(shards.merged_rows()[0]) == 3, "the target has the column")
        settled(shards, run)
    with TaskRun(files, rig.spark) as run:
        if late == "a row":
            shards.insert("s2", 0, 1)
            settled(shards, run)
        shards.alter("s2", 0, "ADD COLUMN c INT")
        shards.insert("s2", 0, 2, c="8")
        settled(shards, run)
