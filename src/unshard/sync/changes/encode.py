"""Step *encode*: turn row images of one table into changes in SQL text, each with its partition.

| images | key | becomes |
|---|---|---|
| INSERT | | INSERT |
| DELETE | | DELETE |
| UPDATE_BEFORE, UPDATE_AFTER | same | UPDATE |
| UPDATE_BEFORE, UPDATE_AFTER | changed | DELETE of the old, INSERT of the new |
| UPDATE_BEFORE, UPDATE_AFTER | ordered or tied table | UPDATE by `old_key`; by `key` where it is free |
| UPDATE_BEFORE, UPDATE_AFTER | same, and the table's plan has `kept` columns | UPDATE_SET of the others; UPDATE of \
all where the row is inserted in the batch too |

`key` and `row` are written so that the texts of adjacent rows, as they lie in the Arrow buffer, are the list of a
statement: `5,6,` for IN, `(`a`=1 AND `b`=2) OR ` for a composite key, `(1,'x'),` for VALUES.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.errors import BinlogError, Where
from unshard.kernels.literals import partition_of, range_partition_of, render
from unshard.model.change import ENCODED_SCHEMA, IMAGE_FIELDS, Op
from unshard.model.table import Column, quote_name
from unshard.mysql.types import as_written, zero_text
from unshard.sync.batch.plan import TablePlan, TargetPlan

_BYTES_OF = (b"CAST(CONVERT(", b" USING utf8mb4) AS BINARY)")


def key_separator(target: TargetPlan) -> bytes:
    """Return the bytes that end each key text; they are cut off the last one of a list."""
    return b"," if len(target.key) == 1 and not target.keyless else b" OR "


def partitions_of(target: TargetPlan, keys: pa.Array, partitions: int, range_digits: int) -> np.ndarray:
    """Return the partition of every key text, by `BatchShape.range_digits`. Pure: it depends on the text alone."""
    found: np.ndarray
    if range_digits:
        listed = len(target.key) == 1 and not target.keyless
        tail = len(key_separator(target)) + (0 if listed else len(b")"))
        found = range_partition_of(keys, partitions, tail, range_digits)
    else:
        found = partition_of(keys, partitions)
    return found


@dataclass(frozen=True, slots=True)
class Ties:
    """The result of step *causality* for the images of one table. Each array has one entry per image.

    `key`: the key's text. `part`: the partition. `ordered`: whether the image's change keeps the order of the log.
    `born`: whether the table's first change of the row is an INSERT.
    """

    key: pa.Array
    part: np.ndarray
    ordered: np.ndarray
    born: np.ndarray


def encode(
    plan: TablePlan,
    batch: pa.RecordBatch,
    partitions: int,
    mine: np.ndarray | None,
    ties: Ties | None = None,
    *,
    compact: bool = True,
    multiple_rows: bool = True,
    tables: np.ndarray | None = None,
    range_digits: int = 0,
) -> tuple[pa.RecordBatch, int]:
    """Encode the images of one table; with `mine`, only changes of those partitions are kept.

    The images may be of several tables, table after table, that are written alike: `tables` has the table's number by
    image then. All changes are ordered where the table is ordered, or where it is tied and there are no `ties`.
    `compact`: free changes will be compacted, so each is encoded in the form that its row will need. Without
    `multiple_rows` an UPDATE of a tied table is encoded as assignments. `range_digits`: as in `BatchShape`.

    Returns a batch of ENCODED_SCHEMA in the order of the images, and the number of changes before `mine` was applied.
    Called in a Spark task; pure. Raises BinlogError BINLOG-021 as `keys_of`.
    """
    target = plan.target
    op = batch.column(0).to_numpy(zero_copy_only=False)
    before = np.flatnonzero(op == Op.UPDATE_BEFORE)
    key = ties.key if ties is not None else keys_of(plan, batch)
    new_op = np.where(op == Op.UPDATE_AFTER, np.int8(Op.UPDATE), op).astype(np.int8)
    kept = np.ones(len(op), dtype=bool)
    if ties is not None and target.tied:
        kept[before] = False
        part, in_order = ties.part, ties.ordered
    elif target.ordered or target.tied:
        kept[before] = False
        in_order = np.ones(len(op), dtype=bool)
        name = pa.array([target.order_name], pa.binary())
        part = np.full(len(op), partition_of(name, partitions)[0], dtype=np.int32)
    else:
        in_order = np.zeros(len(op), dtype=bool)
        if len(before):
            same = pc.equal(key.take(pa.array(before)), key.take(pa.array(before + 1))).to_numpy(zero_copy_only=False)
            kept[before[same]] = False
            new_op[before[~same]] = Op.DELETE
            new_op[before[~same] + 1] = Op.INSERT
        part = partitions_of(target, key, partitions, range_digits)
    seen = int(kept.sum())
    if mine is not None:
        kept &= np.isin(part, mine)
    index = np.flatnonzero(kept)
    if len(index) == len(op):
        chosen, keys = batch, key
    else:
        chosen, keys = batch.take(pa.array(index)), key.take(pa.array(index))
    new_op, part, in_order = new_op[index], part[index], in_order[index]
    by_condition = target.by_condition or (ties is not None and not multiple_rows)
    assigned = (new_op == Op.UPDATE) & (in_order | by_condition)
    if by_condition and compact and not in_order.all():
        free = ~in_order & (new_op != Op.DELETE)
        born = ties.born[index] if ties is not None else _born(new_op, keys, None if tables is None else tables[index])
        assigned = np.where(free, ~born, assigned)
    stays = np.zeros(len(index), dtype=bool)
    if plan.kept:
        made = _made(new_op, keys, None if tables is None else tables[index]) if compact else stays
        stays = (new_op == Op.UPDATE) & (in_order | ~made)
        new_op = np.where(stays & ~assigned, np.int8(Op.UPDATE_SET), new_op)
        assigned |= stays
    seq = batch.column(1).to_numpy(zero_copy_only=False)[index]
    old_key = _old_keys(key, index, (new_op == Op.UPDATE) & in_order)
    columns = [
        pa.array(np.full(len(index), target.id, dtype=np.int32)),
        pa.array(np.full(len(index), plan.id, dtype=np.int32) if tables is None else tables[index]),
        pa.array(new_op),
        pa.array(seq),
        keys,
        old_key,
        _rows(plan, chosen, assigned, (new_op != Op.DELETE) & ~assigned, stays),
        pa.array(in_order),
        pa.array(part),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ENCODED_SCHEMA), seen


def first_is_insert(op: np.ndarray, row: np.ndarray, seq: np.ndarray | None = None) -> np.ndarray:
    """Return, by image or change, whether the first one of its row is an INSERT.

    `row` numbers the rows from 0; `seq` is the order of the log, None where it is the order of the arrays. Pure.
    """
    if seq is None:
        _, first, number = np.unique(row, return_index=True, return_inverse=True)
        found: np.ndarray = (op[first] == Op.INSERT)[number]
        return found
    order = np.argsort(seq, kind="stable")
    found = np.empty(len(op), dtype=bool)
    found[order] = first_is_insert(op[order], row[order])
    return found


def _born(op: np.ndarray, keys: pa.Array, tables: np.ndarray | None) -> np.ndarray:
    """Return, by change, whether its table's first change of the row is an INSERT. Changes are in the log's order."""
    row = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return first_is_insert(op, row if tables is None else row * (int(tables.max(initial=0)) + 1) + tables)


def _made(op: np.ndarray, keys: pa.Array, tables: np.ndarray | None) -> np.ndarray:
    """Return, by change, whether any change of its row is an INSERT."""
    row = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    row = row if tables is None else row * (int(tables.max(initial=0)) + 1) + tables
    _, number = np.unique(row, return_inverse=True)
    made: np.ndarray = (np.bincount(number, weights=op == Op.INSERT) > 0)[number]
    return made


def keys_of(plan: TablePlan, batch: pa.RecordBatch) -> pa.Array:
    """Return the key text of every image. Raises BinlogError BINLOG-021 as `_refuse_zeros`."""
    target = plan.target
    columns, values = _chosen(plan, batch, target.key)
    if not target.keyless:
        _refuse_zeros(plan, columns, values)
    arrays = [_comparable(column, value, target) for column, value in zip(columns, values, strict=True)]
    bare = [is_bare(column) for column in columns]
    if len(columns) == 1 and not target.keyless:
        return render(arrays, [b""], key_separator(target), bare)
    equal = b"<=>" if target.keyless else b"="
    prefixes: list[bytes] = []
    end = b""
    for column in columns:
        name, begin, after = _comparison(column, target)
        prefixes.append(end + (b" AND " if prefixes else b"(") + name + equal + begin)
        end = after
    return render(arrays, prefixes, end + b")" + key_separator(target), bare)


def _old_keys(key: pa.Array, index: np.ndarray, updated: np.ndarray) -> pa.Array:
    """Return the key before the change for each UPDATE in `updated`, from the image before it; null for the rest."""
    if not updated.any():
        return pa.nulls(len(index), pa.binary())
    return key.take(pa.array(np.maximum(index - 1, 0), mask=~updated))


def _rows(
    plan: TablePlan, batch: pa.RecordBatch, assigned: np.ndarray, listed: np.ndarray, stays: np.ndarray
) -> pa.Array:
    """Return the new values as assignments, or as a VALUES tuple where they are `listed`; null for the rest.

    Those of rows in `stays` leave out the columns that the plan keeps.
    """
    found = [_scatter(_tuples(plan, batch, listed), listed)]
    if stays.any():
        columns = tuple(name for name in plan.target.columns if name not in plan.kept)
        own = replace(plan, target=replace(plan.target, columns=columns))
        found.append(_scatter(assignments(own, batch, assigned & stays), assigned & stays))
    whole = assigned & ~stays
    if whole.any():
        found.append(_scatter(assignments(plan, batch, whole), whole))
    return pc.coalesce(*found) if len(found) > 1 else found[0]


def _tuples(plan: TablePlan, batch: pa.RecordBatch, wanted: np.ndarray) -> pa.Array:
    prefixes = [b","] * len(plan.target.columns)
    prefixes[0] = b"("
    return _render_columns(plan, batch, wanted, prefixes, b"),")


def assignments(plan: TablePlan, batch: pa.RecordBatch, wanted: np.ndarray, suffix: bytes = b"") -> pa.Array:
    """Return `a`=1,`b`=2 of the target's columns, followed by `suffix`, for the images that are wanted."""
    names = [quote_name(name).encode() + b"=" for name in plan.target.columns]
    return _render_columns(plan, batch, wanted, [(b"," if i else b"") + name for i, name in enumerate(names)], suffix)


def _render_columns(
    plan: TablePlan, batch: pa.RecordBatch, wanted: np.ndarray, prefixes: list[bytes], suffix: bytes
) -> pa.Array:
    rows = batch if wanted.all() else batch.filter(pa.array(wanted))
    columns, arrays = _chosen(plan, rows, plan.target.columns)
    return render(arrays, prefixes, suffix, [is_bare(column) for column in columns])


def _chosen(plan: TablePlan, batch: pa.RecordBatch, names: tuple[str, ...]) -> tuple[list[Column], list[pa.Array]]:
    """Return columns and their values, found by number: the table may have a column called `op` or `seq` itself."""
    places = {column.name: place for place, column in enumerate(plan.table.columns)}
    columns = [plan.table.columns[places[name]] for name in names]
    values = [batch.column(len(IMAGE_FIELDS) + places[name]) for name in names]
    return columns, [as_written(column, array) for column, array in zip(columns, values, strict=True)]


def _scatter(values: pa.Array, wanted: np.ndarray) -> pa.Array:
    """Return `values` spread over the places where `wanted` is true; null elsewhere."""
    if len(values) == len(wanted):
        return values
    index = np.cumsum(wanted) - 1
    return (
        values.take(pa.array(np.maximum(index, 0), mask=~wanted)) if len(values) else pa.nulls(len(wanted), pa.binary())
    )


def is_bare(column: Column) -> bool:
    """Return whether the column's text goes into SQL without quotes."""
    return column.type == "decimal"


def _comparable(column: Column, values: Any, target: TargetPlan) -> Any:
    """Return values in the form by which the column is compared.

    FLOAT as the double it is: a FLOAT column compares as a double, so its short text would not match; but a DOUBLE
    column holds what that text says. BIT as a number, because bytes are read as a text there.
    """
    if values.type == pa.float32() and column.name not in target.doubles:
        return values.cast(pa.float64())
    return _numbers(values) if column.type == "bit" else values


def _refuse_zeros(plan: TablePlan, columns: list[Column], values: list[Any]) -> None:
    """Raise BinlogError BINLOG-021 for an ENUM's number 0 in a key, where the ENUM has an empty member too.

    The row can't be found: the texts of both are equal.
    """
    for column, array in zip(columns, values, strict=True):
        if (
            column.type == "enum"
            and column.members
            and (zero := zero_text(column))
            and pc.any(pc.equal(array, zero)).as_py()
        ):
            where = Where(table=str(plan.table.name))
            cause = "its ENUM has an empty member, and the number 0, which is no member, in the key of a row"
            raise BinlogError("BINLOG-021", where, cause, {"column": column.name})


def _numbers(values: Any) -> Any:
    """Return big-endian bytes, up to eight a value, as uint64."""
    there = values.is_valid().to_numpy(zero_copy_only=False)
    padded = pc.binary_join_element_wise(pa.scalar(bytes(8), pa.binary()), values.fill_null(b""), b"")
    data = pc.binary_slice(padded, -8).buffers()[2]
    numbers = np.frombuffer(data, dtype=">u8", count=len(values)).astype(np.uint64)
    return pa.array(numbers, mask=~there)


def _comparison(column: Column, target: TargetPlan) -> tuple[bytes, bytes, bytes]:
    """Return how a row is found by a column: the column's side, and what goes before and after the value.

    A JSON column equals no text, and holds what the target made of it, so the value is converted in the same way.
    """
    name = quote_name(column.name).encode()
    if column.type == "vector":
        return b"CAST(" + name + b" AS BINARY)", b"", b""
    if column.name in target.documents:
        begin, end = _BYTES_OF
        return begin + name + end, begin + b"CAST(", b" AS JSON)" + end
    if target.keyless and column.type == "enum" and column.members and (zero := zero_text(column).encode()):
        return b"IF(" + name + b"=0,'" + zero + b"'," + name + b")", b"", b""
    if column.name in target.bytewise:
        return _BYTES_OF[0] + name + _BYTES_OF[1], b"", b""
    return name, b"", b""
