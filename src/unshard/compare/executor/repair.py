"""Spark task: the statements that make rows of the target what the sources hold now.

| the row was | and now | statement |
|---|---|---|
| missing | one source row has the key, the target has none | INSERT of all columns that are compared |
| extra | no source row has the key | DELETE by key |
| changed | both ends have it | UPDATE of the columns that differ now, by key |

A row that is in another state now than when it was told is left out and counted: its change is under way.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import MySQLdb
import pyarrow as pa

from unshard.compare.executor.look import Key, shard_condition, target_condition
from unshard.compare.executor.rows import ATTEMPTS, SideConnections, as_target, key_literals, target_batches
from unshard.compare.result import RowClass
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.dump.outcome import enclose
from unshard.dump.read import read_rows
from unshard.errors import UnshardError
from unshard.kernels.literals import render
from unshard.model.table import quote_name
from unshard.mysql.connection import server_error
from unshard.mysql.types import zero_text
from unshard.retry import retrying
from unshard.transform.column_mapping import apply_mapping
from unshard.transform.extract import append_constants


@dataclass(frozen=True, slots=True)
class RepairOrder:
    """Keys of one table, with what each row was found to be."""

    table: ComparedTable
    rows: tuple[tuple[Key, RowClass], ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """A row as literals of what is written, and as its values in the form in which both ends are compared."""

    written: tuple[str, ...]
    compared: tuple[Any, ...]


def repair_statements(payload: bytes) -> bytes:
    """Spark task: of a pickled RepairOrder, `{"statements": [kind, text]…, "moved": rows left out}` as outcome.

    Reads only. Safe to run again.
    """
    order: RepairOrder = pickle.loads(payload)
    return enclose(lambda: retrying(partial(_statements, order), attempts=ATTEMPTS))


def _statements(order: RepairOrder) -> dict[str, Any]:
    table, keys = order.table, [key for key, _ in order.rows]
    connections = SideConnections()
    try:
        source: dict[Key, list[_Row]] = {}
        for shard in table.shards:
            condition = shard_condition(table, shard, keys)
            for key, row in _shard_rows(connections, table, shard, condition) if condition else ():
                source.setdefault(key, []).append(row)
        target = dict(_target_rows(connections, table, target_condition(table, keys)))
    finally:
        connections.close()
    made = [_statement(table, key, kind, source.get(key, ()), target.get(key)) for key, kind in order.rows]
    return {"statements": [one for one in made if one is not None], "moved": made.count(None)}


def _statement(
    table: ComparedTable, key: Key, kind: RowClass, source: Sequence[_Row], target: _Row | None
) -> tuple[str, str] | None:
    name = table.name.quoted
    where = " AND ".join(f"{quote_name(column)} = {text}" for column, text in zip(table.key, key, strict=True))
    columns = [quote_name(column.name) for column in table.columns]
    if kind is RowClass.MISSING and len(source) == 1 and target is None:
        return kind.value, f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join(source[0].written)});"
    if kind is RowClass.EXTRA and not source and target is not None:
        return kind.value, f"DELETE FROM {name} WHERE {where};"
    if kind is RowClass.CHANGED and len(source) == 1 and target is not None:
        (row,) = source
        places = [at for at in range(len(columns)) if row.compared[at] != target.compared[at]]
        if places:
            listed = ", ".join(f"{columns[at]} = {row.written[at]}" for at in places)
            return kind.value, f"UPDATE {name} SET {listed} WHERE {where};"
    return None


def _shard_rows(
    connections: SideConnections, table: ComparedTable, shard: ComparedShard, condition: str
) -> Iterator[tuple[Key, _Row]]:
    connection = connections.get(shard.endpoint, "source")
    bare = [table.read.column(column.name).type == "decimal" for column in table.columns]
    try:
        for batch in read_rows(connection, shard.read, (condition,)):
            mapped = apply_mapping(batch, shard.mapping) if shard.mapping is not None else batch
            mapped = append_constants(mapped, shard.constants)
            names = [name.lower() for name in mapped.schema.names]
            arrays = [mapped.column(names.index(column.name.lower())) for column in table.columns]
            written = [_literals(array, plain) for array, plain in zip(arrays, bare, strict=True)]
            written = [_numbered(texts, table, place) for place, texts in enumerate(written)]
            yield from _rows(as_target(batch, table, shard), table, list(zip(*written, strict=True)))
    except MySQLdb.Error as error:
        raise server_error(error, shard.endpoint, "source", "reading a table").at(
            source=shard.source, table=str(shard.table.name)
        ) from error
    except UnshardError as error:
        raise error.at(source=shard.source, table=str(shard.table.name)) from None


def _target_rows(connections: SideConnections, table: ComparedTable, condition: str) -> Iterator[tuple[Key, _Row]]:
    for batch in target_batches(connections, table, (condition,)):
        yield from _rows(batch, table, [()] * len(batch))


def _rows(
    batch: pa.RecordBatch, table: ComparedTable, written: Sequence[tuple[str, ...]]
) -> Iterator[tuple[Key, _Row]]:
    compared = list(zip(*(_literals(array, plain=False) for array in batch.columns), strict=True))
    for key, literals, values in zip(key_literals(batch, table), written, compared, strict=True):
        yield key, _Row(literals, values)


def _numbered(texts: list[str], table: ComparedTable, place: int) -> list[str]:
    """With the number 0 for the text that stands for it where an ENUM has an empty member."""
    column = table.read.column(table.columns[place].name)
    zero = zero_text(column) if column.type == "enum" and column.members else ""
    return ["0" if zero and text == f"'{zero}'" else text for text in texts]


def _literals(array: pa.Array, plain: bool) -> list[str]:
    """SQL literals of a column; `plain`: texts that are numbers, without quotes."""
    found: list[bytes] = render([array], [b""], b"", [plain]).to_pylist()
    return [text.decode() for text in found]
