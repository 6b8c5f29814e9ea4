"""Gathering: what shards give together is what each gives alone, and only what is written alike comes together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unshard.errors import Where
from unshard.model.change import ENCODED_SCHEMA, IMAGE_FIELDS, LOG_ORDER, Op
from unshard.model.position import Position
from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.mysql.types import arrow_type
from unshard.sync.batch.plan import BatchPlan, BatchShape, TablePlan
from unshard.sync.changes import gather as module
from unshard.sync.changes.causality import tie_rows
from unshard.sync.changes.encode import encode
from unshard.sync.changes.gather import encode_changes, gather
from unshard.sync.planning.target_plan import plan_target
from unshard.target.meta import MetaTables

ID = Column("seq", "int", "int(11)", nullable=False)
TEXT = Column("op", "varchar", "varchar(20)", charset="utf8mb4", collation="utf8mb4_general_ci", length=20)
WIDER = replace(TEXT, definition="varchar(30)", length=30)
BINARY = Column("op", "varbinary", "varbinary(20)", length=20)
PRIMARY = Index("PRIMARY", ("seq",), (0,), unique=True)
SECOND = Index("second", ("op",), (0,), unique=True)


def plan(number: int, target: int, *columns: Column, keys: tuple[Index, ...] = (PRIMARY,)) -> TablePlan:
    table = Table(TableName("d", f"t{number}"), columns, keys)
    merged = plan_target(table, replace(table, name=TableName("d", f"merged{target}")), Where())
    return TablePlan(table, replace(merged, id=target), id=number)


TABLES = (
    plan(0, 0, ID, TEXT),
    plan(1, 0, ID, TEXT),
    plan(2, 1, ID, TEXT, keys=(PRIMARY, SECOND)),
    plan(3, 0, ID, TEXT),
    plan(4, 0, ID, WIDER),
    plan(5, 1, ID, TEXT, keys=(PRIMARY, SECOND)),
    plan(6, 0, TEXT, ID),
    plan(7, 0, ID, BINARY),
    plan(8, 2, ID, TEXT),
    plan(9, 1, ID, TEXT, keys=(PRIMARY, SECOND)),
)


def images(table: TablePlan, rows: list[tuple[int, int, int, str | None]]) -> pa.RecordBatch:
    """Of (op, seq, seq of the row, text); the two images of an UPDATE follow from one."""
    places = {column.name: 2 + place for place, column in enumerate((ID, TEXT))}
    taken: list[list[int | str | None]] = [[row[0] for row in rows], [row[1] for row in rows]]
    taken += [[row[places[column.name]] for row in rows] for column in table.table.columns]
    types = [*(field.type for field in IMAGE_FIELDS), *(arrow_type(column) for column in table.table.columns)]
    fields = [*IMAGE_FIELDS]
    fields += [pa.field(c.name, kind) for c, kind in zip(table.table.columns, types[2:], strict=True)]
    arrays = [pa.array(values, kind) for values, kind in zip(taken, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def batch_plan(shape: BatchShape) -> BatchPlan:
    place = Position("", 0)
    ends = MetaTables("", ""), Endpoint("", 0, "")
    return BatchPlan("", 0, 0, place, place, (), False, shape, TABLES, *ends)


CHANGE = st.tuples(
    st.integers(0, len(TABLES) - 1),
    st.sampled_from([Op.INSERT, Op.DELETE, Op.UPDATE]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([None, "a", "A", "b", "c", "d" * 19]),
)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_all_together_are_what_each_is_alone(data: st.DataObject) -> None:
    rows: dict[int, list[tuple[int, int, int, str | None]]] = {}
    for seq, (number, op, before, after, text) in enumerate(data.draw(st.lists(CHANGE, min_size=1, max_size=40))):
        own = rows.setdefault(number, [])
        if op is Op.UPDATE:
            own += [(Op.UPDATE_BEFORE, seq, before, "old"), (Op.UPDATE_AFTER, seq, after, text)]
        else:
            own.append((op, seq, before, text))
    compact, several = data.draw(st.booleans()), data.draw(st.booleans())
    shape = BatchShape(3, 10, compact=compact, multiple_rows=several, range_digits=data.draw(st.integers(0, 1)))
    batch = batch_plan(shape)
    found = [(TABLES[number], images(TABLES[number], own)) for number, own in rows.items()]
    ties = tie_rows(batch, found)
    mine = data.draw(st.none() | st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True))
    kept = None if mine is None else np.array(mine, dtype=np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ENOUGH_BYTES", data.draw(st.sampled_from([1, 200, 1 << 20])))
        together, seen = encode_changes(batch, found, kept, ties)
    alone, counts = [], dict.fromkeys((table.target.id for table, _ in found), 0)
    for (table, one), tied in zip(found, ties, strict=True):
        encoded, changes = encode(
            table,
            one,
            shape.partitions,
            kept,
            tied,
            compact=compact,
            multiple_rows=several,
            range_digits=shape.range_digits,
        )
        alone.append(encoded)
        counts[table.target.id] += changes
    expected = pa.Table.from_batches(alone, ENCODED_SCHEMA).sort_by(LOG_ORDER)
    assert together.to_pylist() == expected.to_pylist()
    assert seen == counts


def test_only_what_is_written_alike_comes_together() -> None:
    row: list[tuple[int, int, int, str | None]] = [(Op.INSERT, 0, 1, None)]
    found = [(table, images(table, row)) for table in TABLES]
    ties = tie_rows(batch_plan(BatchShape(1, 1)), found)
    numbers = [
        one.numbers for one in gather((table, batch, tied) for (table, batch), tied in zip(found, ties, strict=True))
    ]
    assert sorted(numbers) == [[0, 1, 3], [2, 5, 9], [4], [6], [7], [8]]


@pytest.mark.parametrize("by_condition", [True, False])
def test_images_of_a_table_stay_together_where_a_change_depends_on_others(by_condition: bool) -> None:
    """As those of a re-sync, whose batch lies in several stretches of the log."""
    long: list[tuple[int, int, int, str | None]] = [(Op.INSERT, n, n, "x" * 100) for n in range(12_000)]
    first, other = (TABLES[number] for number in ((2, 5) if by_condition else (0, 1)))
    if by_condition:
        first, other = (replace(one, target=replace(one.target, locked_upserts=False)) for one in (first, other))
        assert first.target.by_condition
    else:
        first, other = (replace(one, kept=frozenset({"op"})) for one in (first, other))
    stretches = [(first, long), (other, long[:1]), (first, long[:1]), (other, long), (first, long)]
    found = [one.numbers for one in gather((table, images(table, rows), None) for table, rows in stretches)]
    assert sorted(found) == [[first.id] * 3, [other.id] * 2]


def test_large_ones_stay_alone() -> None:
    long: list[tuple[int, int, int, str | None]] = [(Op.INSERT, n, n, "x" * 100) for n in range(12_000)]
    short = long[:1]
    sizes = (short, long, short, short, long)
    table = TABLES[0]
    found = [one.numbers for one in gather((replace(table, id=n), images(table, r), None) for n, r in enumerate(sizes))]
    assert found == [[0], [1], [2, 3], [4]]
