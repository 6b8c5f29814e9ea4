"""UPDATEs of tables with several unique keys, carried to a server that the caller names: no other row is ever hit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.reference import RowChange
from support.row_batches import Target
from unshard.errors import SyncError
from unshard.model.change import Op
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchShape
from unshard.sync.planning.planner import by_condition
from unshard.testing.throwaway_server import ThrowawayServer

SCHEMA = "locked_upserts"
TABLES = {
    "two": "id INT PRIMARY KEY, code VARCHAR(9) COLLATE utf8mb4_bin UNIQUE, v INT",
    "three": "a INT, b INT, code INT NOT NULL, mark INT, v INT, UNIQUE (code), PRIMARY KEY (a, b), UNIQUE (mark)",
    "prefix": "b VARCHAR(20) COLLATE utf8mb4_bin NOT NULL, c INT NOT NULL, v INT, PRIMARY KEY (b(10)), UNIQUE KEY (c)",
}
NOT_LOCKED = {"prefix"}
"""Rows of this one are found by `c`, but a server meets them by the primary key first."""
SHAPE = BatchShape(1, 100)


def place(server: ThrowawayServer) -> Target:
    found = Target(server, SCHEMA, TABLES)
    plans = [plan.target for plan in found.batch(SHAPE).tables]
    assert {plan.name.table for plan in plans if not plan.locked_upserts} == NOT_LOCKED
    return found


def update(table: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> RowChange:
    return RowChange(TableName(SCHEMA, table), Op.UPDATE, before=before, after=after)


def many_rows_are_updated(target: Target) -> None:
    """Free rows share a statement; values move on, NULL among them, and a row that stays as it is counts as found."""
    target.fill("two", [(n, f"c{n}", n) for n in range(300)])
    changes = [update("two", (n, f"c{n}", n), (n, None if n % 7 == 0 else f"d{n}", -n)) for n in range(300)]
    entry = target.run(target.batch(SHAPE, "stop"), changes)["two"]
    assert (entry.updated, entry.missing) == (300, 0)
    assert target.rows("two") == sorted([(n, None if n % 7 == 0 else f"d{n}", -n) for n in range(300)], key=repr)
    target.fill("three", [(1, n, n, -n, 0) for n in range(1, 50)])
    changes = [update("three", (1, n, n, -n, 0), (1, n, 1000 + n, -1000 - n, 0)) for n in range(1, 50)]
    changes.append(update("three", (1, 1, 1001, -1001, 0), (1, 1, 1001, -1001, 0)))
    entry = target.run(target.batch(SHAPE, "stop"), changes)["three"]
    assert entry.missing == 0
    assert target.rows("three") == sorted([(1, n, 1000 + n, -1000 - n, 0) for n in range(1, 50)], key=repr)


def a_missing_row_hits_no_other(target: Target) -> None:
    """The target lacks rows, and other rows have the values that these would get: all stay as they are."""
    rows = [(n, f"c{n}", n) for n in range(100) if n % 10 != 3]
    rows += [(1000 + n, f"d{n}", 0) for n in (3, 13)]
    target.fill("two", rows)
    changes = [update("two", (n, f"c{n}", n), (n, f"d{n}", -n)) for n in range(100)]
    entry = target.run(target.batch(SHAPE), changes)["two"]
    assert (entry.updated, entry.missing, entry.example) == (100, 10, "`id` IN (3)")
    there = [(n, f"d{n}", -n) for n in range(100) if n % 10 != 3] + [(1003, "d3", 0), (1013, "d13", 0)]
    assert target.rows("two") == sorted(there, key=repr)
    target.fill("two", rows)
    before = target.rows("two")
    with pytest.raises(SyncError, match=r"SYNC-048[\s\S]*`id` IN \(3\)"):
        target.run(target.batch(SHAPE, "stop"), changes)
    assert target.rows("two") == before


def a_missing_row_that_is_inserted_arrives(target: Target) -> None:
    """DELETE and INSERT of a row in one batch are one UPDATE, and the target may lack the row."""
    name = TableName(SCHEMA, "two")
    target.fill("two", [(n, f"c{n}", n) for n in range(100) if n % 10 not in (3, 4)])
    changes = []
    for n in range(100):
        if n % 2:
            changes.append(RowChange(name, Op.DELETE, before=(n, f"c{n}", n)))
            changes.append(RowChange(name, Op.INSERT, after=(n, f"d{n}", -n)))
        else:
            changes.append(update("two", (n, f"c{n}", n), (n, f"d{n}", -n)))
    entry = target.run(target.batch(SHAPE), changes)["two"]
    assert (entry.updated, entry.missing, entry.example) == (100, 20, "`id` IN (3)")
    assert target.rows("two") == sorted([(n, f"d{n}", -n) for n in range(100) if n % 10 != 4], key=repr)


def a_value_of_another_row_stops(target: Target) -> None:
    """A row of others has the value: the target refuses it, and neither row is changed."""
    for rows, change in (
        ([(1, "a", 1), (2, "b", 2)], update("two", (1, "a", 1), (1, "b", 1))),
        ([(2, "b", 2), (1, "a", 1), (3, "c", 3)], update("two", (3, "c", 3), (3, "a", 3))),
    ):
        target.fill("two", rows)
        before = target.rows("two")
        with pytest.raises(SyncError, match="SYNC-003"):
            target.run(target.batch(SHAPE), [change])
        assert target.rows("two") == before
    target.fill("three", [(1, 1, 1, 1, 0), (1, 2, 2, 2, 0)])
    before = target.rows("three")
    with pytest.raises(SyncError, match="SYNC-003"):
        target.run(target.batch(SHAPE), [update("three", (1, 1, 1, 1, 0), (1, 1, 9, 2, 0))])
    assert target.rows("three") == before


def a_primary_key_with_a_prefix_hits_no_other(target: Target) -> None:
    """The row is there, and the primary key's value that it would get is another row's."""
    target.fill("prefix", [("0123456789a", 1, 1), ("z", 2, 2)])
    before = target.rows("prefix")
    with pytest.raises(SyncError, match="SYNC-003"):
        target.run(target.batch(SHAPE), [update("prefix", ("z", 2, 2), ("0123456789b", 2, 9))])
    assert target.rows("prefix") == before
    target.run(target.batch(SHAPE, "stop"), [update("prefix", ("z", 2, 2), ("y", 2, 9))])
    assert target.rows("prefix") == [("0123456789a", 1, 1), ("y", 2, 9)]


def rows_in_pieces_and_again(target: Target) -> None:
    """A second attempt of the same chunks finds them applied, with the rows that the first one has missed."""
    target.fill("two", [(n, f"c{n}", n) for n in range(10) if n != 7])
    plan = target.batch(BatchShape(1, 4))
    changes = [update("two", (n, f"c{n}", n), (n, f"d{n}", 0)) for n in range(10)]
    first = target.run(plan, changes)
    assert first["two"].missing == 1
    rows = target.rows("two")
    assert target.run(plan, changes) == first
    assert target.rows("two") == rows
    without = replace(plan, tables=tuple(map(by_condition, plan.tables)), batch_id=target.batch(SHAPE).batch_id)
    target.fill("two", [(n, f"c{n}", n) for n in range(10) if n != 7])
    assert target.run(without, changes) == first
    assert target.rows("two") == rows


WALKS = (
    many_rows_are_updated,
    a_missing_row_hits_no_other,
    a_missing_row_that_is_inserted_arrives,
    a_value_of_another_row_stops,
    a_primary_key_with_a_prefix_hits_no_other,
    rows_in_pieces_and_again,
)
