"""Which TIME values are beyond the range of MySQL and TiDB, and what they become."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.altered_values import TargetKind, times
from unshard.transform.latest_time import are_beyond, clamped, clamped_columns, without_fraction

TIME = Column("a", "time", "time(6)", nullable=True, fsp=6)
INTO_TIDB = TargetKind(from_mysql=False, json=True, tidb=True)


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        ("838:59:59.000001", "838:59:59.000000"),
        ("-838:59:59.999999", "-838:59:59.000000"),
        ("838:59:59.100000", "838:59:59.000000"),
    ],
)
def test_a_value_beyond(value: str, becomes: str) -> None:
    values = pa.array([value, None])
    assert are_beyond(values).tolist() == [True, False]
    assert clamped(values, TIME).to_pylist() == [becomes, None]
    assert without_fraction(values).to_pylist() == [becomes[:-7], None]


@pytest.mark.parametrize("value", ["838:59:59.000000", "838:59:58.999999", "-00:00:00.000001", "38:59:59.500000"])
def test_any_other_value_stays(value: str) -> None:
    values = pa.array([value])
    assert are_beyond(values).tolist() == [False]
    assert clamped(values, TIME).to_pylist() == [value]


def test_columns_of_a_batch_that_has_others_before_them() -> None:
    late = pa.array(["838:59:59.5"])
    batch = pa.RecordBatch.from_arrays([late, late, late], ["a", "a", "b"])
    found, beyond = clamped_columns(batch, [replace(TIME, fsp=1), replace(TIME, name="gone")], 1)
    assert [column.to_pylist() for column in found.columns] == [["838:59:59.5"], ["838:59:59.0"], ["838:59:59.5"]]
    assert {name: rows.tolist() for name, rows in beyond.items()} == {"a": [0]}


def table(*columns: Column, unique: tuple[str, ...] = ()) -> Table:
    keys = (Index("k", unique, tuple(0 for _ in unique), unique=True),) if unique else ()
    return Table(TableName("d", "t"), columns, keys)


def test_columns_that_may_be_clamped() -> None:
    """Those of MariaDB with a fraction, of no unique key on either end, into a server that has no such values."""
    b, whole = replace(TIME, name="b"), replace(TIME, name="c", definition="time", fsp=0)
    made = replace(TIME, name="d", generated=True)
    source = table(TIME, b, whole, made, unique=("b",))
    assert times(source, None, INTO_TIDB) == [TIME]
    assert times(source, table(TIME, b, unique=("A",)), INTO_TIDB) == []
    assert times(source, None, TargetKind(from_mysql=True, json=True, tidb=True)) == []
    assert times(source, None, TargetKind(from_mysql=False, json=False, tidb=False)) == []
