"""The rows that a repair reads on both ends: as literals for its statements, and in the compared form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from unshard.compare.executor.keys import (
    Key,
    is_spelled,
    one_for_all,
    shard_condition,
    source_spellings,
    target_condition,
)
from unshard.compare.executor.rows import (
    SideConnections,
    as_target,
    in_form,
    key_literals,
    reading_shard,
    reading_target,
    row_hashes,
    target_batches,
)
from unshard.compare.result import RowClass
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.dump.read import read_rows
from unshard.model.table import Column
from unshard.transform.column_mapping import apply_mapping
from unshard.transform.extract import append_constants
from unshard.transform.latest_time import without_fraction
from unshard.transform.sql_literals import literal_texts, sql_literals


@dataclass(frozen=True, slots=True)
class RepairOrder:
    """The keys of one table to repair in one transaction, each with the class of its difference.

    A table without a key has hashes of rows for keys. `exchanged`: the rows hold each other's values of unique keys, so
    those that are changed are all deleted first, and then inserted.
    """

    table: ComparedTable
    rows: tuple[tuple[Key, RowClass], ...]
    exchanged: bool = False

    @property
    def hashes(self) -> np.ndarray:
        """Hashes of the rows, for a table without a key."""
        return np.array([int(key[0]) for key, _ in self.rows], dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class RepairRow:
    """A row twice: as literals for the statement, and as values in the canonical form in which rows are compared."""

    written: tuple[str, ...]
    compared: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class AskedKeys:
    """The keys by which the sources are read for an order, in all spellings that are known.

    `unsure` are those of the order that are extra in the target, where a source doesn't know the target's collation.
    """

    keys: tuple[Key, ...] = ()
    unsure: frozenset[Key] = frozenset()


def keys_to_ask(order: RepairOrder) -> AskedKeys:
    """Return the keys of an order, and those that other rows of both ends have in their place.

    Reads without locks, on connections of its own. Raises SourceError, TargetError.
    """
    table, keys = order.table, [key for key, _ in order.rows]
    if not table.key or not is_spelled(table):
        return AskedKeys(tuple(keys) if table.key else ())
    extra = [key for key, kind in order.rows if kind is RowClass.EXTRA]
    with SideConnections() as connections:
        for batch in target_batches(connections, table, (target_condition(table, keys),)):
            keys += key_literals(batch, table)
        owned = source_spellings(connections, table, extra) if extra else []
    return AskedKeys(tuple(dict.fromkeys((*keys, *(owned or ())))), frozenset(extra if owned is None else ()))


@dataclass(slots=True)
class SourceRows:
    """The rows of the sources under an order's keys.

    For a table with a key they are in `by_key`. For a table without one, `literals` has the values of the rows, by
    hash, `least` the number that the target must have, and `most` the number that it may have: those that the copy left
    out (`where`) are there only where they have changed after it. `unsure` are keys that a source may have in a
    spelling that it was not asked for.
    """

    by_key: dict[Key, list[RepairRow]] = field(default_factory=dict)
    least: Counter[int] = field(default_factory=Counter)
    most: Counter[int] = field(default_factory=Counter)
    literals: dict[int, tuple[str, ...]] = field(default_factory=dict)
    unsure: frozenset[Key] = frozenset()


def read_sources(
    order: RepairOrder, asked: AskedKeys, connections: SideConnections, *, locking: bool = False
) -> SourceRows:
    """Return the order's rows on all sources. A table without a key is read whole.

    `locking`: nobody changes these rows, or inserts such, until the connections are closed.
    """
    table, found = order.table, SourceRows(unsure=asked.unsure)
    if not table.key:
        wanted = order.hashes

        def counted(shard: ComparedShard, where: str = "") -> Counter[int]:
            counts: Counter[int] = Counter()
            conditions = (table.condition, where)
            for batch, written in _shard_rows(connections, table, shard, conditions, wanted, locking=locking):
                count_rows(batch, written, counts, found.literals)
            return counts

        for shard in table.shards:
            whole = counted(shard)
            found.most.update(whole)
            found.least.update(counted(shard, shard.where) if shard.where else whole)
        return found
    for shard in table.shards:
        condition = shard_condition(table, shard, asked.keys)
        if condition:
            for batch, written in _shard_rows(connections, table, shard, (condition,), locking=locking):
                for key, row in _rows(batch, table, written):
                    found.by_key.setdefault(key, []).append(row)
    return found


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """The rows of both ends under one key of an order, which the target may have in another spelling, `spelled`."""

    key: Key
    kind: RowClass
    source: Sequence[RepairRow] = ()
    target: RepairRow | None = None
    spelled: Key = ()


def rows_by_key(order: RepairOrder, source: SourceRows, connections: SideConnections) -> Iterator[KeyedRows]:
    """Yield the rows of each key of an order, once for keys that the target takes for one. Reads the target.

    A row of the target is written as the columns that only the target has, for an order of `exchanged` rows.
    """
    table, keys = order.table, [key for key, _ in order.rows]
    target = dict(_target_rows(connections, table, keys, table.own if order.exchanged else ()))
    same = one_for_all(connections, table, [*keys, *source.by_key, *target])
    ours: dict[Key, list[RepairRow]] = {}
    for key, found in source.by_key.items():
        ours.setdefault(same[key], []).extend(found)
    theirs = {same[key]: (key, row) for key, row in target.items()}
    done: set[Key] = set()
    for key, kind in order.rows:
        one = same[key]
        if one in done or key in source.unsure:
            continue
        done.add(one)
        spelled, row = theirs.get(one, ((), None))
        yield KeyedRows(key, kind, ours.get(one, ()), row, spelled)


def _target_rows(
    connections: SideConnections, table: ComparedTable, keys: Sequence[Key], own: Sequence[Column]
) -> Iterator[tuple[Key, RepairRow]]:
    """Yield the target's rows under these keys. They are written as their `own` columns."""
    connection = connections.get(table.endpoint, "target")
    wide = replace(table.read, columns=(*table.read.columns, *own))
    with reading_target(table):
        for batch in read_rows(connection, wide, (target_condition(table, keys),)):
            found = _wide(batch)
            literals = [sql_literals(found.column(column.name), column) for column in own]
            written = list(zip(*literals, strict=True)) if own else [()] * len(batch)
            yield from _rows(in_form(batch, table), table, written)


def count_rows(
    batch: pa.RecordBatch,
    written: Sequence[tuple[str, ...]],
    counts: Counter[int],
    literals: dict[int, tuple[str, ...]],
) -> None:
    """Count rows by their hash, and keep the literals of one row of each hash."""
    for digest, texts in zip(row_hashes(batch).tolist(), written, strict=True):
        counts[digest] += 1
        literals.setdefault(digest, texts)


def _shard_rows(
    connections: SideConnections,
    table: ComparedTable,
    shard: ComparedShard,
    conditions: Sequence[str],
    wanted: np.ndarray | None = None,
    *,
    locking: bool = False,
) -> Iterator[tuple[pa.RecordBatch, list[tuple[str, ...]]]]:
    """Yield a source table's rows in the compared form, with each row's literals; `wanted`: only these hashes."""
    connection = connections.get(shard.endpoint, "source")
    with reading_shard(shard):
        for batch in read_rows(connection, shard.read, conditions, locking=locking):
            compared = as_target(batch, table, shard)
            mapped = apply_mapping(batch, shard.mapping) if shard.mapping is not None else batch
            written = _clamped(append_constants(mapped, shard.constants), table)
            yield _with_literals(written, compared, table, wanted)


def _clamped(batch: pa.RecordBatch, table: ComparedTable) -> pa.RecordBatch:
    """Return the rows with the TIME values that the task clamps as the target has them."""
    names = [name.lower() for name in batch.schema.names]
    for column in table.columns:
        if column.form.clamped:
            place = names.index(column.name.lower())
            batch = batch.set_column(place, batch.schema.field(place), without_fraction(batch.column(place)))
    return batch


def target_rows_by_hash(
    connections: SideConnections, table: ComparedTable, wanted: np.ndarray
) -> Iterator[tuple[pa.RecordBatch, list[tuple[str, ...]]]]:
    """Yield the rows of the target with these hashes, each with the literals of its own values."""
    connection = connections.get(table.endpoint, "target")
    with reading_target(table):
        for batch in read_rows(connection, table.read, (table.condition,)):
            yield _with_literals(_wide(batch), in_form(batch, table), table, wanted)


def _wide(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return FLOATs as the DOUBLEs that they are equal to: the text of a FLOAT equals none."""
    arrays = [one.cast(pa.float64()) if pa.types.is_float32(one.type) else one for one in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def _with_literals(
    batch: pa.RecordBatch, compared: pa.RecordBatch, table: ComparedTable, wanted: np.ndarray | None
) -> tuple[pa.RecordBatch, list[tuple[str, ...]]]:
    if wanted is not None:
        these = pa.array(np.isin(row_hashes(compared), wanted))
        batch, compared = batch.filter(these), compared.filter(these)
    names = [name.lower() for name in batch.schema.names]
    columns = [table.read.column(column.name) for column in table.columns]
    arrays = [batch.column(names.index(column.name.lower())) for column in columns]
    written = [sql_literals(array, column) for array, column in zip(arrays, columns, strict=True)]
    return compared, list(zip(*written, strict=True))


def _rows(
    batch: pa.RecordBatch, table: ComparedTable, written: Sequence[tuple[str, ...]]
) -> Iterator[tuple[Key, RepairRow]]:
    compared = list(zip(*(literal_texts(array) for array in batch.columns), strict=True))
    for key, literals, values in zip(key_literals(batch, table), written, compared, strict=True):
        yield key, RepairRow(literals, values)
