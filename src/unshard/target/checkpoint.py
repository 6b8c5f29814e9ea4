"""The checkpoint: how far a source is applied, and its tables' structures there. DM's table and columns.

`table_info` of the global row, null in DM, tells who wrote the row: rows of DM itself, and ours of `at-least-once`
delivery, may stand behind what the target holds; those of `exactly-once` never do.

While a sharding DDL is unresolved the columns of the global row are held where it began, as in DM: the log is needed
from there. `table_info` has the place up to which all is read, and applied but for what waits for that DDL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from unshard.errors import DdlError, SyncError, Where
from unshard.model.position import Location, Position
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import Table, TableName
from unshard.mysql.connection import rows
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
"""DM names a file of its relay log `mysql-bin|000001.000003`: the part behind the bar is its folder."""


@dataclass(frozen=True, slots=True)
class TableCheckpoint:
    """A table's structure and, where it was copied later than the checkpoint, its own location.

    `table` is None for a table that was dropped: its row goes. As read it is None for DM's rows, whose structure has
    a form of their own. Events at or before `location` are in the target already.
    """

    table: Table | None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class ExitPoint:
    """DM's `safemode_exit_point`: up to `location` changes may be in the target already. `cause` tells why."""

    location: Location
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The global location of one source and every table known there.

    `exact`: nothing behind `location` is in the target, but for what `exit_point` says. `by_dm`: DM wrote it.
    `held`: where the first unresolved sharding DDL began, if there is one.
    """

    location: Location
    tables: Mapping[TableName, TableCheckpoint] = field(default_factory=dict)
    exit_point: ExitPoint | None = None
    exact: bool = True
    by_dm: bool = False
    held: Location | None = None


def load_checkpoint(connection: Any, meta: MetaTables, source: str, *, tables_too: bool = True) -> Checkpoint | None:
    """The last checkpoint of the source, or None where it has none; its tables only where they are asked for."""
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
            tables[TableName(schema, table)] = TableCheckpoint(ours, at)
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
    kept: Iterator[tuple[Any, ...]] = (  # made as they are sent: nothing silent for long is in a transaction
        (source, name.schema, name.table, False, *_place(state.location), *_place(None), _form(state.table))
        for name, state in changed.items()
        if state.table is not None
    )
    if len(gone) < len(changed):
        cursor.executemany(statement, kept)
    for key in gone:
        cursor.execute(f"DELETE FROM {meta.checkpoint} WHERE id = %s AND cp_schema = %s AND cp_table = %s", key)


def _form(table: Table) -> str:
    return json.dumps(stamped(table.to_dict()))


def _location(name: str | None, offset: int | None, gtid: str | None) -> Location | None:
    if not name:
        return None
    return Location(Position(_RELAY_SUFFIX.sub("", name), int(offset or 0)), "".join((gtid or "").split()))


def _place(location: Location | None) -> tuple[str, int, str]:
    if location is None:
        return "", 0, ""
    return location.position.file, location.position.offset, location.gtid


# Which server a source's binlog names are of: those in its checkpoint, its open batch and its prepared transactions.
#
# Written at a task's first contact with its source, and changed in the transaction that translates those names when
# the source has failed over to another server.


def load_upstream(connection: Any, meta: MetaTables, source: str) -> str | None:
    """The server on record (`mysql.flavour.identify`), or None."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT uuid FROM {meta.upstream} WHERE source = %s", (source,))
        found = cursor.fetchone()
    return str(found[0]) if found else None


def save_upstream(cursor: Any, meta: MetaTables, source: str, uuid: str) -> None:
    """Put a server on record, in the caller's transaction. May run twice."""
    cursor.execute(f"REPLACE INTO {meta.upstream} (source, uuid) VALUES (%s, %s)", (source, uuid))


# The tracked structure of one table in the checkpoint: read, and set by a human.


def structure_of(connection: Any, meta: MetaTables, source: str, name: TableName) -> Table | None:
    """As of the source's checkpoint; None where it is not tracked (yet)."""
    found = load_checkpoint(connection, meta, source)
    state = found.tables.get(name) if found is not None else None
    return state.table if state is not None else None


def set_structure(connection: Any, meta: MetaTables, source: str, name: TableName, table: Table | None) -> None:
    """Put another structure in the checkpoint, or none; in one transaction that takes the source over.

    A task that runs all the same, with the structure from before, can write nothing behind it and stops (SYNC-001).
    Raises DdlError DDL-032 where a batch is open that is applied in part, by the structure from before.
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
    """A batch of rows of which nothing is applied is no hindrance: the next start gives it up (`receipts.claim`)."""
    cursor.execute(
        f"SELECT 1 FROM {meta.batch} AS batch JOIN {meta.partition} AS part"
        " ON part.source = batch.source AND part.batch_id = batch.batch_id AND (part.chunk > 0 OR part.step > 0)"
        " WHERE batch.source = %s AND batch.state = 'open' LIMIT 1",
        (source,),
    )
    if cursor.fetchone() is not None:
        cursor.execute("ROLLBACK")
        raise DdlError("DDL-032", Where(source))


# What DM may have left unfinished in its tables, in the way of a task that is taken over from it.


_UNFINISHED = (("syncer_sharding_meta", "source_id", "a DDL of merged tables has not reached all of them"),)


def refuse_unfinished(connection: Any, meta: MetaTables, source: str) -> None:
    """Raises SyncError SYNC-046 where DM's `_syncer_sharding_meta` has rows of the source."""
    for suffix, column, what in _UNFINISHED:
        if _exists(connection, meta, suffix):
            name = meta.named(suffix)
            ((count,),) = rows(connection, f"SELECT COUNT(*) FROM {name} WHERE {column} = %s", (source,))
            if count:
                raise SyncError("SYNC-046", Where(source=source), f"{what} ({count} rows in {name})", {"table": name})


def refuse_unfinished_load(connection: Any, meta: MetaTables, source: str) -> None:
    """Raises SyncError SYNC-046 where DM was loading: its status says so, and a table of our own load isn't there."""
    if not _exists(connection, meta, "lightning_checkpoint_list") or _exists(connection, meta, "load_chunk"):
        return
    name = meta.named("lightning_checkpoint_list")
    found = rows(
        connection, f"SELECT status FROM {name} WHERE task_name = %s AND source_name = %s", (meta.task, source)
    )
    if found and found[0][0] == "running":
        raise SyncError("SYNC-046", Where(source=source), f"its full load is not finished ({name})", {"table": name})


def _exists(connection: Any, meta: MetaTables, suffix: str) -> bool:
    found = rows(
        connection,
        "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
        (meta.schema, f"{meta.task}_{suffix}"),
    )
    return bool(found)
