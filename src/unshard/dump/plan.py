"""The plan of a dump: tables with their size, the consistency, key ranges, shares of equal weight, snapshots."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from unshard.model.table import Column, Table, TableName, quote_name
from unshard.mysql.connection import rows
from unshard.mysql.structure import IS_TABLE, SYSTEM_SCHEMAS, table_names

Consistency = Literal["auto", "flush", "lock", "none"]
Resolved = Literal["lock-free", "flush", "lock", "none"]
Item = TypeVar("Item")

TRANSACTIONAL = "innodb"
_MOST_CHUNKS = 10_000
_WIDER = 2
"""Ranges of a large table are by that much wider than `_MOST_CHUNKS` takes, as it may have more rows than estimated."""

_LARGE = 32 << 20
_SNAPSHOT_BYTES = 4 << 20
_SNAPSHOT_TABLES = 32
_SNAPSHOTS = 8
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_BYTES = frozenset({"binary", "varbinary"})
_PLAIN = frozenset({"decimal", "year"})
_QUOTED = frozenset({"char", "varchar", "date", "datetime", "timestamp", "uuid", "inet4", "inet6"})
_LISTING = f"""
SELECT TABLE_SCHEMA, TABLE_NAME, COALESCE(ENGINE, ''), COALESCE(TABLE_ROWS, 0),
       COALESCE(DATA_LENGTH, 0) FROM information_schema.TABLES
 WHERE {IS_TABLE}
"""


@dataclass(frozen=True, slots=True)
class Listed:
    """A table as the server's statistics show it; `rows` and `size` (bytes) are estimates.

    `transactional`: its engine is InnoDB.
    """

    name: TableName
    transactional: bool
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class TableChunk:
    """A part of a table: the rows that satisfy `condition`, "" for all. Numbers count from 0 in key order.

    `key` are the columns that `condition` names: it covers a row only while they are the same, and not NULL.
    """

    table: TableName
    number: int
    condition: str = ""
    transactional: bool = True
    key: tuple[Column, ...] = ()


def list_tables(connection: Any, allows: Callable[[TableName], bool]) -> tuple[Listed, ...]:
    """Return the allowed base tables, sorted by name. Of a system-versioned table a dump holds the current rows.

    A table that MariaDB does not list at that moment (`table_names`) is asked for by its name.
    """
    found = {listed.name: listed for listed in _listed(connection, _LISTING) if allows(listed.name)}
    for name in table_names(connection):
        if name not in found and allows(name):
            asked = f"{_LISTING} AND TABLE_SCHEMA = %s AND TABLE_NAME = %s"
            found |= {listed.name: listed for listed in _listed(connection, asked, (name.schema, name.table))}
    return tuple(found[name] for name in sorted(found))


def _listed(connection: Any, asked: str, values: Sequence[str] = ()) -> Iterator[Listed]:
    for schema, table, engine, count, size in rows(connection, asked, values):
        if schema.lower() not in SYSTEM_SCHEMAS:
            yield Listed(TableName(schema, table), engine.lower() == TRANSACTIONAL, int(count), int(size))


def resolve(
    consistency: Consistency,
    tables: Sequence[Listed],
    *,
    tells_positions: bool,
    follows: bool = True,
    flushes: bool = False,
) -> Resolved:
    """Resolve `auto`: lock-free where a snapshot tells its position and every table is transactional.

    Where the log is not followed afterwards (`follows`) all tables must be of one moment: under a lock, if the account
    may take it (`flushes`), as one connection reads all tables of one snapshot.
    """
    if consistency != "auto":
        return consistency
    lock_free = tells_positions and all(table.transactional for table in tables)
    return "lock-free" if lock_free and (follows or not flushes) else "flush"


def shares(items: Sequence[Item], weights: Sequence[int], count: int) -> list[list[Item]]:
    """Deal items to at most `count` shares of about equal weight, the heaviest first; no share is empty."""
    heap = [(0, number) for number in range(min(count, len(items)))]
    dealt: list[list[Item]] = [[] for _ in heap]
    for weight, place in sorted(((w, p) for p, w in enumerate(weights)), key=lambda pair: (-pair[0], pair[1])):
        load, number = heapq.heappop(heap)
        dealt[number].append(items[place])
        heapq.heappush(heap, (load + weight + 1, number))
    return dealt


def readers_of(tables: Sequence[Listed], threads: int) -> dict[TableName, int]:
    """Return how many of the connections read a table side by side, for tables that are a large part of all.

    Together no more than `threads`. A table that is not among them is read by one connection, as the others are.
    """
    total = sum(table.size for table in tables)
    found = {table.name: threads * table.size // total for table in tables if table.size >= _LARGE}
    return {name: readers for name, readers in found.items() if readers > 1}


def snapshot_groups(tables: Sequence[TableName], sizes: Mapping[TableName, int]) -> list[tuple[TableName, ...]]:
    """Cut the tables that one task dumps into groups, each of which has one snapshot; the order stays.

    A snapshot costs more than the rows of a small table, and it delays a DDL on its tables until the last one is read:
    0.08 s for a full group. So a group has at most `_SNAPSHOT_BYTES`, or is one table, and there are at least
    `_SNAPSHOTS` groups where there are that many tables. A table without a size counts as empty.
    """
    most = min(_SNAPSHOT_TABLES, max(1, len(tables) // _SNAPSHOTS))
    groups: list[tuple[TableName, ...]] = []
    size = 0
    for name in tables:
        more = sizes.get(name, 0)
        if groups and len(groups[-1]) < most and size + more <= _SNAPSHOT_BYTES:
            groups[-1] = (*groups[-1], name)
            size += more
        else:
            groups.append((name,))
            size = more
    return groups


def key_ranges(connection: Any, table: Table, count: int) -> list[str]:
    """Return conditions for up to `count` key ranges of one width, which cover every row once; `[""]` for the whole.

    The first column of the identity makes the ranges, if it is an integer.
    """
    key = _range_columns(table)[:1]
    if not key or key[0].type not in _INTEGERS:
        return [""]
    name = quote_name(key[0].name)
    ((low, high),) = rows(connection, f"SELECT MIN({name}), MAX({name}) FROM {table.name.quoted}")
    if low is None:
        return [""]
    bounds = [(str(bound),) for bound in _even(int(low), int(high), count)]
    lowers: list[tuple[str, ...] | None] = [None, *bounds]
    return [_range(key, lower, upper) for lower, upper in zip(lowers, [*bounds, None], strict=True)]


def whole(listed: Listed) -> TableChunk:
    """Return the chunk that is a whole table."""
    return TableChunk(listed.name, 0, "", listed.transactional)


def split(connection: Any, listed: Listed, table: Table, rows_per_chunk: int) -> list[TableChunk]:
    """Cut a table into key ranges of about `rows_per_chunk` rows; together they cover every row once.

    The first usable columns of the identity make the ranges. A table without any is one chunk. The bounds
    need no snapshot, as any bounds cut the key space in disjoint parts.
    """
    key = _range_columns(table)
    if not key or listed.rows <= rows_per_chunk:
        return [whole(listed)]
    if len(key) == 1 and key[0].type in _INTEGERS:
        bounds = _even_bounds(connection, listed, key[0], rows_per_chunk)
    else:
        bounds = _counted_bounds(
            connection, listed.name, key, max(rows_per_chunk, _WIDER * listed.rows // _MOST_CHUNKS)
        )
    lowers: list[tuple[str, ...] | None] = [None, *bounds]
    uppers: list[tuple[str, ...] | None] = [*bounds, None]
    return [
        TableChunk(listed.name, number, _range(key, lower, upper), listed.transactional, tuple(key))
        for number, (lower, upper) in enumerate(zip(lowers, uppers, strict=True))
    ]


def fits(chunk: TableChunk, table: Table) -> bool:
    """Return whether a chunk is still right for the table as it is when it is read.

    An ALTER or a RENAME after the plan may have changed that.
    """
    return not chunk.key or chunk.key == tuple(_range_columns(table))


def _range_columns(table: Table) -> list[Column]:
    """Return the leading identity columns whose order in SQL comparisons is that of the index."""
    usable: list[Column] = []
    for name in table.identity:
        column = table.column(name)
        if column.type not in _INTEGERS | _BYTES | _PLAIN | _QUOTED:
            break
        usable.append(column)
    return usable


def _even_bounds(connection: Any, listed: Listed, key: Column, rows_per_chunk: int) -> list[tuple[str, ...]]:
    name = quote_name(key.name)
    ((low, high),) = rows(connection, f"SELECT MIN({name}), MAX({name}) FROM {listed.name.quoted}")
    if low is None:
        return []
    count = min(-(-listed.rows // rows_per_chunk), _MOST_CHUNKS)
    return [(str(bound),) for bound in _even(int(low), int(high), count)]


def _even(low: int, high: int, count: int) -> list[int]:
    """Return the bounds between up to `count` ranges of one width."""
    count = min(count, high - low + 1)
    return [low + (high - low) * number // count for number in range(1, count)]


def _counted_bounds(
    connection: Any, name: TableName, key: Sequence[Column], rows_per_chunk: int
) -> list[tuple[str, ...]]:
    """Return every `rows_per_chunk`-th key, found by walking the index."""
    columns = ", ".join(quote_name(column.name) for column in key)
    bounds: list[tuple[str, ...]] = []
    while len(bounds) < _MOST_CHUNKS:
        condition = _range(key, bounds[-1] if bounds else None, None) or "TRUE"
        printed = ", ".join(_printed(column) for column in key)
        found = rows(
            connection,
            f"SELECT {printed} FROM {name.quoted} WHERE {condition} ORDER BY {columns} LIMIT {rows_per_chunk - 1}, 1",
        )
        if not found:
            break
        bounds.append(tuple(_literal(column, value) for column, value in zip(key, found[0], strict=True)))
    return bounds


def _range(key: Sequence[Column], lower: tuple[str, ...] | None, upper: tuple[str, ...] | None) -> str:
    """Return `lower < key AND key <= upper`, written with ORs, which both servers turn into an index range."""
    parts = []
    if lower is not None:
        parts.append(f"({_compared(key, lower, '>', '>')})")
    if upper is not None:
        parts.append(f"({_compared(key, upper, '<', '<=')})")
    return " AND ".join(parts)


def _compared(key: Sequence[Column], bound: tuple[str, ...], sign: str, last: str) -> str:
    """Return `a > 1 OR (a = 1 AND b > 2)`, with `last` as the sign of the last column."""
    terms = []
    for number, column in enumerate(key):
        term = f"{quote_name(column.name)} {last if number == len(key) - 1 else sign} {bound[number]}"
        terms.append(f"({_equal(key[:number], bound[:number])} AND {term})" if number else term)
    return " OR ".join(terms)


def _equal(key: Sequence[Column], bound: tuple[str, ...]) -> str:
    pairs = zip(key, bound, strict=True)
    return " AND ".join(f"{quote_name(column.name)} = {value}" for column, value in pairs)


def _printed(column: Column) -> str:
    name = quote_name(column.name)
    return f"HEX({name})" if column.type in _BYTES else f"CAST({name} AS CHAR)"


def _literal(column: Column, value: str) -> str:
    if column.type in _BYTES:
        return f"x'{value}'"
    if column.type in _INTEGERS | _PLAIN:
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
