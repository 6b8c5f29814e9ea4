"""Changes that wait for a sharding DDL, of kinds that are read in another way than plain rows."""

from __future__ import annotations

import pytest

from support.shard_rig import ShardRig
from support.task_runs import newest
from unshard.errors import UnshardError

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_prepared_transactions(rig: ShardRig) -> None:
    """What is committed arrives, what is rolled back does not; an ordinary transaction goes over both tables."""
    shards = rig.shards()
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        for number, end in enumerate(("COMMIT", "ROLLBACK"), 1):
            xid = f"'{rig.name} {number}'"
            rows = [
                f"INSERT INTO {shards.at(table)} (id, v) VALUES ({shards.id('s1', table, number)}, '{end}')"
                for table in (0, 1)
            ]
            rig.source.run(f"XA START {xid}", *rows, f"XA END {xid}", f"XA PREPARE {xid}", f"XA {end} {xid}")
        run.catch_up()
        assert len(shards.merged_rows()) == 3
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.settle(run)


def test_safe_mode(rig: ShardRig) -> None:
    """A held row that the target has already is replaced, as all others are."""
    shards = rig.shards(syncer={"safe-mode": True})
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="1")
        rig.target.run(f"INSERT INTO {shards.merged} VALUES ({shards.id('s1', 0, 1)}, 'mine')")
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.settle(run)


def test_a_held_table_is_dropped_and_made_again(rig: ShardRig) -> None:
    """Rows of both lives arrive, also where the second begins with IF NOT EXISTS, for which the name is free."""
    shards = rig.shards()
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="1")
        first = rig.source.query(f"SELECT * FROM {shards.at(0)}")
        shards.run("s1", f"DROP TABLE {shards.at(0)}")
        run.catch_up()
        run.stop()
    with rig.run(shards) as run:
        run.reach("sync")
        shards.run("s1", f"CREATE TABLE IF NOT EXISTS {shards.at(0)} ({shards.row}, c INT)")
        shards.insert("s1", 0, 2, c="2")
        run.catch_up()
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.insert("s1", 0, 3, c="3")
        shards.wait_in_step(run)
        assert shards.merged_rows() == sorted([*first, *shards.expected()])


def test_what_stops_a_re_sync_is_told_with_its_own_place(rig: ShardRig) -> None:
    """Not with that of the next transaction, in a later file: a human would leave out that one."""
    shards = rig.shards()
    run = rig.run(shards).start()
    run.catch_up()
    shards.alter("s1", 0, "ADD COLUMN c INT")
    shards.insert("s1", 0, 1, c="1")
    first = newest(rig.source).file
    rig.target.run(f"INSERT INTO {shards.merged} VALUES ({shards.id('s1', 0, 1)}, 'mine')")
    rig.source.run("FLUSH BINARY LOGS")
    shards.insert("s1", 1, 1)
    run.catch_up()
    shards.alter("s1", 1, "ADD COLUMN c INT")
    assert isinstance(run.error(), UnshardError)
    stopped = f"`meta_{rig.name}`.`{rig.name}_stopped`"
    assert rig.target.query(f"SELECT binlog_name FROM {stopped}") == [(first,)]


def test_a_transaction_prepared_before_the_log_that_is_left(rig: ShardRig) -> None:
    """It is committed while a shard is held, and its prepare is purged: it has no row of a shard that is read again."""
    other, xid = f"`{rig.name}_s`.`z`", f"'{rig.name}'"
    shards = rig.shards()
    rig.source.run(f"CREATE TABLE {other} (id INT PRIMARY KEY)")
    with rig.run(shards) as run:
        run.catch_up()
        rows = f"INSERT INTO {other} VALUES (1)"
        rig.source.run(f"XA START {xid}", rows, f"XA END {xid}", f"XA PREPARE {xid}")
        rig.source.run("FLUSH BINARY LOGS")
        shards.alter("s1", 0, "ADD COLUMN c INT")
        kept = newest(rig.source).file
        shards.insert("s1", 0, 1, c="1")
        rig.source.run(f"XA COMMIT {xid}")
        shards.insert("s1", 0, 2, c="2")
        run.catch_up()
    for file in (rig.folder / "relay").glob("**/mysql-bin.*"):
        if file.name < kept:
            file.unlink()
    with rig.run(shards) as run:
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.settle(run)
        assert rig.target.query(f"SELECT id FROM {other}") == [(1,)]
