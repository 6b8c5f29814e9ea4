"""Optimistic mode: a shard has dropped a column that the others keep, and its statement is left out of the target."""

from __future__ import annotations

import pytest

from support.operated_tasks import ctl
from support.optimistic_runs import merged_rows, optimistic, stopped, waits
from support.shard_rig import ShardRig
from support.shard_runs import Shards

pytestmark = [pytest.mark.server, pytest.mark.spark]


def left_out(rig: ShardRig, column: str, other: str) -> Shards:
    """Two shards of which the first has dropped that column; the target has a row of the first with `other`."""
    shards = optimistic(rig, sources=1)
    for shard in shards.shards:
        shards.delete(*shard, 0)
        shards.alter(*shard, f"ADD COLUMN {column}")
    shards.run("s1", f"INSERT INTO {shards.at(0)} (id, v, made) VALUES (1, 'old', {other})")
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter(*shards.shards[0], "DROP COLUMN made")
        waits(run, shards, "not met by")
        task = str(shards.files().task_path)
        (lock,) = ctl("shard-ddl-lock", task)["locks"]
        words = ["--action", "skip", "--database", f"{rig.name}_s", "--table", "t_0"]
        ctl("-s", "s1", "shard-ddl-lock", "unlock", lock["ID"], task, *words)
        shards.wait_in_step(run)
    return shards


def one_batch(shards: Shards, other: str) -> None:
    """Rows of the shard without the column, and one of the shard with it, which has `other`."""
    server = shards.sources["s1"].connection()
    server.query("BEGIN")
    server.query(f"INSERT INTO {shards.at(0)} (id, v) VALUES (2, 'new')")
    server.query(f"UPDATE {shards.at(0)} SET v = 'newer' WHERE id = 1")
    server.query(f"INSERT INTO {shards.at(1)} (id, v, made) VALUES (10, 'its', {other})")
    server.query("COMMIT")
    server.close()


@pytest.mark.parametrize(
    ("column", "old", "other", "there"),
    [
        ("made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP", "'2021-01-01'", "'2022-01-01'", None),
        *(
            pytest.param(*one, marks=pytest.mark.scenarios)
            for one in (
                ("made DATETIME NULL ON UPDATE CURRENT_TIMESTAMP", "'2021-01-01'", "'2022-01-01'", None),
                ("made DATE NOT NULL", "'2021-01-01'", "'2022-01-01'", None),
                ("made VARCHAR(9) NOT NULL DEFAULT '😀'", "'x'", "'y'", None),
                ("made INT UNIQUE", "7", "8", None),
                ("made INT NOT NULL DEFAULT 5 UNIQUE", "7", "8", 5),
                ("made INT NOT NULL AUTO_INCREMENT, ADD KEY (made)", "7", "18", 8),
                ("made INT AS (id + 1) STORED", "DEFAULT", "DEFAULT", 3),
            )
        ),
    ],
)
def test_rows_of_both_shards_in_one_batch(rig: ShardRig, column: str, old: str, other: str, there: object) -> None:
    shards = left_out(rig, column, old)
    before = merged_rows(shards)[1]["made"]
    one_batch(shards, other)
    with rig.run(shards) as run:
        shards.wait_in_step(run)
    rows = merged_rows(shards)
    assert (rows[2]["v"], rows[2]["made"]) == ("new", there)
    assert rows[1]["v"] == "newer"
    assert rows[1]["made"] == before or "ON UPDATE" in column
    assert (rows[10]["v"], rows[10]["made"] is not None) == ("its", True)


@pytest.mark.parametrize(
    ("column", "code"),
    [("made INT NOT NULL UNIQUE", "SYNC-007"), ("made CHAR(36) NOT NULL DEFAULT (UUID()) UNIQUE", "SHARD-049")],
)
@pytest.mark.scenarios
def test_a_column_of_a_key_that_has_no_one_value(rig: ShardRig, column: str, code: str) -> None:
    """What the error says lets the rows in."""
    shards = left_out(rig, column, "7")
    one_batch(shards, "8")
    assert stopped(rig, shards).code == code
    shards.target.run(f"ALTER TABLE {shards.merged} MODIFY {column.replace('NOT NULL', 'NULL').removesuffix('UNIQUE')}")
    with rig.run(shards) as run:
        shards.wait_in_step(run)
    rows = merged_rows(shards)
    assert [rows[number]["made"] for number in (1, 2, 10)] in ([7, None, 8], ["7", None, "8"])
    assert rows[1]["v"] == "newer"
