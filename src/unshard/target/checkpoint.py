"""The checkpoint: how far a source is applied, and its tables' structures there.

The checkpoint has DM's table and columns. `table_info` of the global row, which is null in DM's rows, shows who wrote
the row. The location in a row of DM, or in ours of `at-least-once` delivery, may be earlier than what the target holds;
with `exactly-once` delivery it never is.

While a sharding DDL is unresolved the columns of the global row stay at the location where it began, as in DM: the log
is needed from there. `table_info` then has the location up to which everything is read, and applied except for the
changes that wait for that DDL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from unshard.errors import DdlError, Where
from unshard.model.position import Location, Position
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import Table, TableName
from unshard.target.meta import MetaTables

_COLUMNS = (
    "binlog_name, binlog_pos, binlog_gtid, exit_safe_binlog_name, exit_safe_binlog_pos, exit_safe_binlog_gtid,"
    " table_info"
)
_UPSERT = (
    f"INSERT INTO {{name}} (id, cp_schema, cp_table, is_global, {_COLUMNS})"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE "
    + ", ".join(f"{column} = VALUES({column})" for column in _COLUMNS.split(", "))
)
_RELAY_SUFFIX = re.compile(r"\|\d+(?=\.\d+$)")
"""DM names a file of its relay log `mysql-bin|000001.000003`: the part after the bar is its folder."""


@dataclass(frozen=True, slots=True)
class TableCheckpoint:
    """The checkpoint of one table: its structure and, where it was copied later than the checkpoint, its own location.

    `table` is None for a dropped table, whose row is deleted. When read, it is None for rows that DM has written, which
    have the structure in DM's own form. Events at or before `location` are in the target already. `rules` are the rules
    by which its rows in the target were written, as text (`worker.source_facts.rules_of`); "" where none are on record.
    """

    table: Table | None
    location: Location | None = None
    rules: str = ""


@dataclass(frozen=True, slots=True)
class ExitPoint:
    """DM's `safemode_exit_point`: changes up to `location` may already be in the target. `cause` is the reason."""

    location: Location
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The global location of one source, and the tables that are known there.

    Args:
        tables: the source's tables; a table that was copied later has a location of its own.
        exact: the target has no change after `location`, except as `exit_point` says.
        by_dm: DM wrote the checkpoint.
        held: the location where the first unresolved sharding DDL began, if there is one.
    """

    location: Location
    tables: Mapping[TableName, TableCheckpoint] = field(default_factory=dict)
    exit_point: ExitPoint | None = None
    exact: bool = True
    by_dm: bool = False
    held: Location | None = None


def load_checkpoint(connection: Any, meta: MetaTables, source: str, *, tables_too: bool = True) -> Checkpoint | None:
    """Return the last checkpoint of the source, or None; its tables are read only with `tables_too`."""
    asked = f"SELECT cp_schema, cp_table, is_global, {_COLUMNS} FROM {meta.checkpoint} WHERE id = %s"
    with connection.cursor() as cursor:
        cursor.execute(asked if tables_too else f"{asked} AND is_global", (source,))
        found = cursor.fetchall()
    checkpoint: Checkpoint | None = None
    tables: dict[TableName, TableCheckpoint] = {}
    for schema, table, is_global, *place, info in found:
        at, exit_at = _location(*place[:3]), _location(*place[3:])
        form = json.loads(info) or {}
        version_of(form, "the checkpoint", Where(source))
        if not is_global:
            ours = Table.from_dict(form) if "columns" in form else None
            tables[TableName(schema, table)] = TableCheckpoint(ours, at, form.get("rules", ""))
        elif at is not None:
            exit_point = ExitPoint(exit_at, form.get("cause", "")) if exit_at is not None else None
            exact = form.get("delivery") == "exactly-once"
            reached = _location(*form["at"]) if "at" in form else None
            held = at if reached is not None else None
            checkpoint = Checkpoint(reached or at, tables, exit_point, exact, "delivery" not in form, held)
    return checkpoint


def save_checkpoint(
    cursor: Any,
    meta: MetaTables,
    source: str,
    location: Location,
    changed: Mapping[TableName, TableCheckpoint],
    exit_point: ExitPoint | None = None,
    *,
    exact: bool = True,
    held: Location | None = None,
) -> None:
    """Move the checkpoint; `changed` are the tables whose row differs. Runs in the caller's transaction."""
    statement = _UPSERT.format(name=meta.checkpoint)
    mark: dict[str, Any] = {
        "delivery": "exactly-once" if exact else "at-least-once",
        "cause": exit_point.cause if exit_point else "",
    }
    if held is not None:
        mark["at"] = _place(location)
    exit_at = exit_point.location if exit_point is not None else None
    cursor.execute(
        statement, (source, "", "", True, *_place(held or location), *_place(exit_at), json.dumps(stamped(mark)))
    )
    gone = [(source, name.schema, name.table) for name, state in changed.items() if state.table is None]
    kept: Iterator[tuple[Any, ...]] = (  # made as they are sent: a transaction must not be silent for long
        (
            source,
            name.schema,
            name.table,
            False,
            *_place(state.location),
            *_place(None),
            _form(state.table, state.rules),
        )
        for name, state in changed.items()
        if state.table is not None
    )
    if len(gone) < len(changed):
        cursor.executemany(statement, kept)
    for key in gone:
        cursor.execute(f"DELETE FROM {meta.checkpoint} WHERE id = %s AND cp_schema = %s AND cp_table = %s", key)


def _form(table: Table, rules: str) -> str:
    return json.dumps(stamped({**table.to_dict(), "rules": rules} if rules else table.to_dict()))


def _location(name: str | None, offset: int | None, gtid: str | None) -> Location | None:
    if not name:
        return None
    return Location(Position(_RELAY_SUFFIX.sub("", name), int(offset or 0)), "".join((gtid or "").split()))


def _place(location: Location | None) -> tuple[str, int, str]:
    if location is None:
        return "", 0, ""
    return location.position.file, location.position.offset, location.gtid


def structure_of(connection: Any, meta: MetaTables, source: str, name: TableName) -> Table | None:
    """Return a table's structure at the source's checkpoint; None where it is not tracked (yet)."""
    found = load_checkpoint(connection, meta, source)
    state = found.tables.get(name) if found is not None else None
    return state.table if state is not None else None


def set_structure(connection: Any, meta: MetaTables, source: str, name: TableName, table: Table | None) -> None:
    """Replace a table's structure in the checkpoint, or delete it with None; in one transaction that claims the source.

    A task that is still running, with the old structure, can write nothing afterwards and stops (SYNC-001). The record
    has no rules then: the next start takes the table's rows to be as its rules say.
    Raises DdlError DDL-032 where a batch is open that is applied in part, by the old structure.
    """
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"UPDATE {meta.batch} SET epoch = epoch + 1 WHERE source = %s", (source,))
        cursor.execute(f"UPDATE {meta.partition} SET epoch = epoch + 1 WHERE source = %s", (source,))
        _refuse_begun(cursor, meta, source)
        key = (source, name.schema, name.table)
        where = "id = %s AND cp_schema = %s AND cp_table = %s AND NOT is_global"
        if table is None:
            cursor.execute(f"DELETE FROM {meta.checkpoint} WHERE {where}", key)
        else:
            info = json.dumps(stamped(table.to_dict()))
            cursor.execute(
                f"INSERT INTO {meta.checkpoint} (id, cp_schema, cp_table, binlog_name, binlog_pos, binlog_gtid,"
                " table_info, is_global) VALUES (%s, %s, %s, '', 0, '', %s, FALSE)"
                " ON DUPLICATE KEY UPDATE table_info = VALUES(table_info)",
                (*key, info),
            )
        cursor.execute("COMMIT")


def _refuse_begun(cursor: Any, meta: MetaTables, source: str) -> None:
    """Raise DDL-032 for a batch that is applied in part. The next start drops an unapplied one (`claim`)."""
    cursor.execute(
        f"SELECT 1 FROM {meta.batch} AS batch JOIN {meta.partition} AS part"
        " ON part.source = batch.source AND part.batch_id = batch.batch_id AND (part.chunk > 0 OR part.step > 0)"
        " WHERE batch.source = %s AND batch.state = 'open' LIMIT 1",
        (source,),
    )
    if cursor.fetchone() is not None:
        cursor.execute("ROLLBACK")
        raise DdlError("DDL-032", Where(source))
