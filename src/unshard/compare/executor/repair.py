"""The statements that make rows of the target what the sources hold now, from a fresh read of both.

| the row was | and now | statement |
|---|---|---|
| missing | one source row has the key, the target has none | INSERT of all columns that are compared |
| extra | no source row has the key | DELETE by key |
| changed | both ends have it | UPDATE of the columns that differ now, by key |
| changed, one of several that hold each other's values of a unique key | both ends have it | DELETE, before the \
statements of all other rows, and INSERT with the values of the columns that only the target has |

Keys are those that the target takes for one, however either end spells them. Before a DELETE the sources are asked
under the target's collation, and it deletes only a row whose key is spelled as it was read.

A row that is inserted again is deleted only where the columns that only the target has are as they were read: they have
other writers, whose changes must not be lost.

A row that has changed since it was reported is left out and counted: its change is under way.

Of a table without a key, the rows with one hash are counted on both ends. A surplus of the target goes by
`DELETE … LIMIT n`, found by all of its values; a surplus of the sources is inserted. Of rows that the copy left out
(`where`) the target may have any number that the sources have.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from unshard.compare.executor.keys import Key
from unshard.compare.executor.repair_rows import (
    AskedKeys,
    KeyedRows,
    RepairOrder,
    RepairRow,
    SourceRows,
    count_rows,
    keys_to_ask,
    read_sources,
    rows_by_key,
    target_rows_by_hash,
)
from unshard.compare.executor.rows import SideConnections, asked_again
from unshard.compare.result import RowClass
from unshard.compare.tables import ComparedTable
from unshard.errors import enclose
from unshard.model.table import Column, quote_name
from unshard.mysql.types import CHARACTERS, MEMBERS


@dataclass(frozen=True, slots=True)
class RowRepair:
    """The statement that repairs the row `key`, without a semicolon; it must change `rows` rows.

    `error_values` are the ENUM columns of the row that have the number 0, which is none of their members. `delete`, if
    not empty, is a DELETE of the row, to be run before the statements of all other rows of the order.
    """

    key: Key
    kind: RowClass
    statement: str
    rows: int = 1
    error_values: frozenset[str] = frozenset()
    delete: str = ""


def repair_statements(payload: bytes) -> bytes:
    """Spark task: the statements for a pickled RepairOrder, in the order to run them. Reads only. Safe to run again.

    The outcome has "statements", the kind of each "rows" that they repair, and the number of rows that were left out:
    "moved" ones are in another state now, "unsure" ones may be a source's.
    """
    order: RepairOrder = pickle.loads(payload)
    return enclose(lambda: asked_again(partial(_statements, order)))


def _statements(order: RepairOrder) -> dict[str, Any]:
    asked = keys_to_ask(order)
    made = fresh_repairs(order, asked)
    return {
        "statements": [
            f"{text};" for text in (*(one.delete for one in made if one.delete), *(one.statement for one in made))
        ],
        "rows": [one.kind.value for one in made],
        "moved": len(order.rows) - len(made) - len(asked.unsure),
        "unsure": len(asked.unsure),
    }


def fresh_repairs(order: RepairOrder, asked: AskedKeys) -> list[RowRepair]:
    """Return the repairs, read in a snapshot of each end; none for a row in another state than the order's.

    Raises SourceError, TargetError, and what mapping and reading raise.
    """
    with SideConnections() as connections:
        return repairs_of(order, read_sources(order, asked, connections), connections)


def repairs_of(order: RepairOrder, source: SourceRows, connections: SideConnections) -> list[RowRepair]:
    """Return the repairs that give the target these rows of the sources. Reads the target."""
    return list((_by_key if order.table.key else _by_row_hash)(order, source, connections))


def _by_key(order: RepairOrder, source: SourceRows, connections: SideConnections) -> Iterator[RowRepair]:
    table = order.table
    for one in rows_by_key(order, source, connections):
        zeros = _error_values(table, one.source)
        if order.exchanged and one.kind is RowClass.CHANGED and one.target is not None and len(one.source) == 1:
            own = one.target.written
            zeros |= {column.name for column, text in zip(table.own, own, strict=True) if _is_error_value(column, text)}
            statement = _insert(table, (*one.source[0].written, *own), more=table.own)
            equal = [*_equal(table, one.spelled), *map(_same_value, table.own, own)]
            delete = f"DELETE FROM {table.name.quoted} WHERE {' AND '.join(equal)}"
            yield RowRepair(one.key, one.kind, statement, 1, zeros, delete)
        elif statement := _statement(table, one):
            yield RowRepair(one.key, one.kind, statement, 1, zeros)


def _statement(table: ComparedTable, one: KeyedRows) -> str:
    """Return the statement for a row; empty where the row has another state now."""
    if one.target is None:
        return _insert(table, one.source[0].written) if one.kind is RowClass.MISSING and len(one.source) == 1 else ""
    equal = _equal(table, one.spelled)
    if one.kind is RowClass.EXTRA and not one.source:
        columns = zip((table.read.column(name) for name in table.key), one.spelled, strict=True)
        equal += [_same_value(column, text) for column, text in columns if column.text_with_collation]
        return f"DELETE FROM {table.name.quoted} WHERE {' AND '.join(equal)}"
    if one.kind is RowClass.CHANGED and len(one.source) == 1:
        (row,) = one.source
        names = [quote_name(column.name) for column in table.columns]
        places = [at for at in range(len(names)) if row.compared[at] != one.target.compared[at]]
        listed = ",".join(f"{names[at]}={row.written[at]}" for at in places)  # as `target.error_values` reads it
        return f"UPDATE {table.name.quoted} SET {listed} WHERE {' AND '.join(equal)}" if listed else ""
    return ""


def _equal(table: ComparedTable, key: Key) -> list[str]:
    return [f"{quote_name(column)} = {text}" for column, text in zip(table.key, key, strict=True)]


def _error_values(table: ComparedTable, source: Sequence[RepairRow]) -> frozenset[str]:
    columns = [table.read.column(column.name) for column in table.columns]
    pairs = (pair for row in source for pair in zip(columns, row.written, strict=True))
    return frozenset(column.name for column, text in pairs if _is_error_value(column, text))


def _is_error_value(column: Column, text: str) -> bool:
    return column.type == "enum" and text == "0"


def _insert(table: ComparedTable, written: Sequence[str], times: int = 1, more: Sequence[Column] = ()) -> str:
    names = [*(column.name for column in table.columns), *(column.name for column in more)]
    columns = ", ".join(map(quote_name, names))
    return f"INSERT INTO {table.name.quoted} ({columns}) VALUES " + ", ".join([f"({', '.join(written)})"] * times)


def _by_row_hash(order: RepairOrder, source: SourceRows, connections: SideConnections) -> Iterator[RowRepair]:
    table = order.table
    target: dict[int, tuple[str, ...]] = {}
    there: Counter[int] = Counter()
    for batch, found in target_rows_by_hash(connections, table, order.hashes):
        count_rows(batch, found, there, target)
    for key, kind in order.rows:
        digest = int(key[0])
        more, less = source.least[digest] - there[digest], there[digest] - source.most[digest]
        if kind is RowClass.MISSING and more > 0:
            row = source.literals[digest]
            yield RowRepair(key, kind, _insert(table, row, more), more, _error_values(table, (RepairRow(row, ()),)))
        elif kind is RowClass.EXTRA and less > 0:
            equal = map(_same_value, (table.read.column(c.name) for c in table.columns), target[digest])
            statement = f"DELETE FROM {table.name.quoted} WHERE {' AND '.join(equal)} LIMIT {less}"
            yield RowRepair(key, kind, statement, less)


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
