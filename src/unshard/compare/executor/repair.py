"""The statements that make rows of the target what the sources hold now, from a fresh read of both.

| the row was | and now | statement |
|---|---|---|
| missing | one source row has the key, the target has none | INSERT of all columns that are compared |
| extra | no source row has the key | DELETE by key |
| changed | both ends have it | UPDATE of the columns that differ now, by key |

Keys are those that the target takes for one, however either end spells them. Before a DELETE the sources are asked
under the target's collation, and it deletes only a row whose key is spelled as it was read.

A row that has changed since it was reported is left out and counted: its change is under way.

Of a table without a key, the rows with one hash are counted on both ends. A surplus of the target goes by
`DELETE … LIMIT n`, found by all of its values; a surplus of the sources is inserted.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import MySQLdb
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
    asked_again,
    in_form,
    key_literals,
    row_hashes,
    target_batches,
)
from unshard.compare.result import RowClass
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.dump.read import read_rows
from unshard.errors import UnshardError, enclose
from unshard.model.table import Column, quote_name
from unshard.mysql.connection import server_error
from unshard.mysql.types import CHARACTERS, MEMBERS
from unshard.transform.column_mapping import apply_mapping
from unshard.transform.extract import append_constants
from unshard.transform.latest_time import without_fraction
from unshard.transform.sql_literals import literal_texts, sql_literals


@dataclass(frozen=True, slots=True)
class RepairOrder:
    """The keys of one table to repair, each with the class of its difference.

    A table without a key has hashes of rows for keys.
    """

    table: ComparedTable
    rows: tuple[tuple[Key, RowClass], ...]

    @property
    def hashes(self) -> np.ndarray:
        """Hashes of the rows, for a table without a key."""
        return np.array([int(key[0]) for key, _ in self.rows], dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class RowRepair:
    """One statement that repairs the row `key`, without a semicolon; it must change `rows` rows.

    `error_values` are the ENUM columns of the row that have the number 0, which is none of their members.
    """

    key: Key
    kind: RowClass
    statement: str
    rows: int = 1
    error_values: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Row:
    """A row twice: as literals for the statement, and as values in the canonical form in which rows are compared."""

    written: tuple[str, ...]
    compared: tuple[Any, ...]


def repair_statements(payload: bytes) -> bytes:
    """Spark task: of a pickled RepairOrder, `{"statements": [kind, text]…, "moved": rows left out}` as outcome.

    Reads only. Safe to run again.
    """
    order: RepairOrder = pickle.loads(payload)
    return enclose(lambda: asked_again(partial(_statements, order)))


def _statements(order: RepairOrder) -> dict[str, Any]:
    asked = keys_to_ask(order)
    made = fresh_repairs(order, asked)
    return {
        "statements": [[one.kind.value, f"{one.statement};"] for one in made],
        "moved": len(order.rows) - len(made) - len(asked.unsure),
        "unsure": len(asked.unsure),
    }


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
    with closing(SideConnections()) as connections:
        for batch in target_batches(connections, table, (target_condition(table, keys),)):
            keys += key_literals(batch, table)
        owned = source_spellings(connections, table, extra) if extra else []
    return AskedKeys(tuple(dict.fromkeys((*keys, *(owned or ())))), frozenset(extra if owned is None else ()))


@dataclass(slots=True)
class SourceRows:
    """The rows of the sources under an order's keys.

    For a table with a key they are in `by_key`. For a table without one, `counts` and `literals` have the number and
    the values of the rows, by hash. `unsure` are keys that a source may have in a spelling that it was not asked for.
    """

    by_key: dict[Key, list[_Row]] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)
    literals: dict[int, tuple[str, ...]] = field(default_factory=dict)
    unsure: frozenset[Key] = frozenset()


def fresh_repairs(order: RepairOrder, asked: AskedKeys) -> list[RowRepair]:
    """Return the repairs, read in a snapshot of each end; none for a row in another state than the order's.

    Raises SourceError, TargetError, and what mapping and reading raise.
    """
    with closing(SideConnections()) as connections:
        return repairs_of(order, read_sources(order, asked, connections), connections)


def read_sources(
    order: RepairOrder, asked: AskedKeys, connections: SideConnections, *, locking: bool = False
) -> SourceRows:
    """Return the order's rows on all sources. A table without a key is read whole.

    `locking`: nobody changes these rows, or inserts such, until the connections are closed.
    """
    table, found = order.table, SourceRows(unsure=asked.unsure)
    if not table.key:
        wanted = order.hashes
        for shard in table.shards:
            conditions = (table.condition, shard.where)
            for batch, written in _shard_rows(connections, table, shard, conditions, wanted, locking=locking):
                _count(batch, written, found.counts, found.literals)
        return found
    for shard in table.shards:
        condition = shard_condition(table, shard, asked.keys)
        if condition:
            for batch, written in _shard_rows(connections, table, shard, (condition,), locking=locking):
                for key, row in _rows(batch, table, written):
                    found.by_key.setdefault(key, []).append(row)
    return found


def repairs_of(order: RepairOrder, source: SourceRows, connections: SideConnections) -> list[RowRepair]:
    """Return the repairs that give the target these rows of the sources. Reads the target."""
    return list((_by_key if order.table.key else _by_row_hash)(order, source, connections))


def _by_key(order: RepairOrder, source: SourceRows, connections: SideConnections) -> Iterator[RowRepair]:
    table, keys = order.table, [key for key, _ in order.rows]
    target = {
        key: row
        for batch in target_batches(connections, table, (target_condition(table, keys),))
        for key, row in _rows(batch, table, [()] * len(batch))
    }
    same = one_for_all(connections, table, [*keys, *source.by_key, *target])
    ours: dict[Key, list[_Row]] = {}
    for key, found in source.by_key.items():
        ours.setdefault(same[key], []).extend(found)
    theirs = {same[key]: (key, row) for key, row in target.items()}
    done: set[Key] = set()
    for key, kind in order.rows:
        one = same[key]
        if one in done or key in source.unsure:
            continue
        done.add(one)
        its = ours.get(one, ())
        statement = _statement(table, kind, its, theirs.get(one))
        if statement:
            yield RowRepair(key, kind, statement, 1, _error_values(table, its))


def _statement(table: ComparedTable, kind: RowClass, source: Sequence[_Row], target: tuple[Key, _Row] | None) -> str:
    """Return the statement for a row; empty where the row has another state now."""
    if target is None:
        return _insert(table, source[0].written) if kind is RowClass.MISSING and len(source) == 1 else ""
    key, there = target
    equal = [f"{quote_name(column)} = {text}" for column, text in zip(table.key, key, strict=True)]
    if kind is RowClass.EXTRA and not source:
        columns = [table.read.column(name) for name in table.key]
        equal += [_same_value(one, text) for one, text in zip(columns, key, strict=True) if one.text_with_collation]
        return f"DELETE FROM {table.name.quoted} WHERE {' AND '.join(equal)}"
    if kind is RowClass.CHANGED and len(source) == 1:
        (row,) = source
        names = [quote_name(column.name) for column in table.columns]
        places = [at for at in range(len(names)) if row.compared[at] != there.compared[at]]
        listed = ",".join(f"{names[at]}={row.written[at]}" for at in places)  # as `target.error_values` reads it
        return f"UPDATE {table.name.quoted} SET {listed} WHERE {' AND '.join(equal)}" if listed else ""
    return ""


def _error_values(table: ComparedTable, source: Sequence[_Row]) -> frozenset[str]:
    columns = [table.read.column(column.name) for column in table.columns]
    pairs = (pair for row in source for pair in zip(columns, row.written, strict=True))
    return frozenset(column.name for column, text in pairs if column.type == "enum" and text == "0")


def _insert(table: ComparedTable, written: Sequence[str], times: int = 1) -> str:
    columns = ", ".join(quote_name(column.name) for column in table.columns)
    return f"INSERT INTO {table.name.quoted} ({columns}) VALUES " + ", ".join([f"({', '.join(written)})"] * times)


def _by_row_hash(order: RepairOrder, source: SourceRows, connections: SideConnections) -> Iterator[RowRepair]:
    table = order.table
    target: dict[int, tuple[str, ...]] = {}
    there: Counter[int] = Counter()
    for batch, found in _raw_target_rows(connections, table, order.hashes):
        _count(batch, found, there, target)
    for key, kind in order.rows:
        digest = int(key[0])
        more = source.counts[digest] - there[digest]
        if kind is RowClass.MISSING and more > 0:
            row = source.literals[digest]
            yield RowRepair(key, kind, _insert(table, row, more), more, _error_values(table, (_Row(row, ()),)))
        elif kind is RowClass.EXTRA and more < 0:
            equal = map(_same_value, (table.read.column(c.name) for c in table.columns), target[digest])
            statement = f"DELETE FROM {table.name.quoted} WHERE {' AND '.join(equal)} LIMIT {-more}"
            yield RowRepair(key, kind, statement, -more)


def _count(
    batch: pa.RecordBatch,
    written: Sequence[tuple[str, ...]],
    counts: Counter[int],
    literals: dict[int, tuple[str, ...]],
) -> None:
    for digest, texts in zip(row_hashes(batch).tolist(), written, strict=True):
        counts[digest] += 1
        literals.setdefault(digest, texts)


def _same_value(column: Column, literal: str) -> str:
    """Return the condition that the target's column has exactly that value.

    A collation may take other values for equal.
    """
    name = quote_name(column.name)
    if column.type in ("float", "double"):
        return f"{name} * 1e0 <=> {literal}"
    if column.type == "json":
        return f"CONVERT({name} USING utf8mb4) <=> CONVERT(CAST({literal} AS JSON) USING utf8mb4)"
    if column.type == "bit" and literal != "NULL":
        return f"{name} <=> {int(literal[2:-1], 16)}"
    if column.type == "enum" and literal == "0":
        return f"{name} <=> 0"
    if (column.type in CHARACTERS or column.type in MEMBERS) and column.charset != "binary":
        return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY) <=> CAST(CONVERT({literal} USING utf8mb4) AS BINARY)"
    return f"{name} <=> {literal}"


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
    try:
        for batch in read_rows(connection, shard.read, conditions, locking=locking):
            compared = as_target(batch, table, shard)
            mapped = apply_mapping(batch, shard.mapping) if shard.mapping is not None else batch
            written = _clamped(append_constants(mapped, shard.constants), table)
            yield _with_literals(written, compared, table, wanted)
    except MySQLdb.Error as error:
        raise server_error(error, shard.endpoint, "source", "reading a table").at(
            source=shard.source, table=str(shard.table.name)
        ) from error
    except UnshardError as error:
        raise error.at(source=shard.source, table=str(shard.table.name)) from None


def _clamped(batch: pa.RecordBatch, table: ComparedTable) -> pa.RecordBatch:
    """Return the rows with the TIME values that the task clamps as the target has them."""
    names = [name.lower() for name in batch.schema.names]
    for column in table.columns:
        if column.form.clamped:
            place = names.index(column.name.lower())
            batch = batch.set_column(place, batch.schema.field(place), without_fraction(batch.column(place)))
    return batch


def _raw_target_rows(
    connections: SideConnections, table: ComparedTable, wanted: np.ndarray
) -> Iterator[tuple[pa.RecordBatch, list[tuple[str, ...]]]]:
    """Yield the rows of the target with these hashes, each with the literals of its own values."""
    connection = connections.get(table.endpoint, "target")
    try:
        for batch in read_rows(connection, table.read, (table.condition,)):
            yield _with_literals(_wide(batch), in_form(batch, table), table, wanted)
    except MySQLdb.Error as error:
        raise server_error(error, table.endpoint, "target", "reading a table").at(table=str(table.name)) from error


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
) -> Iterator[tuple[Key, _Row]]:
    compared = list(zip(*(literal_texts(array) for array in batch.columns), strict=True))
    for key, literals, values in zip(key_literals(batch, table), written, compared, strict=True):
        yield key, _Row(literals, values)
