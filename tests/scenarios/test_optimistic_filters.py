"""Optimistic mode: the target keeps what a statement drops that an event filter or an operator leaves out."""

from __future__ import annotations

import pytest

from support.operated_tasks import ctl
from support.optimistic_runs import columns, has_columns, merged_rows, optimistic
from support.shard_rig import ShardRig
from support.task_runs import newest
from support.waiting import wait_until

pytestmark = [pytest.mark.server, pytest.mark.spark]

DROP = "DROP COLUMN n"
ROW = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, n INT NOT NULL DEFAULT 3"


def test_a_column_whose_drop_a_filter_leaves_out(rig: ShardRig) -> None:
    """Also where the same ALTER adds another one, and with the statements that come later."""
    keep = {"schema-pattern": f"{rig.name}_*", "table-pattern": "*", "events": ["drop column"], "action": "Ignore"}
    keys = {"filters": {"keep": keep}, "shard-mode": "optimistic"}
    shards = rig.shards(2, row=ROW, keys=keys, instance={"route-rules": ["fold"], "filter-rules": ["keep"]})
    first, *others = shards.shards
    old = shards.id(*first, 0)
    with rig.run(shards) as run:
        run.catch_up()
        shards.update(*first, 0, "n = 8")
        shards.alter(*first, f"{DROP}, ADD COLUMN c INT")
        for shard in others:
            shards.alter(*shard, DROP)
            shards.alter(*shard, "ADD COLUMN c INT")
        for shard in shards.shards:
            shards.insert(*shard, 1, c="5")
        shards.update(*first, 0, "v = 'later'")
        shards.wait_in_step(run)
        has_columns(run, shards, "id", "v", "n", "c")
        wait_until(lambda: merged_rows(shards)[old]["v"] == "later", "the last change")
        rows = merged_rows(shards)
        assert rows[old]["n"] == 8
        assert {rows[shards.id(*shard, 1)]["n"] for shard in shards.shards} == {3}, "the target's default"


def test_a_column_whose_drop_an_operator_leaves_out(rig: ShardRig) -> None:
    shards = optimistic(rig, sources=1, row=ROW)
    task = str(shards.files().task_path)
    with rig.run(shards) as run:
        run.catch_up()
    for shard in shards.shards:
        place = newest(shards.sources["s1"])
        shards.alter(*shard, DROP)
        ctl("binlog", "skip", task, "-s", "s1", "-b", str(place))
    with rig.run(shards) as run:
        for shard in shards.shards:
            shards.insert(*shard, 1)
        shards.wait_in_step(run)
        assert columns(shards) == ["id", "v", "n"]
        assert {row["n"] for row in merged_rows(shards).values()} == {3}


@pytest.mark.scenarios
def test_a_column_whose_drop_is_left_out_behind_a_statement_that_waits(rig: ShardRig) -> None:
    """When its turn comes nothing holds it, and the operator is for this shard all the same."""
    shards = optimistic(rig, sources=1, row=ROW)
    first, last = shards.shards
    old, task = shards.id(*first, 0), str(shards.files().task_path)
    with rig.run(shards) as run:
        run.catch_up()
        shards.update(*first, 0, "n = 8")
        shards.alter(*first, "COMMENT = 'for all'")
        place = newest(shards.sources["s1"])
        shards.alter(*first, DROP)
        wait_until(lambda: shards.items(*first) == 2, "both wait")
        ctl("binlog", "skip", task, "-s", "s1", "-b", str(place))
        shards.alter(*last, "COMMENT = 'for all'")
        shards.wait_in_step(run)
        shards.alter(*last, DROP)
        for shard in shards.shards:
            shards.insert(*shard, 1)
        shards.wait_in_step(run)
        wait_until(lambda: shards.id(*last, 1) in merged_rows(shards), "the last row")
        rows = merged_rows(shards)
        assert columns(shards) == ["id", "v", "n"]
        assert rows[old]["n"] == 8
        assert {rows[shards.id(*shard, 1)]["n"] for shard in shards.shards} == {3}
