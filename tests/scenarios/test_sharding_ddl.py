"""DDL of merged tables, brought together: the pessimistic protocol on real servers."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from support.shard_rig import ShardRig
from support.shard_runs import Shards
from support.task_runs import TaskRun
from support.waiting import wait_until
from unshard.errors import ShardError
from unshard.model.table import TableName
from unshard.shard.group import ShardingGroup
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.changes.decode import decode
from unshard.sync.sharding.resync import Resyncer
from unshard.sync.source_log.reader import TransactionRows
from unshard.worker.report import process_error

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_one_source_two_tables_one_column(rig: ShardRig) -> None:
    shards = rig.shards()
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="7")
        shards.insert("s1", 1, 1)
        shards.update("s1", 0, 0, "c = 5")
        run.catch_up()
        assert shards.held() == 2
        assert len(shards.merged_rows()) == 3
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.insert("s1", 1, 2, c="8")
        shards.delete("s1", 0, 0)
        shards.settle(run)


@pytest.mark.scenarios
def test_two_sources_and_a_sequence(rig: ShardRig) -> None:
    """Shards meet three statements at their own pace, with rows of every version in between."""
    shards = rig.shards(2)
    with rig.run(shards) as run:
        run.catch_up()
        changes = ["ADD COLUMN c INT", "ADD COLUMN d INT NOT NULL DEFAULT 3", "MODIFY v VARCHAR(40) NOT NULL"]
        for source, table in [("s1", 0), ("s2", 1)]:
            for number, change in enumerate(changes, 1):
                shards.alter(source, table, change)
                shards.insert(source, table, number, c=str(number))
                shards.update(source, table, 0, f"c = {number}")
        run.catch_up()
        for number, change in enumerate(changes, 1):
            for source, table in [("s1", 1), ("s2", 0)]:
                shards.insert(source, table, number)
                shards.alter(source, table, change)
                shards.insert(source, table, 10 + number, c="1")
                shards.delete(source, table, number)
            shards.insert("s1", 0, 10 + number, c="9")
        shards.settle(run)
        assert rig.target.query(
            "SELECT CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s"
            " AND TABLE_NAME = 't' AND COLUMN_NAME = 'v'",
            (f"{rig.name}_all",),
        ) == [(40,)]


@pytest.mark.scenarios
def test_tables_come_and_go_while_a_group_waits(rig: ShardRig) -> None:
    """A new shard with the new structure joins, two are renamed, one is dropped, whose rows stay in the target."""
    shards = rig.shards(tables=3)
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="1")
        shards.run("s1", f"CREATE TABLE {shards.at(7)} (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, c INT)")
        shards.insert("s1", 7, 1, c="2")
        shards.run("s1", f"RENAME TABLE {shards.at(1)} TO {shards.at(8)}")
        shards.insert("s1", 8, 1)
        shards.run("s1", f"RENAME TABLE {shards.at(0)} TO {shards.at(9)}")
        shards.insert("s1", 9, 1, c="6")
        run.catch_up()
        run.stop()
    with rig.run(shards) as run:
        dropped = shards.id("s1", 2, 0)
        shards.run("s1", f"DROP TABLE {shards.at(2)}")
        run.catch_up()
        shards.alter("s1", 8, "ADD COLUMN c INT")
        shards.insert("s1", 8, 2, c="3")
        shards.wait_in_step(run)
        assert shards.merged_rows() == sorted([*shards.expected(), (dropped, "row 0", None)], key=lambda row: row[0])
        shards.run("s1", f"TRUNCATE TABLE {shards.at(7)}")
        shards.insert("s1", 8, 3, c="4")
        shards.alter("s1", 7, "ADD KEY (v)")
        for table in (8, 9):
            shards.alter("s1", table, "add key  ( `v` )")
        shards.wait_in_step(run)
        assert len(shards.merged_rows()) == len(shards.expected()) + 2


def test_another_statement_in_the_same_place_stops_the_source(rig: ShardRig) -> None:
    """The third shard has met nothing, so the first statement waits too."""
    shards = rig.shards(tables=3)
    with rig.run(shards).failing() as run:
        run.catch_up()
        for table, changes in enumerate((("ADD b INT", "ADD c INT"), ("add column b integer", "ADD d INT"))):
            for change in changes:
                shards.alter("s1", table, change)
        error = run.error()
    assert isinstance(error, ShardError)
    assert error.code == "SHARD-001"
    lines = [line.strip() for line in process_error(error, datetime.now(UTC)).raw_cause.splitlines()]
    assert [line[:4] for line in lines[::2]] == ["1 ==", "2 <>"]
    statements = [line.partition("`t` ")[2].partition(" (")[0] for line in lines]
    assert statements == ["add column b integer", "ADD b INT", "ADD d INT", "ADD c INT"]


@pytest.mark.scenarios
def test_a_new_shard_that_is_like_an_old_one_needs_what_that_one_needs(rig: ShardRig) -> None:
    """A shard which has had a column and lost it has the same structure."""
    shards = rig.shards()

    def change(table: int) -> None:
        shards.alter("s1", table, "ADD COLUMN c INT")
        shards.insert("s1", table, 1, c="1")
        shards.alter("s1", table, "DROP COLUMN c")
        shards.insert("s1", table, 2)

    with rig.run(shards) as run:
        run.catch_up()
        change(0)
        shards.run("s1", f"CREATE TABLE {shards.at(6)} LIKE {shards.at(1)}")
        shards.insert("s1", 6, 0)
        run.catch_up()
        assert [shards.items("s1", table) for table in (0, 1, 6)] == [2, 0, 0]
        run.stop()
    with rig.run(shards) as run:
        change(6)
        run.catch_up()
        assert [shards.items("s1", table) for table in (0, 1, 6)] == [2, 0, 2]
        change(1)
        shards.settle(run)


def test_eight_tables_are_in_step_by_one_batch(rig: ShardRig) -> None:
    """Counted from the last shard's statement on. How long it takes is for `bench shard_ddl`."""
    shards = rig.shards(tables=8)
    with rig.run(shards) as run:
        run.catch_up()
        for table in range(7):
            shards.alter("s1", table, "ADD COLUMN c INT")
            shards.insert("s1", table, 1, c="1")
        run.catch_up()
        before = _batches(run)
        shards.alter("s1", 7, "ADD COLUMN c INT")
        shards.wait_in_step(run)
        assert _batches(run) == before + 1
        assert shards.merged_rows() == shards.expected()


def _batches(run: TaskRun) -> int:
    (reading,) = run.crew.readings()
    assert reading.sync is not None
    return reading.sync.batches


@pytest.mark.scenarios
def test_what_is_held_is_read_again_once_in_a_batch_a_statement(rig: ShardRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards meet a sequence one by one, with rows of all of them between each two statements."""
    read: Counter[tuple[TableName, str, int]] = Counter()
    batches: list[BatchPlan] = []
    close = Resyncer._close

    def counted(self: Resyncer, plan: BatchPlan, rows: TransactionRows, after: ShardingGroup) -> None:
        batches.append(plan)
        for piece in plan.ranges:
            for table, images in decode(plan, piece, offsets=True)[0]:
                assert isinstance(images, pa.RecordBatch)
                read.update((table.table.name, piece.file, offset) for offset in images.column("offset").to_pylist())
        close(self, plan, rows, after)

    monkeypatch.setattr(Resyncer, "_close", counted)
    shards = rig.shards(tables=4)
    numbers = itertools.count(1)
    with rig.run(shards) as run:
        run.catch_up()
        for statement in range(3):
            for table in range(3):
                shards.alter("s1", table, f"ADD COLUMN c_{statement} INT")
                for other in range(4):
                    shards.insert("s1", other, next(numbers))
        run.catch_up()
        for statement in range(3):
            shards.alter("s1", 3, f"ADD COLUMN c_{statement} INT")
        shards.settle(run)
    # a shard is held from its first statement on, which n others have met before: rows behind all but n of the nine
    assert len(read) == sum(9 - met for met in range(3))
    assert set(read.values()) == {1}
    assert len(batches) == 3


def test_several_groups_at_least_once(rig: ShardRig) -> None:
    """Two groups wait for each other's turn crosswise, with batches that have no receipts."""
    route = {"schema-pattern": f"{rig.name}_s", "target-schema": f"{rig.name}_all"}
    routes = {
        "fold": {**route, "table-pattern": "t_*", "target-table": "t"},
        "other": {**route, "table-pattern": "u_*", "target-table": "u"},
    }
    shards = rig.shards(
        keys={"routes": routes, "delivery": "at-least-once"},
        instance={"route-rules": ["fold", "other"]},
    )
    others = rig.shards(prefix="u")
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        others.alter("s1", 1, "ADD COLUMN d INT")
        shards.insert("s1", 0, 1, c="1")
        others.insert("s1", 1, 1, d="1")
        others.insert("s1", 0, 1)
        run.catch_up()
        run.stop()
    with rig.run(shards) as run:
        run.reach("sync")
        others.alter("s1", 0, "ADD COLUMN d INT")
        others.insert("s1", 0, 2, d="2")
        shards.insert("s1", 1, 1)
        run.catch_up()
        assert shards.held() == 2
        assert others.merged_rows() == others.expected()
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.settle(run)


def test_the_last_shard_of_a_source_is_dropped_while_it_is_held(rig: ShardRig) -> None:
    """What it wrote behind its DDL arrives, and later DDL of the other source does not wait for it."""
    shards = rig.shards(2, tables=1)
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="1")
        gone = shards.sources["s1"].query(f"SELECT * FROM {shards.at(0)}")
        shards.run("s1", f"DROP TABLE {shards.at(0)}")
        run.catch_up()
        for change in ("ADD COLUMN c INT", "ADD COLUMN d INT"):
            shards.alter("s2", 0, change)
            shards.wait_in_step(run)
        assert shards.merged_rows() == sorted([*[(*row, None) for row in gone], *shards.expected()])


@pytest.mark.scenarios
def test_ghosts_of_shards_and_a_statement_before_the_other_source_is_loaded(rig: ShardRig) -> None:
    shards = rig.shards(2, tables=1)
    gate = rig.servers["s2"].connection()
    gate.query(f"LOCK TABLES {shards.at(0)} WRITE")  # its dump waits
    with gate.cursor() as cursor, rig.run(shards) as run:
        wait_until(lambda: run.crew.errors != [] or run.crew.subtasks[0].unit == "sync", "the first is in sync")
        _by_gh_ost(shards, "s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="1")
        wait_until(lambda: shards.held() == 1, "the first waits for the other source")
        cursor.execute("UNLOCK TABLES")
        run.reach("sync")
        shards.insert("s2", 0, 1)
        _by_gh_ost(shards, "s2", 0, "ADD COLUMN c INT")
        shards.insert("s2", 0, 2, c="2")
        shards.settle(run)


def _by_gh_ost(shards: Shards, source: str, table: int, change: str) -> None:
    ghost, old = (f"`{shards.name}_s`.`_t_{table}_{end}`" for end in ("gho", "del"))
    for sql in (
        f"CREATE TABLE {ghost} LIKE {shards.at(table)}",
        f"ALTER TABLE {ghost} {change}",
        f"INSERT INTO {ghost} (id, v) SELECT id, v FROM {shards.at(table)}",
        f"RENAME TABLE {shards.at(table)} TO {old}, {ghost} TO {shards.at(table)}",
        f"DROP TABLE {old}",
    ):
        shards.run(source, sql)
