"""`shard-mode: optimistic` and letters of four bytes in structures, which SHOW CREATE TABLE has as `?`."""

from __future__ import annotations

import pytest

from support.optimistic_runs import columns, has_columns, in_step, merged_rows, optimistic, waits
from support.shard_rig import ShardRig
from support.shard_runs import Shards

pytestmark = [pytest.mark.server, pytest.mark.spark]

LETTER = "ADD COLUMN a VARCHAR(40) NOT NULL DEFAULT '😀'"


def default(shards: Shards) -> str:
    """The value that a new row of the merged table gets in column `a`; no statement shows it."""
    copy = f"{shards.name}_all.copy_of_t"
    shards.target.run(f"CREATE TABLE {copy} LIKE {shards.merged}")
    shards.target.run(f"INSERT INTO {copy} (id, v) VALUES (1, '')")
    ((found,),) = shards.target.query(f"SELECT a FROM {copy}")
    shards.target.run(f"DROP TABLE {copy}")
    return str(found)


def test_rows_get_the_default_that_the_sources_have(rig: ShardRig) -> None:
    """Old rows, and rows of the shard that meets the statement last."""
    shards = optimistic(rig, tables=1)
    with rig.run(shards) as run:
        run.catch_up()
        first, last = shards.shards
        shards.alter(*first, LETTER)
        waits(run, shards, "not met by")
        shards.insert(*first, 1)
        shards.insert(*last, 1)
        shards.alter(*last, LETTER)
        in_step(run, shards)
        assert {row["a"] for row in merged_rows(shards).values()} == {"😀"}
        shards.alter(*first, "MODIFY a VARCHAR(50) NOT NULL DEFAULT '🎉'")
        waits(run, shards, "not met by")
        shards.alter(*last, "MODIFY a VARCHAR(50) NOT NULL DEFAULT '🎉'")
        shards.wait_in_step(run)
        assert default(shards) == "🎉"
        for shard in shards.shards:
            shards.alter(*shard, "ALTER COLUMN a SET DEFAULT '😀'")
            shards.insert(*shard, 2)
        in_step(run, shards)
        assert default(shards) == "😀"
        for shard in shards.shards:
            shards.alter(*shard, "DROP COLUMN a")
        has_columns(run, shards, "id", "v")


@pytest.mark.parametrize("consistency", ["auto", "flush"])
@pytest.mark.scenarios
def test_shards_that_are_alike_when_they_are_copied(rig: ShardRig, consistency: str) -> None:
    """The table that is made for them has the default of the sources, which none of them shows."""
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, a VARCHAR(40) NOT NULL DEFAULT '😀'"
    instance = {"route-rules": ["fold"], "mydumper": {"extra-args": f"--consistency {consistency}"}}
    shards = optimistic(rig, row=row, instance=instance)
    with rig.run(shards) as run:
        run.catch_up()
        assert default(shards) == "😀"
        shards.alter("s1", 0, "ADD COLUMN c INT")
        has_columns(run, shards, "id", "v", "a", "c")
        assert default(shards) == "😀"
        in_step(run, shards)


@pytest.mark.scenarios
def test_empty_shards_whose_default_nobody_tells(rig: ShardRig) -> None:
    """The target's column has the default that the source shows. Rows have the source's."""
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL DEFAULT '😀'"
    shards = optimistic(rig, row=row)
    for shard in shards.shards:
        shards.delete(*shard, 0)
    with rig.run(shards) as run:
        run.catch_up()
        assert "DEFAULT '?'" in shards.target.query(f"SHOW CREATE TABLE {shards.merged}")[0][1]
        for shard in shards.shards:
            shards.run(shard[0], f"INSERT INTO {shards.at(shard[1])} (id) VALUES ({shards.id(*shard, 1)})")
        shards.alter("s1", 0, "ADD COLUMN c INT")
        has_columns(run, shards, "id", "v", "c")
        in_step(run, shards)


@pytest.mark.scenarios
def test_shards_that_differ_when_they_are_copied(rig: ShardRig) -> None:
    """The target's column has no default rather than another one: each row has the value of its shard."""
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL DEFAULT '😀'"
    shards = optimistic(rig, sources=1, row=row)
    shards.alter("s1", 0, "ADD COLUMN c INT")
    with rig.run(shards) as run:
        in_step(run, shards)
        assert columns(shards) == ["id", "v", "c"]
        assert "?" not in shards.target.query(f"SHOW CREATE TABLE {shards.merged}")[0][1]
        for shard in shards.shards:
            shards.run(shard[0], f"INSERT INTO {shards.at(shard[1])} (id) VALUES ({shards.id(*shard, 1)})")
        shards.alter("s1", 1, "ADD COLUMN c INT")
        in_step(run, shards)
