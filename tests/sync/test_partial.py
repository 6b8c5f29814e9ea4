"""Images that lack columns: what each becomes, the mapped column, and what stops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from unshard.binlog.images import PartialImages, Present
from unshard.errors import SyncError, Where
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Column, Index, Table, TableName
from unshard.sync.batch.plan import TablePlan
from unshard.sync.changes import map as step
from unshard.sync.changes.partial_images import encode_partial, map_partial
from unshard.sync.planning.target_plan import plan_target
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.extract import Constant, with_constants

ID = Column("id", "bigint", "bigint(20)", nullable=False)
A = Column("a", "int", "int(11)")
B = Column("b", "varchar", "varchar(9)", charset="utf8mb4", collation="utf8mb4_bin", length=9)
TS = Column("ts", "timestamp", "timestamp")
TWICE = Column("twice", "int", "int(11)", generated=True)
COLUMNS = (ID, A, B, TS, TWICE)
TYPES = (pa.int64(), pa.int64(), pa.string(), pa.string(), pa.int64())
WHERE = Where("s1", "a.t", "mysql-bin.000001:4")
BITS = 1 << 59


def plan(*key: str, mapping: ColumnMapping | None = None, **defaults: str) -> TablePlan:
    indexes = (Index("PRIMARY", key, (0,) * len(key), unique=True),) if key else ()
    table = Table(TableName("a", "t"), COLUMNS, indexes)
    target = replace(plan_target(table, replace(table, name=TableName("b", "t")), Where()), ordered=True)
    return TablePlan(table, target, mapping, None, tuple(sorted(defaults.items())))


def has(before: set[int] | None, after: set[int] | None) -> Present:
    return Present(None if before is None else frozenset(before), None if after is None else frozenset(after))


def images(before: set[int] | None, after: set[int] | None, *rows: tuple[Any, ...]) -> PartialImages:
    """Rows of (op, seq, values of the columns that either image has)."""
    present = has(before, after)
    numbers = present.either(len(COLUMNS))
    types = [IMAGE_FIELDS[0].type, IMAGE_FIELDS[1].type, *(TYPES[number] for number in numbers)]
    arrays = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, ["op", "seq", *(COLUMNS[number].name for number in numbers)])
    table = Table(TableName("a", "t"), COLUMNS)
    return PartialImages(table, present, tuple(COLUMNS[number] for number in numbers), batch, 4)


def encoded(table: TablePlan, some: PartialImages) -> list[tuple[Op, int, Any, Any, Any]]:
    found, seen = encode_partial(table, some, 4, None, WHERE)
    assert seen == len(found)
    return [(Op(r["op"]), r["seq"], r["key"], r["old_key"], r["row"]) for r in found.to_pylist()]


def test_an_insert_names_its_columns_and_the_sources_defaults() -> None:
    some = images(None, {0, 2}, (1, 3, 5, "x"), (1, 4, 6, None))
    assert encoded(plan("id", a="7", ts="NULL"), some) == [
        (Op.INSERT_SET, 3, b"", None, b"`id`=5,`b`='x',`a`=7,`ts`=NULL"),
        (Op.INSERT_SET, 4, b"", None, b"`id`=6,`b`=NULL,`a`=7,`ts`=NULL"),
    ]


def test_an_insert_of_generated_columns_only_is_all_defaults() -> None:
    some = images(None, {4}, (1, 0, 14))
    ((*_, row),) = encoded(plan("id", id="1", a="7", b="'x'", ts="NULL"), some)
    assert row == b"`id`=1,`a`=7,`b`='x',`ts`=NULL"


def test_an_update_sets_what_it_has_and_keeps_times() -> None:
    some = images({0}, {1}, (2, 3, 5, None), (3, 3, None, 8), (2, 4, 6, None), (3, 4, None, None))
    assert encoded(plan("id"), some) == [
        (Op.UPDATE, 3, b"5,", b"5,", b"`a`=8,`ts`=`ts`"),
        (Op.UPDATE, 4, b"6,", b"6,", b"`a`=NULL,`ts`=`ts`"),
    ]


def test_an_update_of_the_key() -> None:
    some = images({0}, {0, 3}, (2, 0, 5, None), (3, 0, 9, "2020-01-01 00:00:00"))
    ((_, _, _, old_key, row),) = encoded(plan("id"), some)
    assert (old_key, row) == (b"5,", b"`id`=9,`ts`='2020-01-01 00:00:00'")


def test_an_update_of_nothing_that_is_written_changes_nothing() -> None:
    some = images({0, 3}, {3, 4}, (2, 0, 5, "2020-01-01 00:00:00", None), (3, 0, None, "2020-01-01 00:00:00", 4))
    assert encoded(plan("id"), some)[0][4] == b"`ts`='2020-01-01 00:00:00'"
    some = images({0}, {4}, (2, 0, 5, None), (3, 0, None, 4))
    assert encoded(plan("id"), some)[0][4] == b"`ts`=`ts`"


def test_a_delete_needs_the_key_alone() -> None:
    assert encoded(plan("id"), images({0}, None, (4, 1, 5))) == [(Op.DELETE, 1, b"5,", None, None)]


def test_a_keyless_target_needs_every_column() -> None:
    row = (4, 1, 5, 6, "x", "2020-01-01 00:00:00", 12)
    assert encoded(plan(), images({0, 1, 2, 3, 4}, None, row))[0][2].startswith(b"(`id`<=>5 AND `a`<=>6 AND ")
    with pytest.raises(SyncError, match="SYNC-030") as caught:
        encoded(plan(), images({0, 1}, None, row[:4]))
    assert "b, ts" in caught.value.message
    assert caught.value.where == WHERE


def test_what_is_missing_stops() -> None:
    with pytest.raises(SyncError, match="SYNC-030"):
        encoded(plan("id", "a"), images({0}, {2}, (2, 0, 5, None), (3, 0, None, "x")))
    with pytest.raises(SyncError, match="SYNC-031") as caught:
        encoded(plan("id", ts="NULL"), images(None, {0}, (1, 0, 5)))
    assert "a, b" in caught.value.message


def test_only_the_partition_of_the_table_keeps_changes() -> None:
    some = images({0}, None, (4, 1, 5), (4, 2, 6))
    kept = [encode_partial(plan("id"), some, 4, np.array([part]), WHERE) for part in range(4)]
    assert sorted(len(batch) for batch, _ in kept) == [0, 0, 0, 2]
    assert {seen for _, seen in kept} == {2}


def mapped(source: str, target: str, some: PartialImages) -> PartialImages:
    mapping = ColumnMapping("m", TableName("a", "t"), source, target, BITS)
    return map_partial(plan("id", mapping=mapping), some, WHERE)


def test_a_mapped_column_is_there_where_its_source_is() -> None:
    found = mapped("id", "id", images({0}, {2}, (2, 0, 5, None), (3, 0, None, "x")))
    assert found.present == has({0}, {2})
    assert found.batch.column(2).to_pylist() == [BITS | 5, None]

    found = mapped("id", "a", images({0, 1}, {0}, (2, 0, 5, 1), (3, 0, 6, None)))
    assert found.present == has({0, 1}, {0, 1})
    assert found.batch.column(3).to_pylist() == [BITS | 5, BITS | 6]


def test_a_mapped_column_that_had_no_place_is_added() -> None:
    found = mapped("a", "id", images({2}, {1}, (2, 0, None, "x"), (3, 0, 6, None)))
    assert found.present == has({2}, {0, 1})
    assert [column.name for column in found.columns] == ["a", "b", "id"]
    assert found.batch.column(4).to_pylist() == [None, BITS | 6]


def test_a_mapped_column_without_its_source_is_left_alone() -> None:
    found = mapped("a", "id", images({0}, {0, 2}, (2, 0, 5, None), (3, 0, 9, "x")))
    assert found.present == has(set(), {2})  # and so no key for the row: encode stops
    with pytest.raises(SyncError, match="SYNC-032"):
        mapped("a", "id", images(None, {0}, (1, 0, 5)))


def test_constants_are_in_every_image() -> None:
    shard = Column("shard", "int", "int(11)", nullable=False)
    added = (Constant(shard, 7),)
    source = Table(TableName("a", "t"), COLUMNS)
    keyed = Table(TableName("b", "t"), (*COLUMNS, shard), (Index("PRIMARY", ("shard", "id"), (0, 0), unique=True),))
    target = replace(plan_target(with_constants(source, added), keyed, Where()), ordered=True)
    table = TablePlan(source, target, None, None, (("a", "7"), ("b", "NULL"), ("ts", "NULL")), (), added)

    def rows(some: PartialImages) -> list[tuple[Op, int, Any, Any, Any]]:
        return encoded(step.mapped(table), map_partial(table, some, WHERE))

    assert rows(images({0}, None, (4, 1, 5))) == [(Op.DELETE, 1, b"(`shard`=7 AND `id`=5) OR ", None, None)]
    ((_, _, _, old_key, row),) = rows(images({0}, {0, 1}, (2, 0, 5, None), (3, 0, 6, 1)))
    assert (old_key, row) == (b"(`shard`=7 AND `id`=5) OR ", b"`id`=6,`a`=1,`shard`=7,`ts`=`ts`")
    ((*_, row),) = rows(images(None, {0}, (1, 0, 5)))
    assert row == b"`id`=5,`shard`=7,`a`=7,`b`=NULL,`ts`=NULL"
