"""Optimistic mode, and no mode: rows get the values that a DDL gave them on their own source."""

from __future__ import annotations

from typing import Any

import pytest

from support.operated_tasks import ctl
from support.optimistic_runs import optimistic, stopped, write
from support.shard_rig import ShardRig
from support.shard_runs import Shards, ends_at
from support.waiting import wait_until
from unshard.sync.sharding.merged_changes import BegunChange, MergedChanges
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

MADE = "ADD COLUMN made DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP"
OF_A_RUN = [
    "ADD COLUMN u CHAR(36) NOT NULL DEFAULT (UUID())",
    "ADD COLUMN r DOUBLE DEFAULT (RAND())",
    "ADD COLUMN made DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
    "ADD COLUMN w VARCHAR(60) DEFAULT (CURRENT_USER()), ADD COLUMN d DATE DEFAULT (CURDATE())",
]

REFUSED_BY_TIDB = ("UUID()", "RAND()", "CURRENT_USER()")
"""Values that TiDB does not give the rows that a table has: the task stops at the statement, and nothing is altered."""


def alter_at(shards: Shards, source: str, table: int, change: str, timestamp: int) -> None:
    """At that time, in seconds."""
    shards.sources[source].run(f"SET timestamp = {timestamp}", f"ALTER TABLE {shards.at(table)} {change}")


def alter_each(shards: Shards, change: str) -> None:
    """Each shard at a time of its own, with changes before and behind."""
    for number, (source, table) in enumerate(shards.shards):
        for row in range(1, 8):
            shards.insert(source, table, row)
        alter_at(shards, source, table, change, 1_500_000_000 + number)
        shards.update(source, table, 1, "v = 'changed'")
        shards.update(source, table, 2, "made = '2020-01-01 01:01:01'")
        shards.update(source, table, 3, f"id = {shards.id(source, table, 103)}")
        shards.delete(source, table, 4)
        shards.delete(source, table, 5)
        shards.insert(source, table, 5, made="'2021-01-01 01:01:01'")
        shards.insert(source, table, 200)


def times(shards: Shards) -> set[Any]:
    return {made for (made,) in shards.target.query(f"SELECT made FROM {shards.merged}")}


@pytest.mark.scenarios
@pytest.mark.parametrize("change", OF_A_RUN)
@pytest.mark.parametrize("mode", ["optimistic", ""])
def test_a_single_table_has_the_values_of_its_source(mode: str, change: str, rig: ShardRig) -> None:
    shards = rig.shards(1, tables=1, keys={"shard-mode": mode})
    with rig.run(shards) as run:
        for row in range(1, 5):
            shards.insert("s1", 0, row)
        run.catch_up()
    before = shards.merged_rows()
    shards.alter("s1", 0, change)
    if isinstance(rig.target, TidbServer) and any(value in change for value in REFUSED_BY_TIDB):
        assert stopped(rig, shards).code in ("DDL-008", "DDL-038")
        assert shards.merged_rows() == before
        return
    with rig.run(shards) as run:
        shards.insert("s1", 0, 6)
        shards.update("s1", 0, 2, "v = 'changed'")
        run.catch_up()
        wait_until(lambda: shards.merged_rows() == shards.expected(), "equal rows", 30)


@pytest.mark.scenarios
@pytest.mark.parametrize("mode", ["optimistic", ""])
def test_a_tool_has_its_own_time_for_each_row(mode: str, rig: ShardRig) -> None:
    """gh-ost copies rows one by one, each with the time at which it does."""
    shards = rig.shards(1, tables=1, keys={"shard-mode": mode})
    with rig.run(shards) as run:
        run.catch_up()
        schema = f"`{shards.name}_s`"
        ghost, old = f"{schema}.`_t_0_gho`", f"{schema}.`_t_0_del`"
        rows = [f"(id, v) SELECT id, v FROM {shards.at(0)} WHERE id % 2 = {odd}" for odd in (0, 1)]
        for row in range(1, 5):
            shards.insert("s1", 0, row)
        shards.sources["s1"].run(
            f"CREATE TABLE {ghost} LIKE {shards.at(0)}",
            f"ALTER TABLE {ghost} {MADE}",
            "SET timestamp = 1500000000",
            f"INSERT INTO {ghost} {rows[0]}",
            "SET timestamp = 1600000000",
            f"INSERT INTO {ghost} {rows[1]}",
            f"RENAME TABLE {shards.at(0)} TO {old}, {ghost} TO {shards.at(0)}",
            f"DROP TABLE {old}",
        )
        shards.insert("s1", 0, 6)
        run.catch_up()
        wait_until(lambda: shards.merged_rows() == shards.expected(), "equal rows", 30)
        assert len(times(shards)) == 3


@pytest.mark.scenarios
@pytest.mark.parametrize("mode", ["optimistic", ""])
def test_numbers_in_another_order_stop_the_task(mode: str, rig: ShardRig) -> None:
    """Without a key the source numbers its rows in the order in which they were written; the target has another."""
    row = "id BIGINT NOT NULL, v VARCHAR(20) NOT NULL"
    shards = rig.shards(1, tables=1, keys={"shard-mode": mode}, row=row)
    with rig.run(shards) as run:
        for number in (9, 3, 5):
            shards.insert("s1", 0, number)
        run.catch_up()
    shards.alter("s1", 0, "ADD COLUMN n INT NOT NULL AUTO_INCREMENT PRIMARY KEY")
    error = stopped(rig, shards)
    assert error.code == ("DDL-038" if isinstance(rig.target, TidbServer) else "DDL-034")
    other = f"ALTER TABLE {shards.at(0)} ADD COLUMN n INT"
    ctl("binlog", "replace", str(shards.files().task_path), "-s", "s1", other)
    with rig.run(shards) as run:
        shards.wait_in_step(run)
    assert {row[-1] for row in shards.merged_rows()} == {None}


def test_each_shard_keeps_the_time_of_its_own_statement(rig: ShardRig) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
        alter_each(shards, MADE)
        shards.settle(run)
        assert len(times(shards)) >= len(shards.shards) + 2
        again = "ADD COLUMN mark CHAR(36) NOT NULL DEFAULT '-', ADD COLUMN late DATE DEFAULT (CURDATE())"
        for number, (source, table) in enumerate(shards.shards):
            alter_at(shards, source, table, again, 1_400_000_000 + 100_000 * number)
        shards.settle(run)


@pytest.mark.scenarios
@pytest.mark.parametrize(
    "place", ["ddl-execute-after", "ddl-backfill-rows", "ddl-backfill-rows:3", "sync-close-before:4"]
)
def test_a_death_in_the_middle_costs_only_time(place: str, rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = optimistic(rig)
    with rig.run(shards) as run:
        run.catch_up()
    alter_each(shards, MADE)
    assert ends_at(place, shards.files(), rig.spark, monkeypatch)
    with rig.run(shards) as run:
        shards.settle(run)


@pytest.mark.scenarios
def test_numbers_of_several_shards_stop_the_task(rig: ShardRig) -> None:
    """What the error says to type lets it go on, and so does it at another source."""
    shards = optimistic(rig)
    task = str(shards.files().task_path)
    with rig.run(shards) as run:
        run.catch_up()
    for source, table in shards.shards:
        shards.alter(source, table, "ADD COLUMN n INT NOT NULL AUTO_INCREMENT UNIQUE")
    error = stopped(rig, shards)
    if isinstance(shards.target, TidbServer):
        assert error.code == "DDL-038"
    else:
        assert error.code == "SHARD-036"
        assert "numbers" in str(error)
    ctl("binlog", "replace", task, "-s", str(error.where.source), f"ALTER TABLE {shards.at(0)} ADD COLUMN n INT")
    with rig.run(shards) as run:
        shards.wait_in_step(run)
        assert {n for (n,) in shards.target.query(f"SELECT n FROM {shards.merged}")} == {None}
        for shard in shards.shards:
            write(shards, *shard, 8)
        shards.wait_in_step(run)


@pytest.mark.scenarios
def test_a_source_whose_row_events_lack_columns(rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other source runs the statement; this one tells why it stops, and goes on by a human's word for it."""
    shards = optimistic(rig)
    task = str(shards.files().task_path)
    with rig.run(shards) as run:
        run.catch_up()
    shards.sources["s2"].run("SET GLOBAL binlog_row_image = MINIMAL")
    begin = MergedChanges.begin

    def begin_not(changes: MergedChanges, *args: Any, **named: Any) -> BegunChange | None:
        return None if changes.store.source == "s2" else begin(changes, *args, **named)

    monkeypatch.setattr(MergedChanges, "begin", begin_not)
    try:
        for source, table in shards.shards:
            shards.alter(source, table, MADE)
            shards.insert(source, table, 1, made="'2021-01-01 01:01:01'")
        error = stopped(rig, shards)
        assert (error.code, error.where.source) == ("SHARD-036", "s2")
        assert "binlog_row_image" in str(error)
        ctl("binlog", "skip", task, "-s", "s2")
        again = stopped(rig, shards)
        assert again.where.source == "s2", "its other shard"
        ctl("binlog", "skip", task, "-s", "s2")
        with rig.run(shards) as run:
            shards.wait_in_step(run)
        assert shards.target.query(f"SELECT COUNT(*) FROM {shards.merged} WHERE YEAR(made) = 2021") == [(4,)]
    finally:
        shards.sources["s2"].run("SET GLOBAL binlog_row_image = FULL")


@pytest.mark.scenarios
@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
def test_a_shard_is_renamed_while_it_waits(mode: str, rig: ShardRig) -> None:
    """The values of its rows are read under the name that it has by then."""
    shards = rig.shards(2, keys={"shard-mode": mode})
    (source, table), *others = shards.shards
    with rig.run(shards) as run:
        run.catch_up()
        alter_at(shards, source, table, MADE, 1_500_000_000)
        shards.insert(source, table, 5, made="'2021-01-01 01:01:01'")
        shards.run(source, f"RENAME TABLE {shards.at(table)} TO {shards.at(9)}")
        shards.run(source, f"UPDATE {shards.at(9)} SET v = 'later' WHERE id = {shards.id(source, table, 1)}")
        shards.shards[0] = (source, 9)
        run.catch_up()
        for number, shard in enumerate(others):
            alter_at(shards, *shard, MADE, 1_500_000_100 + number)
        shards.settle(run)
    assert len(times(shards)) == len(shards.shards) + 1
