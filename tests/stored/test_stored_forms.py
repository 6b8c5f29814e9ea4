"""What is stored in targets and dumps: read back as it was, and records of version 1 are read as that version meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support import stored_values as stored
from unshard.binlog.transaction_range import EndOfData, TransactionRange
from unshard.ddl.online import Kept
from unshard.dump.metadata import Record
from unshard.errors import SyncError
from unshard.model.stored_form import VERSION
from unshard.model.table import Column, Table, TableName
from unshard.mysql.altered_values import with_raw_columns
from unshard.shard.gone import Gone
from unshard.shard.group import TableState
from unshard.shard.lock_keeper import LockKeeper
from unshard.sync.batch.plan import BatchShape, TablePlan
from unshard.sync.batch.stored_plan import RowsRecord, StoredRange, digest, digests, record_of
from unshard.sync.planning.planner import Planner, by_condition
from unshard.sync.source_log.reader import TransactionRows
from unshard.sync.statements.plan_record import StatementPlan
from unshard.transform.row_filter import RowFilter

SAMPLES = Path(__file__).parent / "version_1"
FILTERS = stored.TABLE_PLAN.filters
END = {"end_gtid": stored.LATER.gtid}


def sample(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text())
    return found


def through_json(form: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(form))
    return found


VALUES: dict[str, Any] = {
    "table": stored.TABLE,
    "kept": stored.STATEMENT.online[stored.GHOST][0],
    "table_state": stored.STATE,
    "gone": stored.GONE,
    "dumped_table": stored.RECORD,
    "locks": stored.KEEPER,
    "statement": stored.STATEMENT,
}
READERS: dict[str, Callable[[dict[str, Any]], object]] = {
    "table": Table.from_dict,
    "kept": Kept.from_dict,
    "table_state": TableState.from_dict,
    "gone": Gone.from_dict,
    "dumped_table": Record.from_dict,
    "locks": lambda form: LockKeeper.from_dict("task", stored.MERGED, {"three"}, form),
    "statement": lambda form: StatementPlan.of(stored.open_batch(form)),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_record_of_today_and_one_of_version_1_are_read_as_the_same_value(name: str) -> None:
    value, read = VALUES[name], READERS[name]
    assert read(through_json(value.to_dict())) == value
    assert read(sample(name)) == value


def test_a_batch_of_rows_is_read_back() -> None:
    form = through_json(record_of(stored.BATCH, "x-1", stored.MERGED) | END)
    now, before = RowsRecord.of(stored.open_batch(form)), RowsRecord.of(stored.open_batch(sample("rows")))
    assert now == RowsRecord(
        VERSION,
        (StoredRange("bin.000003", 400, 900),),
        stored.BATCH.shape,
        digests(stored.BATCH),
        True,
        stored.LATER.gtid,
        ((9, 9),),
        (7,),
        ((3, 4),),
        stored.BATCH.stages,
        "x-1",
        stored.MERGED,
    )
    shape = replace(now.shape, locked_upserts=False, range_digits=0)  # no release that wrote version 1 knew of these
    assert before == replace(now, version=1, shape=shape, digests=digests(stored.BATCH, 1))
    assert before.digests == sample("rows")["tables"]


def test_digests_do_not_change_from_one_release_to_the_next() -> None:
    """A batch that is open while Unshard is upgraded is planned again and compared by them."""
    assert digest(stored.TABLE_PLAN, 1) == "a463e57ca3e29cfc"
    assert digest(stored.TABLE_PLAN, 2) == digest(stored.TABLE_PLAN, 3) == "dbcda1966fb95fdd"
    assert digest(stored.TABLE_PLAN) == "557dd4f11adea49f"


def test_a_column_whose_bytes_are_passed_through_has_another_digest() -> None:
    """The target's column decides that, and with it the length of the value in a statement. Version 3 left it out."""
    column = Column("name", "varchar", "varchar(9)", charset="sjis", collation="sjis_japanese_ci")
    text = replace(stored.TABLE_PLAN, table=replace(stored.TABLE, columns=(*stored.TABLE.columns, column)))
    raw = replace(text, table=with_raw_columns(text.table, {"name"}))
    assert digest(text) != digest(raw)
    assert digest(text, 3) == digest(raw, 3)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [((), "d61feba491885123"), (FILTERS[2:3], "6f66e2138ab74988"), (FILTERS[3:], "49b00e37824b6ae4")],
)
def test_the_digest_of_version_1_with_few_rules(filters: tuple[RowFilter, ...], expected: str) -> None:
    """As the first releases computed it."""
    assert digest(replace(stored.TABLE_PLAN, filters=filters, constants=(), mapping=None), 1) == expected


def test_a_record_of_a_later_version_is_refused() -> None:
    for form in (record_of(stored.BATCH) | END, stored.STATEMENT.to_dict()):
        batch = stored.open_batch({**form, "version": VERSION + 1})
        with pytest.raises(SyncError) as refused:
            RowsRecord.of(batch) if form["kind"] == "rows" else StatementPlan.of(batch)
        assert refused.value.code == "SYNC-075"
        assert "the open batch" in str(refused.value)
        assert "bin.000003:400" in str(refused.value)
    with pytest.raises(SyncError, match="SYNC-075"):
        LockKeeper.from_dict("task", stored.MERGED, (), {**stored.KEEPER.to_dict(), "version": VERSION + 1})


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_a_batch_that_an_earlier_process_left_open_is_planned_again(version: int) -> None:
    """With the shape on record, which is not the planner's own any more; other rules are refused."""
    log_range = TransactionRange(400, 900, 1, 2, frozenset({stored.ORDERS}), 400, 900, (), EndOfData())
    work = TransactionRows(stored.AT.position, stored.LATER, Path("/relay/bin.000003"), True, log_range)
    planner = Planner("one", stored.BATCH.meta, stored.BATCH.target, BatchShape(9, 9), 2)
    form = sample("rows") if version == 1 else through_json(record_of(stored.BATCH, "x-1", stored.MERGED) | END)
    if version in (2, 3, 4):
        form |= {"version": version, "tables": digests(stored.BATCH, version)}
    if version == 2:
        del form["shape"]["range_digits"]
    record = RowsRecord.of(stored.open_batch(form | {"safe": False}))
    plan = planner.plan_again(work, (stored.TABLE_PLAN,), 6, 9, record)
    shape = replace(stored.BATCH.shape, locked_upserts=version > 1, range_digits=3 if version > 2 else 0)
    assert (plan.shape, plan.ranges[0].start, plan.ranges[0].end) == (shape, 400, 900)
    with pytest.raises(SyncError, match="SYNC-008"):
        planner.plan_again(work, (replace(stored.TABLE_PLAN, filters=()),), 6, 9, record)


@pytest.mark.parametrize("kind", ["safe mode", "a float key"])
def test_a_batch_whose_changes_an_earlier_version_put_in_another_order_is_left_to_that_version(kind: str) -> None:
    """Its chunks would be others, and those with a receipt are not applied again."""
    log_range = TransactionRange(400, 900, 1, 2, frozenset({stored.ORDERS}), 400, 900, (), EndOfData())
    work = TransactionRows(stored.AT.position, stored.LATER, Path("/relay/bin.000003"), True, log_range)
    planner = Planner("one", stored.BATCH.meta, stored.BATCH.target, BatchShape(9, 9), 2)
    one = replace(stored.TABLE_PLAN, target=replace(stored.TABLE_PLAN.target, family=None))
    tables: tuple[TablePlan, ...] = (
        one,
        replace(one, table=replace(stored.TABLE, name=TableName("shop_01", "orders_2"))),
    )
    if kind == "a float key":
        columns = (Column("id", "double", "double", nullable=False), *stored.TABLE.columns[1:])
        tables = (replace(one, table=replace(stored.TABLE, columns=columns)),)
    safe = kind == "safe mode"
    now = planner.plan(work, tables, 6, 9, safe=safe)

    def record(version: int) -> RowsRecord:
        form = through_json(record_of(now) | END)
        return RowsRecord.of(stored.open_batch(form | {"version": version, "tables": digests(now, version)}))

    assert planner.plan_again(work, tables, 6, 9, record(VERSION)).safe is safe
    with pytest.raises(SyncError, match=r"SYNC-083.*shop\.orders.*earlier version"):
        planner.plan_again(work, tables, 6, 9, record(4))


@pytest.mark.parametrize(
    ("size", "compact", "digits"),
    [(400 << 10, True, 0), (512 << 10, True, 2), (5 << 20, True, 3), (5 << 20, False, 0), (9 << 20, True, 3)],
)
def test_large_batches_are_dealt_by_ranges_of_keys(size: int, compact: bool, digits: int) -> None:
    log_range = TransactionRange(400, 400 + size, 1, 2, frozenset({stored.ORDERS}), 400, 400 + size, (), EndOfData())
    work = TransactionRows(stored.AT.position, stored.LATER, Path("/relay/bin.000003"), True, log_range)
    planner = Planner("one", stored.BATCH.meta, stored.BATCH.target, BatchShape(9, 9, compact=compact), 2)
    assert planner.plan(work, (replace(stored.TABLE_PLAN, filters=()),), 6, 9).shape.range_digits == digits


def test_a_batch_planned_before_upserts_were_locked_is_written_as_it_was() -> None:
    """Its chunks are cut by the lengths of its statements, which upserts would change."""
    tied = replace(stored.TABLE_PLAN, target=replace(stored.TABLE_PLAN.target, locked_upserts=True), filters=())
    log_range = TransactionRange(400, 900, 1, 2, frozenset({stored.ORDERS}), 400, 900, (), EndOfData())
    work = TransactionRows(stored.AT.position, stored.LATER, Path("/relay/bin.000003"), True, log_range)
    planner = Planner("one", stored.BATCH.meta, stored.BATCH.target, BatchShape(9, 9), 2)
    batch = planner.plan(work, (tied,), 6, 9)
    assert batch.tables[0].target.locked_upserts
    form = through_json(record_of(batch) | END)
    again = planner.plan_again(work, (tied,), 6, 9, RowsRecord.of(stored.open_batch(form)))
    assert again.tables == batch.tables
    before = planner.plan(work, (by_condition(tied),), 6, 9)
    form = through_json(record_of(before) | END)
    del form["shape"]["locked_upserts"]
    again = planner.plan_again(work, (tied,), 6, 9, RowsRecord.of(stored.open_batch(form)))
    assert again.tables == before.tables
    assert not again.tables[0].target.locked_upserts
