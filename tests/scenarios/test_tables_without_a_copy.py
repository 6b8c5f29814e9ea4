"""Tables in mode `all` that the dump's flags leave out: a human brings their rows, and the task follows them."""

from __future__ import annotations

import pytest

from support.shard_rig import ShardRig
from support.shard_runs import ROW, Shards
from support.task_runs import TaskRun

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.scenarios]


def partly_copied(rig: ShardRig) -> Shards:
    """Three shards of which the last one isn't copied by the task."""
    shards = rig.shards(tables=3, row=f"{ROW}, c INT")
    names = ",".join(f"{rig.name}_s.t_{table}" for table in (0, 1))
    shards.instance = {**shards.instance, "mydumper": {"extra-args": f"-T {names}"}}
    return shards


def bring_the_last(shards: Shards) -> None:
    shards.target.run(f"INSERT INTO {shards.merged} VALUES ({shards.id('s1', 2, 0)}, 'row 0', NULL)")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_DDL_waits_for_a_shard_of_which_nothing_came_yet(restarts: bool, rig: ShardRig) -> None:
    shards = partly_copied(rig)
    files = shards.files()

    def end(run: TaskRun) -> None:
        shards.insert("s1", 2, 1, c="5")
        shards.alter("s1", 2, "DROP COLUMN c")
        shards.settle(run)

    with TaskRun(files, rig.spark) as run:
        run.reach("sync")
        run.catch_up()
        bring_the_last(shards)
        for table in (0, 1):
            shards.alter("s1", table, "DROP COLUMN c")
        run.catch_up()
        assert shards.held() == 3, "the last one is a member"
        assert "c" in {name for name, *_ in shards.target.query(f"SHOW COLUMNS FROM {shards.merged}")}
        if not restarts:
            end(run)
    if restarts:
        with TaskRun(files, rig.spark) as run:
            end(run)


def test_a_shard_that_is_made_behind_the_copy_is_met_once(rig: ShardRig) -> None:
    """The listing at the start has it already; its CREATE comes with the log."""
    shards = partly_copied(rig)
    files = shards.files()
    run = TaskRun(files, rig.spark)
    (subtask,) = run.crew.subtasks
    assert subtask.dump is not None
    subtask.beginning.checkpoint()
    subtask.dump.run()
    shards.run("s1", f"CREATE TABLE {shards.at(3)} ({ROW}, c INT)")
    shards.shards.append(("s1", 3))
    shards.insert("s1", 3, 1)
    with TaskRun(files, rig.spark) as run:
        run.reach("sync")
        run.catch_up()
        bring_the_last(shards)
        for table in range(4):
            shards.alter("s1", table, "DROP COLUMN c")
        shards.settle(run)


def test_a_task_of_an_earlier_version_learns_of_such_a_shard_when_it_starts_again(rig: ShardRig) -> None:
    """Its record of the source's tables lacks the shard, which joined the group at its first DDL only."""
    shards = partly_copied(rig)
    files = shards.files()
    with TaskRun(files, rig.spark) as run:
        run.reach("sync")
        run.catch_up()
        bring_the_last(shards)
    shards.target.run(f"DELETE FROM {files.meta}.{files.name}_shard_lock")
    with TaskRun(files, rig.spark) as run:
        for table in (0, 1):
            shards.alter("s1", table, "DROP COLUMN c")
        run.catch_up()
        assert shards.held() == 3
        shards.insert("s1", 2, 1, c="5")
        shards.alter("s1", 2, "DROP COLUMN c")
        shards.settle(run)
