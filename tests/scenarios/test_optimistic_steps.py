"""Optimistic mode: the driver dies at each step of a statement, or of the record of a merged table, and goes on."""

from __future__ import annotations

import pytest

from support.operated_tasks import ctl
from support.optimistic_runs import columns, has_columns, in_step, merged_rows, optimistic, stopped, waits
from support.shard_rig import ShardRig
from support.shard_runs import ends_at

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.scenarios
@pytest.mark.parametrize(
    "place",
    ["sync-move-before", "sync-move-after", "sync-open-before", "sync-open-after", "merged-ask-before",
     "merged-ask-after", "merged-begin-before", "merged-begin-after", "ddl-execute-before", "ddl-execute-after",
     "ddl-noted", "sync-close-before", "sync-close-after"],
)  # fmt: skip
def test_a_death_at_any_step(rig: ShardRig, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = optimistic(rig, sources=1)
    with rig.run(shards) as run:
        run.catch_up()
    first, last = shards.shards
    shards.alter(*first, "ADD COLUMN c INT NOT NULL DEFAULT 5")
    shards.insert(*first, 1, c="6")
    shards.insert(*last, 1)
    assert ends_at(place, shards.files(), rig.spark, monkeypatch)
    with rig.run(shards) as run:
        in_step(run, shards, {"c": 5})
    shards.alter(*first, "DROP COLUMN c")
    shards.alter(*first, "CHANGE v w VARCHAR(20) NOT NULL")
    shards.alter(*last, "ADD COLUMN c INT NOT NULL DEFAULT 5")
    shards.alter(*last, "DROP COLUMN c")
    shards.alter(*last, "CHANGE v w VARCHAR(20) NOT NULL")
    assert ends_at(place, shards.files(), rig.spark, monkeypatch)
    with rig.run(shards) as run:
        has_columns(run, shards, "id", "w")
        in_step(run, shards)


@pytest.mark.scenarios
@pytest.mark.parametrize(
    "place",
    ["merged-note-before", "merged-note-after", "merged-end-before", "merged-end-after", "merged-register-before",
     "merged-register-after"],
)  # fmt: skip
def test_a_death_at_a_step_that_runs_nothing(rig: ShardRig, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source takes note of the other's column, gets it itself, and loses a shard."""
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
    (one, other, third, last) = shards.shards
    for shard in (one, third, other):
        shards.alter(*shard, "ADD COLUMN c INT NOT NULL DEFAULT 5")
        shards.insert(*shard, 1, c="6")
    gone = shards.id(*last, 0)
    shards.run(last[0], f"DROP TABLE {shards.at(last[1])}")
    assert ends_at(place, shards.files(), rig.spark, monkeypatch)
    with rig.run(shards) as run:
        shards.wait_in_step(run)
        rows = merged_rows(shards)
        assert rows.pop(gone)["c"] == 5
        assert {row["c"] for number, row in rows.items() if number % 10_000 == 1} == {6}
        assert columns(shards) == ["id", "v", "c"]


@pytest.mark.scenarios
@pytest.mark.parametrize("place", ["merged-give-up-before", "merged-give-up-after"])
def test_a_death_when_a_change_is_given_up(rig: ShardRig, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = optimistic(rig, sources=1)
    with rig.run(shards) as run:
        run.catch_up()
    for shard in shards.shards:
        shards.alter(*shard, "ADD COLUMN n INT NOT NULL AUTO_INCREMENT UNIQUE")
    assert ends_at(place, shards.files(), rig.spark, monkeypatch)
    error = stopped(rig, shards)
    assert error.code in ("SHARD-036", "DDL-038")
    other = f"ALTER TABLE {shards.at(0)} ADD COLUMN n INT"
    ctl("binlog", "replace", str(shards.files().task_path), "-s", "s1", other)
    with rig.run(shards) as run:
        shards.wait_in_step(run)
        assert columns(shards) == ["id", "v", "n"]


@pytest.mark.scenarios
@pytest.mark.parametrize("op", ["skip", "replace"])
@pytest.mark.parametrize("place", ["merged-operate-before", "merged-operate-after"])
def test_a_death_at_a_decision(rig: ShardRig, place: str, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A human's decision about a statement that waits is applied once."""
    shards = optimistic(rig, sources=1)
    first, last = shards.shards
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*first, "ADD COLUMN made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP")
        waits(run, shards, "not met by")
        (reading,) = run.crew.readings()
        assert reading.sync is not None
        begin = reading.sync.groups[0].first_location.split(" ")[0]
    other = [f"ALTER TABLE {shards.at(first[1])} ADD COLUMN made DATETIME NULL"] if op == "replace" else []
    ctl("binlog", op, str(shards.files().task_path), "-s", "s1", "-b", begin, *other)
    assert ends_at(place, shards.files(), rig.spark, monkeypatch)
    with rig.run(shards) as run:
        shards.insert(*first, 1, made="'2021-01-01 01:01:01'")
        shards.insert(*last, 1)
        shards.wait_in_step(run)
        found = {number: row["made"] for number, row in merged_rows(shards).items()}
        own = shards.id(*first, 1)
        assert {own, shards.id(*last, 1)} <= found.keys()
        assert {number for number, made in found.items() if made is not None} == {own}
