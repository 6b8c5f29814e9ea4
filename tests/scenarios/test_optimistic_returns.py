"""Optimistic mode: rows of shards that the task leaves out for a while keep the values of all their columns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.operated_tasks import ctl
from support.optimistic_runs import has_columns, in_step, merged_rows, optimistic
from support.shard_rig import ShardRig
from support.shard_runs import Shards, take_out
from support.task_runs import TaskRun
from unshard.errors import UnshardError

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.scenarios]


def take_again(rig: ShardRig, shards: Shards, table: int) -> None:
    """Do as the stop at a table says that an earlier list left out. Its rows have not changed meanwhile."""
    error = TaskRun(shards.files(), rig.spark).start().error()
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-084"
    files = shards.files()
    schema, name = f"{rig.name}_s", f"t_{table}"
    for source in files.source_paths:
        ctl("binlog-schema", "update", str(files.task_path), schema, name, "--from-source", "-s", str(source))


@pytest.mark.parametrize("way", ["taken out", "left out by a list"])
def test_old_rows_keep_the_values_of_columns_that_the_others_lack(way: str, rig: ShardRig) -> None:
    """One is its own, and one is dropped by the others in the meantime."""
    shards = optimistic(rig, row="id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, n INT NOT NULL DEFAULT 3")
    both = [shard for shard in shards.shards if (shard[0] == "s2" if way == "taken out" else shard[1] == 1)]
    rest = [shard for shard in shards.shards if shard not in both]
    with rig.run(shards) as run:
        run.catch_up()
        for shard in both:
            shards.alter(*shard, "ADD COLUMN c INT NOT NULL DEFAULT 0")
            shards.update(*shard, 0, "c = 7, n = 8")
        in_step(run, shards)
    files = shards.files()
    if way == "taken out":
        take_out(files, "s2")
        without = replace(files, sources={"s1": rig.servers["s1"]})
    else:
        lists = {"block-allow-list": {"most": {"ignore-tables": [{"db-name": f"{rig.name}_s", "tbl-name": "t_1"}]}}}
        without = replace(files, keys={**files.keys, **lists}, instance={**files.instance, "block-allow-list": "most"})
    with TaskRun(without.write(), rig.spark) as run:
        for shard in rest:
            shards.alter(*shard, "DROP COLUMN n, ADD COLUMN more INT")
            shards.insert(*shard, 1)
        has_columns(run, shards, "id", "v", "n", "c", "more")
        shards.wait_in_step(run)
    for shard in both:
        shards.insert(*shard, 1)
    if way == "left out by a list":
        take_again(rig, shards, 1)
    with rig.run(shards) as run:
        in_step(run, shards, {"c": 0, "n": 3})
        for shard in both:
            shards.alter(*shard, "DROP COLUMN c, DROP COLUMN n")
        has_columns(run, shards, "id", "v", "more")
        shards.wait_in_step(run)


def test_a_narrower_type_does_not_cut_rows_of_absent_shards(rig: ShardRig) -> None:
    """The task stops, until a human has decided about these rows."""
    shards = optimistic(rig, tables=1)
    with rig.run(shards) as run:
        run.catch_up()
        shards.update("s2", 0, 0, "v = 'a text of 20 letters'")
        in_step(run, shards)
    files = shards.files()
    take_out(files, "s2")
    without = replace(files, sources={"s1": rig.servers["s1"]})
    shards.alter("s1", 0, "MODIFY v VARCHAR(9) NOT NULL")
    error = TaskRun(without.write(), rig.spark).start().error()
    assert isinstance(error, UnshardError)
    assert "'v'" in str(error)
    long = shards.id("s2", 0, 0)
    assert merged_rows(shards)[long]["v"] == "a text of 20 letters"
    same = f"ALTER TABLE {shards.at(0)} MODIFY v VARCHAR(9) NOT NULL"
    ctl("binlog", "replace", str(without.task_path), "-s", "s1", same)
    with TaskRun(without, rig.spark) as run:
        shards.insert("s1", 0, 1)
        shards.wait_in_step(run)
    assert merged_rows(shards)[long]["v"] == "a text of", "a human gave the statement as it is"
