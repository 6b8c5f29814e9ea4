"""`shard-mode: optimistic` with shards that differ when they are copied: the target gets the join of all."""

from __future__ import annotations

from typing import Any

import pytest

from support.optimistic_runs import columns, in_step, merged_rows, optimistic
from support.shard_rig import ShardRig
from support.shard_runs import Shards
from support.task_runs import TaskRun
from support.waiting import wait_until
from unshard.errors import UnshardError
from unshard.load.empty_tables import EmptyTables
from unshard.model.table import TableName

pytestmark = [pytest.mark.server, pytest.mark.spark]


def unlike(rig: ShardRig) -> Shards:
    """Four shards of two sources: with a column more, a wider one, one that may be NULL, and a key."""
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, n SMALLINT NOT NULL DEFAULT 1"
    shards = optimistic(rig, row=row)
    changes = (
        "ADD COLUMN c INT NOT NULL",
        "MODIFY v VARCHAR(60) NOT NULL, ADD KEY (v)",
        "MODIFY n BIGINT NULL DEFAULT 1",
        "ADD COLUMN d VARCHAR(9) DEFAULT 'x' AFTER id",
    )
    for shard, change in zip(shards.shards, changes, strict=True):
        shards.insert(*shard, 1)
        shards.alter(*shard, change)
    return shards


def test_the_target_takes_the_rows_of_all(rig: ShardRig) -> None:
    shards = unlike(rig)
    long, null = shards.shards[1:3]
    shards.update(*long, 0, "v = REPEAT('v', 50)")
    shards.update(*null, 0, "n = NULL")
    with rig.run(shards) as run:
        in_step(run, shards, {"c": 0, "d": "x"})
        assert sorted(columns(shards)) == ["c", "d", "id", "n", "v"]
        shards.insert(*shards.shards[0], 2, c="2")
        for shard in shards.shards[1:]:
            shards.insert(*shard, 2)
            shards.delete(*shard, 1)
        in_step(run, shards, {"c": 0, "d": "x"})
        shards.alter(*shards.shards[1], "ADD COLUMN c INT NOT NULL, DROP KEY v")
        for shard in shards.shards[2:]:
            shards.alter(*shard, "ADD COLUMN c INT NOT NULL")
            shards.insert(*shard, 3, c="7")
        in_step(run, shards, {"d": "x"})
        shards.alter(*shards.shards[3], "DROP COLUMN d")
        in_step(run, shards)


def test_a_table_that_several_sources_fill_is_altered_and_not_made_anew(
    rig: ShardRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[TableName] = []

    def take_away(tables: EmptyTables, connection: Any, name: TableName) -> bool:
        taken.append(name)
        return False

    monkeypatch.setattr(EmptyTables, "take_away", take_away)
    shards = unlike(rig)
    with rig.run(shards) as run:
        in_step(run, shards, {"c": 0, "d": "x"})
    assert taken == [], "another source may have begun to load into it"


def test_shards_are_altered_while_they_are_copied(rig: ShardRig) -> None:
    shards = optimistic(rig)
    late = shards.shards[1]
    changes = ("ADD COLUMN c INT NOT NULL DEFAULT 5", "ADD COLUMN d INT")
    with shards.copied_late(*late, *changes) as go_on, rig.run(shards) as run:
        go_on(run)
        in_step(run, shards, {"c": 5, "d": None})
        for shard in shards.shards:
            shards.insert(*shard, 7)
        in_step(run, shards, {"c": 5, "d": None})
        assert merged_rows(shards)[shards.id(*late, 7)]["c"] == 5


def test_a_statement_for_all_shards_that_one_copy_has(rig: ShardRig) -> None:
    """The shard never meets it; the others run it, and wait for nobody else."""
    shards = optimistic(rig)
    late, change = shards.shards[1], "ADD UNIQUE KEY u (v, id)"
    with shards.copied_late(*late, change) as go_on, rig.run(shards) as run:
        go_on(run)
        in_step(run, shards)
        for shard in shards.shards:
            if shard != late:
                shards.alter(*shard, change)
        for shard in shards.shards:
            shards.insert(*shard, 7)
        in_step(run, shards)
        keys = shards.target.query(f"SHOW KEYS FROM {shards.merged} WHERE Key_name = 'u'")
        assert len(keys) == 2
        for shard in shards.shards:
            shards.alter(*shard, "DROP KEY u")
        in_step(run, shards)
        wait_until(lambda: not shards.target.query(f"SHOW KEYS FROM {shards.merged} WHERE Key_name = 'u'"), "no key")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ADD COLUMN made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP", ("made", "no constant value")),
        ("MODIFY v INT NOT NULL", ("column v", "int", "varchar(20)")),
        ("ADD COLUMN u INT NOT NULL UNIQUE", ("column u", "not every shard")),
    ],
)
def test_what_does_not_join_stops_before_its_rows_are_loaded(
    change: str, words: tuple[str, ...], rig: ShardRig
) -> None:
    shards = optimistic(rig)
    for source, table in shards.shards:
        shards.run(source, f"DELETE FROM {shards.at(table)}")
    shards.alter(*shards.shards[-1], change)
    error = TaskRun(shards.files(), rig.spark).start().error()
    assert isinstance(error, UnshardError), error
    assert error.code == "SHARD-040", error
    assert all(word in str(error).lower() for word in words), str(error)
