"""What else happens to shards in optimistic mode: online DDL, a RENAME of a shard, restarts in between."""

from __future__ import annotations

import pytest

from support.optimistic_runs import columns, has_columns, in_step, merged_rows, optimistic
from support.shard_rig import ShardRig
from support.shard_runs import Shards
from support.task_runs import TaskRun
from support.waiting import wait_until

pytestmark = [pytest.mark.server, pytest.mark.spark]

ADD = "ADD COLUMN c INT NOT NULL DEFAULT 5"


def by_gh_ost(shards: Shards, source: str, table: int, change: str, *meanwhile: str) -> None:
    """The statements that gh-ost leaves in the log for an ALTER of a shard."""
    schema = f"`{shards.name}_s`"
    name, ghost, old = (f"{schema}.`{one}`" for one in (f"t_{table}", f"_t_{table}_gho", f"_t_{table}_del"))
    shards.sources[source].run(
        f"CREATE TABLE {ghost} LIKE {name}",
        f"ALTER TABLE {ghost} {change}",
        f"INSERT IGNORE INTO {ghost} (id, v) SELECT id, v FROM {name}",
        *meanwhile,
        f"REPLACE INTO {ghost} (id, v) SELECT id, v FROM {name}",
        f"RENAME TABLE {name} TO {old}, {ghost} TO {name}",
        f"DROP TABLE {old}",
    )


def test_a_shard_is_altered_by_a_tool(rig: ShardRig) -> None:
    shards = optimistic(rig)
    first, *others = shards.shards
    with rig.run(shards) as run:
        run.catch_up()
        row = f"INSERT INTO {shards.at(first[1])} (id, v) VALUES ({shards.id(*first, 1)}, 'row 1')"
        by_gh_ost(shards, *first, ADD, row)
        shards.insert(*first, 2, c="6")
        for shard in others:
            shards.insert(*shard, 1)
        in_step(run, shards, {"c": 5})
    for shard in others:
        by_gh_ost(shards, *shard, ADD)
        shards.insert(*shard, 2, c="7")
    with rig.run(shards) as run:
        in_step(run, shards)
        assert columns(shards) == ["id", "v", "c"]


@pytest.mark.scenarios
def test_a_shard_is_renamed_while_it_is_ahead(rig: ShardRig) -> None:
    shards = optimistic(rig)
    first, *others = shards.shards
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*first, ADD)
        shards.insert(*first, 1, c="6")
        shards.run(first[0], f"RENAME TABLE {shards.at(first[1])} TO {shards.at(7)}")
        shards.shards[0] = renamed = (first[0], 7)
        shards.insert(*renamed, 2, c="8")
        shards.alter(*renamed, "DROP COLUMN c")
        shards.insert(*renamed, 3)
        shards.alter(*others[0], ADD)
        in_step(run, shards)
        for shard in (renamed, *others[1:]):
            shards.alter(*shard, "ADD COLUMN d INT DEFAULT 1")
            shards.insert(*shard, 4, d="2")
        in_step(run, shards, {"d": 1})


def test_a_shard_is_renamed_while_it_waits(rig: ShardRig) -> None:
    """It waits with its own statement under both names, and has the columns that it has upstream."""
    shards = optimistic(rig)
    first, second, *others = shards.shards
    change = "CHANGE v w VARCHAR(20) NOT NULL"
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*second, "ADD COLUMN e INT DEFAULT 5")
        shards.insert(*second, 1, e="6")
        for shard in (first, second):
            shards.alter(*shard, change)
        shards.run(second[0], f"INSERT INTO {shards.at(second[1])} VALUES ({shards.id(*second, 2)}, 'held', 7)")
        shards.run(second[0], f"RENAME TABLE {shards.at(second[1])} TO {shards.at(9)}")
        shards.run(second[0], f"UPDATE {shards.at(9)} SET e = 8 WHERE id = {shards.id(*second, 2)}")
        shards.shards[1] = (second[0], 9)
        run.catch_up()
        for shard in others:
            shards.alter(*shard, change)
        in_step(run, shards, {"e": 5})
        assert columns(shards) == ["id", "w", "e"]
        assert merged_rows(shards)[shards.id(*second, 2)]["e"] == 8


def test_a_task_that_is_stopped_while_a_shard_waits_goes_on(rig: ShardRig) -> None:
    shards = optimistic(rig)
    *others, last = shards.shards
    with rig.run(shards) as run:
        run.catch_up()
        for shard in others:
            shards.alter(*shard, "CHANGE v w VARCHAR(20) NOT NULL")
            shards.run(shard[0], f"INSERT INTO {shards.at(shard[1])} VALUES ({shards.id(*shard, 1)}, 'held')")
        shards.insert(*last, 1)
        wait_until(lambda: shards.id(*last, 1) in merged_rows(shards), "the shard that has not met it goes on")
    with rig.run(shards) as run:
        run.catch_up()
        assert columns(shards) == ["id", "v"]
    shards.alter(*last, "CHANGE v w VARCHAR(20) NOT NULL")
    with TaskRun(shards.files(), rig.spark) as run:
        has_columns(run, shards, "id", "w")
        in_step(run, shards)
