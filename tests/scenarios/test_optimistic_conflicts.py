"""Optimistic mode: statements of shards that contradict each other, or that the target refuses, and the ways out."""

from __future__ import annotations

import pytest

from support.operated_tasks import ctl
from support.optimistic_runs import columns, has_columns, holds, in_step, merged_rows, optimistic, stopped, waits
from support.shard_rig import ShardRig
from support.waiting import wait_until

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_one_name_with_two_types(rig: ShardRig) -> None:
    """The second shard waits, and the status names both types; it goes on when the first one has dropped its column."""
    shards = optimistic(rig)
    first, second, *others = shards.shards
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*first, "ADD COLUMN c INT")
        shards.insert(*first, 1, c="1")
        has_columns(run, shards, "id", "v", "c")
        shards.alter(*second, "ADD COLUMN c VARCHAR(10)")
        shards.insert(*second, 1, c="'one'")
        waits(run, shards, "column c is", "int", "varchar(10)")
        for shard in others:
            shards.insert(*shard, 1)
        wait_until(lambda: {shards.id(*shard, 1) for shard in others} <= merged_rows(shards).keys(), "other shards")
        shards.alter(*first, "DROP COLUMN c")
        shards.insert(*first, 2)
        wait_until(lambda: shards.id(*second, 1) in merged_rows(shards), "the shard that waited")
        in_step(run, shards)
        assert merged_rows(shards)[shards.id(*second, 1)]["c"] == "one"


def test_a_rename_on_one_shard_against_add_and_drop_on_another(rig: ShardRig) -> None:
    """They are two things: the rename waits for all shards, and is left out where the others will not meet it."""
    shards = optimistic(rig)
    first, second, *others = shards.shards
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*first, "CHANGE v w VARCHAR(20) NOT NULL")
        shards.run(first[0], f"INSERT INTO {shards.at(first[1])} (id, w) VALUES ({shards.id(*first, 1)}, 'renamed')")
        for shard in (second, *others):
            shards.alter(*shard, "ADD COLUMN w VARCHAR(20) NOT NULL DEFAULT '', DROP COLUMN v")
            shards.run(shard[0], f"INSERT INTO {shards.at(shard[1])} (id, w) VALUES ({shards.id(*shard, 1)}, 'added')")
        waits(run, shards, "can't meet it: it has no column v and has column w already")
        later = {shards.id(*shard, 1) for shard in (second, *others)}
        wait_until(lambda: later <= merged_rows(shards).keys(), "the shards with ADD and DROP go on")
        assert merged_rows(shards)[shards.id(*first, 0)]["v"] == "row 0", "the last shard with the column"
        task = str(shards.files().task_path)
        (lock,) = ctl("shard-ddl-lock", task)["locks"]
        words = ["--action", "skip", "--database", f"{rig.name}_s", "--table", f"t_{first[1]}"]
        ctl("-s", first[0], "shard-ddl-lock", "unlock", lock["ID"], task, *words)
        shards.wait_in_step(run)
    assert columns(shards) == ["id", "v", "w"], "the values that were renamed are in v"
    rows = merged_rows(shards)
    assert {rows[shards.id(*shard, 1)]["w"] for shard in (second, *others)} == {"added"}
    assert rows[shards.id(*first, 1)]["w"] == "renamed"


def test_one_name_in_two_cases(rig: ShardRig) -> None:
    """The column has the case of the statement that reaches the target first, whichever others follow."""
    shards = optimistic(rig)
    first, *others = shards.shards

    def adds(shard: tuple[str, int], name: str) -> None:
        shards.alter(*shard, f"ADD COLUMN {name} VARCHAR(10) NOT NULL DEFAULT 'none'")
        row = f"{shards.id(*shard, 1)}, 'row 1', 'some'"
        shards.run(shard[0], f"INSERT INTO {shards.at(shard[1])} (id, v, {name}) VALUES ({row})")

    with rig.run(shards) as run:
        run.catch_up()
        adds(first, "Note")
        has_columns(run, shards, "id", "v", "Note")
        for shard, name in zip(others, ("note", "NOTE", "Note"), strict=True):
            adds(shard, name)
        shards.wait_in_step(run)
        assert columns(shards) == ["id", "v", "Note"]
        rows = merged_rows(shards)
        assert {rows[shards.id(*shard, 0)]["Note"] for shard in shards.shards} == {"none"}
        assert {rows[shards.id(*shard, 1)]["Note"] for shard in shards.shards} == {"some"}
        for shard, name in zip(shards.shards, ("NOTE", "Note", "note", "NOTE"), strict=True):
            shards.alter(*shard, f"DROP COLUMN {name}")
        has_columns(run, shards, "id", "v")


@pytest.mark.scenarios
def test_a_statement_that_the_target_refuses_in_the_middle(rig: ShardRig) -> None:
    """Somebody has made a key of that name on the target by hand: the task stops, and goes on when it is dropped."""
    shards = optimistic(rig)
    first, *others = shards.shards
    with rig.run(shards) as run:
        run.catch_up()
    shards.target.run(f"ALTER TABLE {shards.merged} ADD KEY k (v)")
    shards.alter(*first, "ADD COLUMN c INT DEFAULT 5, ADD KEY k (c)")
    shards.insert(*first, 1, c="6")
    for shard in others:
        shards.insert(*shard, 1)
    error = stopped(rig, shards)
    assert "k" in str(error), error
    shards.target.run(f"ALTER TABLE {shards.merged} DROP KEY k")
    with rig.run(shards) as run:
        has_columns(run, shards, "id", "v", "c")
        in_step(run, shards, {"c": 5})
        for shard in others:
            shards.alter(*shard, "ADD COLUMN c INT DEFAULT 5, ADD KEY k (c)")
            shards.insert(*shard, 2, c="7")
        in_step(run, shards)
    assert holds(shards, {})
    keys = {row[2] for row in shards.target.query(f"SHOW KEYS FROM {shards.merged}")}
    assert keys == {"PRIMARY", "k"}
