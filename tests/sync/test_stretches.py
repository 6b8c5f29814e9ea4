"""Rows with something else between them in one batch: which bytes, which places, and which of a table's events."""

from __future__ import annotations

from pathlib import Path

from unshard.binlog.transaction_range import EndOfData, TransactionRange
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.sync.batch.plan import TablePlan, TargetPlan
from unshard.sync.batch.stored_plan import digest
from unshard.sync.source_log.reader import TransactionRows, coalesced

FILE = "b.000001"
T, U = TableName("d", "t"), TableName("d", "u")


def rows(start: int, end: int, *tables: TableName) -> TransactionRows:
    log_range = TransactionRange(start, end, 1, 2, frozenset(tables), start, end, (str(end),), EndOfData(), unpacked=1)
    return TransactionRows(Position(FILE, start), Location(Position(FILE, end), str(end)), Path(FILE), True, log_range)


def test_stretches_are_read_together() -> None:
    both = rows(4, 10, T).and_then(rows(20, 25, U))
    assert both.stretches == ((4, 10), (20, 25))
    assert (both.begin.offset, both.end) == (4, Location(Position(FILE, 25), "25"))
    log_range = both.log_range
    assert (log_range.start, log_range.end, log_range.transactions, log_range.row_events, both.size) == (
        4,
        25,
        2,
        4,
        13,
    )
    assert (log_range.tables, log_range.first_timestamp, log_range.last_timestamp) == (frozenset({T, U}), 4, 25)
    assert [offset for offset in range(30) if both.holds(Position(FILE, offset))] == [*range(4, 10), *range(20, 25)]
    assert not both.holds(Position("b.000002", 5))


def test_one_that_begins_where_another_ends_is_the_same() -> None:
    three = rows(4, 10, T).and_then(rows(10, 12, T)).and_then(rows(15, 16, T))
    assert three.stretches == coalesced([(4, 12), (15, 16)])
    assert (rows(4, 10).stretches, rows(4, 10).size) == (((4, 10),), 7)


def test_a_table_takes_what_lies_in_its_window() -> None:
    target = TargetPlan(0, T, ("id",), ("id",))
    plan = TablePlan(Table(T, ()), target)
    windowed = TablePlan(Table(T, ()), target, after=Position(FILE, 5), until=Position(FILE, 8))
    assert all(plan.takes(FILE, offset) for offset in range(10))
    assert [offset for offset in range(10) if windowed.takes(FILE, offset)] == [5, 6, 7]
    assert windowed.takes("b.000000", 9) is windowed.takes("b.000002", 1) is False
    assert digest(windowed) != digest(plan)
