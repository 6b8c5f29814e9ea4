"""The progress of continuous validation through the rows of the full load.

`<task>_validator_full_load` has a row for each target table. When a range of these rows has been compared, its end and
the keys that differ in it are committed in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import MySQLdb

from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.target.meta import MetaTables
from unshard.target.validation import ABSENT

_TABLE = "validator_full_load"


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A target table, the source's tables that were loaded into it, and how far its rows are compared.

    Rows up to `bound` in the order of `range_key` are compared; None: no rows yet. `rows_about` is an estimate.
    """

    target: TableName
    origins: tuple[TableName, ...]
    range_key: tuple[str, ...] = ()
    bound: tuple[str, ...] | None = None
    done: bool = False
    rows_done: int = 0
    rows_about: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True)
class FullLoadProgress:
    """The number of loaded tables and rows, and how many of them are compared. `rows_about` is an estimate."""

    tables_done: int = 0
    tables: int = 0
    rows_done: int = 0
    rows_about: int = 0


def list_loaded(cursor: Any, meta: MetaTables, source: str, tables: Iterable[LoadedTable]) -> None:
    """Record the tables whose rows are to be compared, in place of earlier ones. In the caller's transaction."""
    cursor.execute(f"DELETE FROM {meta.named(_TABLE)} WHERE source = %s", (source,))
    for one in tables:
        origins = json.dumps([[name.schema, name.table] for name in one.origins])
        cursor.execute(
            f"INSERT INTO {meta.named(_TABLE)}"
            " (source, dst_schema_name, dst_table_name, origins, range_key, rows_about)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            (source, one.target.schema, one.target.table, origins, "[]", one.rows_about),
        )
    cursor.execute(f"UPDATE {meta.named('validator_checkpoint')} SET full_load_listed = 1 WHERE source = %s", (source,))


def unfinished(connection: Any, meta: MetaTables, source: str) -> list[LoadedTable]:
    """Return the tables with rows that are not compared yet, in the order in which they were recorded."""
    found = rows(
        connection,
        "SELECT id, dst_schema_name, dst_table_name, origins, range_key, bound, rows_done, rows_about FROM"
        f" {meta.named(_TABLE)} WHERE source = %s AND done = 0 ORDER BY id",
        (source,),
    )
    tables = []
    for number, schema, table, origins, key, bound, done, about in found:
        names = tuple(TableName(*name) for name in json.loads(origins))
        place = tuple(json.loads(bound)) if bound else None
        target = TableName(schema, table)
        tables.append(
            LoadedTable(target, names, tuple(json.loads(key)), place, False, int(done), int(about), int(number))
        )
    return tables


def move_bound(cursor: Any, meta: MetaTables, one: LoadedTable) -> None:
    """Record how far a table's rows are compared. In the caller's transaction."""
    cursor.execute(
        f"UPDATE {meta.named(_TABLE)} SET range_key = %s, bound = %s, done = %s, rows_done = %s WHERE id = %s",
        (
            json.dumps(one.range_key),
            json.dumps(one.bound) if one.bound is not None else None,
            int(one.done),
            one.rows_done,
            one.number,
        ),
    )


def full_load_progress(connection: Any, meta: MetaTables, source: str) -> FullLoadProgress:
    """Return how much is compared; nothing where the records are not there."""
    try:
        ((done, tables, compared, about),) = rows(
            connection,
            "SELECT COALESCE(SUM(done), 0), COUNT(*), COALESCE(SUM(rows_done), 0),"
            " COALESCE(SUM(IF(done = 1, rows_done, GREATEST(rows_about, rows_done))), 0)"
            f" FROM {meta.named(_TABLE)} WHERE source = %s",
            (source,),
        )
    except MySQLdb.Error as error:
        if error.args[0] in ABSENT:
            return FullLoadProgress()
        raise
    return FullLoadProgress(int(done), int(tables), int(compared), int(about))
