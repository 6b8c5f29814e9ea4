"""Optimistic mode: a target that was altered by hand loses nothing, nor do old rows of a shard that lacks a column."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from support.operated_tasks import ctl
from support.optimistic_runs import has_columns, in_step, merged_rows, optimistic, stopped
from support.shard_rig import ShardRig
from support.waiting import wait_until
from unshard.cli.app import app

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.scenarios
@pytest.mark.parametrize(
    ("real", "change", "value"),
    [
        ("v VARCHAR(90) NOT NULL", "MODIFY v VARCHAR(40) NOT NULL", "v" * 80),
        ("v TEXT NOT NULL", "MODIFY v VARCHAR(40) NOT NULL", "v" * 800),
        ("v VARCHAR(20) NULL", "MODIFY v VARCHAR(40) NOT NULL", None),
        ("n BIGINT NOT NULL", "MODIFY n INT NOT NULL DEFAULT 1", 1 << 40),
        ("d DECIMAL(20,6) NOT NULL", "MODIFY d DECIMAL(12,2) NOT NULL DEFAULT 1.5", "12.345678"),
        (
            "t DATETIME(6) NOT NULL",
            "MODIFY t DATETIME(3) NOT NULL DEFAULT '2001-01-01 00:00:00'",
            "2020-01-01 01:01:01.123456",
        ),
        ("e ENUM('a','b','c','d') NOT NULL", "MODIFY e ENUM('a','b','c') NOT NULL DEFAULT 'a'", "d"),
    ],
)
def test_a_column_that_was_widened_by_hand(real: str, change: str, value: Any, rig: ShardRig) -> None:
    """Somebody has written a row that only the wider column takes."""
    row = (
        "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, n SMALLINT NOT NULL DEFAULT 1,"
        " d DECIMAL(9,2) NOT NULL DEFAULT 1.5, t DATETIME(0) NOT NULL DEFAULT '2001-01-01 00:00:00',"
        " e ENUM('a','b') NOT NULL DEFAULT 'a'"
    )
    shards = optimistic(rig, row=row)
    first = shards.shards[0]
    name = real.split(" ")[0]
    with rig.run(shards) as run:
        run.catch_up()
        shards.target.run(f"ALTER TABLE {shards.merged} MODIFY {real}")
        literal = "NULL" if value is None else repr(value)
        own = {"v": "'x'", name: literal}
        shards.target.run(
            f"INSERT INTO {shards.merged} (id, {', '.join(own)}) VALUES (99999999, {', '.join(own.values())})"
        )
        shards.alter(*first, change)
        shards.insert(*first, 1)
        shards.wait_in_step(run)
        found = merged_rows(shards)[99999999][name]
        assert (found if value is None or isinstance(value, int) else str(found)) == value
        shards.alter(*first, "ADD COLUMN c INT")
        has_columns(run, shards, "id", "v", "n", "d", "t", "e", "c")


def test_digits_that_would_be_rounded(rig: ShardRig) -> None:
    """The task stops; it goes on when the column takes both."""
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, d DECIMAL(9,2) NOT NULL DEFAULT 1.5"
    shards = optimistic(rig, row=row)
    with rig.run(shards) as run:
        run.catch_up()
    shards.target.run(f"ALTER TABLE {shards.merged} MODIFY d DECIMAL(10,4) NOT NULL")
    shards.target.run(f"INSERT INTO {shards.merged} (id, v, d) VALUES (99999999, 'x', 1.2345)")
    shards.alter(*shards.shards[0], "MODIFY d DECIMAL(12,2) NOT NULL")
    shards.insert(*shards.shards[0], 1, d="1234567890.12")
    error = stopped(rig, shards)
    assert error.code == "SHARD-053"
    assert "decimal(12,2) and decimal(10,4)" in str(error)
    shards.target.run(f"ALTER TABLE {shards.merged} MODIFY d DECIMAL(14,4) NOT NULL")
    with rig.run(shards) as run:
        shards.wait_in_step(run)
    found = merged_rows(shards)
    assert str(found[99999999]["d"]) == "1.2345"
    assert str(found[shards.id(*shards.shards[0], 1)]["d"]) == "1234567890.1200"


@pytest.mark.scenarios
def test_a_column_that_was_dropped_by_hand(rig: ShardRig) -> None:
    """The target refuses the statement, and its error says so; a human's word lets the task go on."""
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
    shards.target.run(f"ALTER TABLE {shards.merged} ADD COLUMN w INT, DROP COLUMN v")
    first = shards.shards[0]
    shards.alter(*first, "MODIFY v VARCHAR(40) NOT NULL")
    error = stopped(rig, shards)
    assert "v" in str(error)
    shards.target.run(f"ALTER TABLE {shards.merged} ADD COLUMN v VARCHAR(40) NOT NULL DEFAULT ''")
    ctl("binlog", "skip", str(shards.files().task_path), "-s", str(error.where.source))
    with rig.run(shards) as run:
        shards.insert(*first, 1)
        shards.wait_in_step(run)
        assert merged_rows(shards)[shards.id(*first, 1)]["v"] == "row 1"


@pytest.mark.parametrize(
    "by_hand", ["DROP COLUMN g", pytest.param("DROP COLUMN g, DROP COLUMN c", marks=pytest.mark.scenarios)]
)
def test_a_column_that_the_target_does_not_drop(by_hand: str, rig: ShardRig) -> None:
    """No shard has it any more. What the error says ends the stop: what hinders it is removed, or its work is done."""
    shards = optimistic(
        rig, tables=1, row="id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, c INT, d INT, KEY (d)"
    )
    with rig.run(shards) as run:
        run.catch_up()
    shards.target.run(f"ALTER TABLE {shards.merged} ADD COLUMN g INT AS (c + 1) VIRTUAL")
    for shard in shards.shards:
        shards.alter(*shard, "DROP COLUMN c, DROP KEY d, DROP COLUMN d")
    error = stopped(rig, shards)
    assert (error.code, error.where.position) == ("SHARD-054", None)
    assert "DROP COLUMN `c`" in str(error)
    skip = ["ctl", "binlog", "skip", str(shards.files().task_path), "-s", str(error.where.source)]
    refused = CliRunner().invoke(app, skip)
    assert (refused.exit_code, "SYNC-068" in refused.output) == (1, True), refused.output
    shards.target.run(f"ALTER TABLE {shards.merged} {by_hand}")
    with rig.run(shards) as run:
        has_columns(run, shards, "id", "v")
        for shard in shards.shards:
            shards.insert(*shard, 1)
        in_step(run, shards)


KEYS = {
    "one key": "PRIMARY KEY (id)",
    "several keys": "PRIMARY KEY (id), UNIQUE KEY (u)",
    "a key that folds": "PRIMARY KEY (id, v)",
}


@pytest.mark.scenarios
@pytest.mark.parametrize(
    "syncer", [{}, {"compact": True, "multiple-rows": False}, {"compact": False}, {"compact": True}]
)
@pytest.mark.parametrize("key", KEYS)
def test_an_old_row_keeps_the_value_of_a_column_that_its_shard_has_dropped(
    key: str, syncer: dict[str, Any], rig: ShardRig
) -> None:
    """An UPDATE leaves it; a new row of the same key gets the rule, in one batch with the DELETE or not."""
    row = f"id BIGINT NOT NULL, v VARCHAR(20) NOT NULL, u BIGINT, c INT NOT NULL DEFAULT 5, {KEYS[key]}"
    shards = optimistic(rig, row=row, syncer=syncer)
    first, *others = shards.shards
    for number in range(1, 8):
        shards.insert(*first, number, c="6", u=str(shards.id(*first, number)))
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*first, "DROP COLUMN c")
        shards.wait_in_step(run)
    shards.update(*first, 1, "u = NULL")
    shards.delete(*first, 2)
    shards.insert(*first, 2)
    shards.update(*first, 2, "u = NULL")
    shards.update(*first, 3, "u = NULL")
    shards.delete(*first, 3)
    shards.insert(*first, 3)
    shards.insert(*first, 8)
    shards.update(*first, 8, "u = 88888888")
    shards.update(*first, 4, f"id = {shards.id(*first, 104)}")
    shards.update(*first, 5, "v = 'other'")
    shards.update(*first, 5, "u = NULL")
    shards.delete(*first, 6)
    for shard in others:
        shards.insert(*shard, 1, c="9")
        shards.update(*shard, 1, "c = 10")
    with rig.run(shards) as run:
        run.catch_up()
        last = shards.id(*first, 8)
        wait_until(lambda: last in merged_rows(shards), "the last row")
        shards.wait_in_step(run)
    rows = merged_rows(shards)
    found = {number: rows[shards.id(*first, number)]["c"] for number in (0, 1, 2, 3, 5, 7, 8)}
    assert found == {0: 5, 1: 6, 2: 5, 3: 5, 5: 6, 7: 6, 8: 5}
    assert {rows[shards.id(*shard, 1)]["c"] for shard in others} == {10}
    assert shards.id(*first, 6) not in rows
    assert rows[shards.id(*first, 104)]["v"] == "row 4"
    for shard in others:
        shards.alter(*shard, "DROP COLUMN c")
    with rig.run(shards) as run:
        has_columns(run, shards, "id", "v", "u")


@pytest.mark.scenarios
def test_images_that_lack_columns(rig: ShardRig) -> None:
    """With `binlog_row_image = MINIMAL` an UPDATE has only what it changes."""
    shards = optimistic(rig, row="id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, c INT NOT NULL DEFAULT 5")
    first = shards.shards[0]
    for number in (1, 2):
        shards.insert(*first, number, c="6")
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*first, "DROP COLUMN c")
        shards.wait_in_step(run)
        update = f"UPDATE {shards.at(first[1])} SET v = 'new' WHERE id = {shards.id(*first, 1)}"
        insert = f"INSERT INTO {shards.at(first[1])} VALUES ({shards.id(*first, 3)}, 'row 3')"
        shards.sources["s1"].run("SET binlog_row_image = MINIMAL", update, insert)
        run.catch_up()
        wait_until(lambda: shards.id(*first, 3) in merged_rows(shards), "the new row")
    rows = merged_rows(shards)
    assert [rows[shards.id(*first, number)]["c"] for number in (1, 2, 3)] == [6, 6, 5]
    assert rows[shards.id(*first, 1)]["v"] == "new"
