"""The statements that a batch would write for made-up changes of one table.

The changes pass through the steps of a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from unshard.explain.finding import TargetStatement
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.position import Position
from unshard.model.table import Column
from unshard.mysql.connection import Endpoint
from unshard.mysql.types import GEOMETRIES, arrow_type
from unshard.sync.batch.plan import BatchPlan, BatchShape, TablePlan
from unshard.sync.changes.causality import tie_rows
from unshard.sync.changes.gather import encode_changes
from unshard.sync.changes.map import map_columns
from unshard.sync.changes.merge import lock_query, merge
from unshard.sync.changes.order import arrange
from unshard.sync.planning.planner import written_as
from unshard.target.meta import MetaTables

_CHANGES = {
    "INSERT": ((Op.INSERT, 0),),
    "UPDATE": ((Op.UPDATE_BEFORE, 0), (Op.UPDATE_AFTER, 1)),
    "DELETE": ((Op.DELETE, 0),),
}
_TEXTS = {
    "date": ("2026-01-31", "2026-02-01"),
    "time": ("09:00:00", "10:30:00"),
    "datetime": ("2026-01-31 09:00:00", "2026-02-01 10:30:00"),
    "timestamp": ("2026-01-31 09:00:00", "2026-02-01 10:30:00"),
    "decimal": ("1", "2"),
    "json": ('{"a": 1}', '{"a": 2}'),
    "uuid": ("123e4567-e89b-12d3-a456-426655440000", "123e4567-e89b-12d3-a456-426655440001"),
    "inet4": ("10.0.0.1", "10.0.0.2"),
    "inet6": ("::1", "::2"),
}


def example_statements(plan: TablePlan, shape: BatchShape, *, safe: bool) -> Iterator[TargetStatement]:
    """Yield the statements that a batch writes for an INSERT, an UPDATE and a DELETE of one row whose key stays. Pure.

    In safe mode, yields nothing for a table that stops the task there: one without a key, or one in a family of foreign
    keys.
    """
    if safe and (plan.target.keyless or plan.target.family is not None):
        return
    plan, mode = written_as(plan, shape, safe=safe), "safe" if safe else "normal"
    for change, images in _CHANGES.items():
        batch = BatchPlan(
            "", 0, 0, Position("", 0), Position("", 0), (), False, replace(shape, partitions=1), (plan,),
            MetaTables("", ""), Endpoint("", 0, ""), safe=safe,
        )  # fmt: skip
        mapped = map_columns(batch, [(plan, _images(plan, images))])
        changes, _ = encode_changes(batch, mapped, None, tie_rows(batch, mapped))
        ready = arrange(changes, compacted=shape.compact, safe=safe)
        for chunk in merge(ready, batch.targets(), batch.shape, safe=safe):
            for statement in chunk.statements:
                if statement.upsert and plan.target.locked_upserts and statement.keys is not None:
                    yield TargetStatement(_text(lock_query(statement.keys, 0, statement.rows)), change, mode)
                yield TargetStatement(_text(statement.sql), change, mode)


def _text(sql: bytes) -> str:
    return sql.decode("utf-8", "backslashreplace")


def _images(plan: TablePlan, images: Sequence[tuple[Op, int]]) -> pa.RecordBatch:
    table = plan.table
    key = {name.lower() for name in ([] if plan.target.keyless else plan.target.key)}
    columns = [pa.array([int(op) for op, _ in images], pa.int8()), pa.array([0] * len(images), pa.int64())]
    for column in table.columns:
        places = [0 if column.name.lower() in key else place for _, place in images]
        columns.append(pa.array([_values(column)[place] for place in places], arrow_type(column)))
    fields = [*IMAGE_FIELDS, *(pa.field(c.name, a.type) for c, a in zip(table.columns, columns[2:], strict=True))]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _values(column: Column) -> Sequence[Any]:
    """Return two values of the column."""
    kind = arrow_type(column)
    if column.type in _TEXTS:
        return _TEXTS[column.type]
    if column.members:
        return column.members[0], column.members[-1]
    if column.type == "year":
        return 2025, 2026
    if pa.types.is_integer(kind):
        return 1, 2
    if pa.types.is_floating(kind):
        return 1.5, 2.5
    if column.type in GEOMETRIES:
        return tuple(struct.pack("<IBIdd", 0, 1, 1, float(n), float(n)) for n in (1, 2))
    if column.type == "vector":
        return tuple(struct.pack("<f", n) * max(column.length // 4, 1) for n in (1, 2))
    if column.type == "bit":
        return tuple(bytes([0] * ((column.precision + 7) // 8 - 1) + [n]) for n in (0, 1))
    return (b"a", b"b") if pa.types.is_binary(kind) else ("a", "b")
