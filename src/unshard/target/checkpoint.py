"""The checkpoint: how far a source is applied, its tables' structures there, and the open work in its log.

The checkpoint has DM's table and columns. `table_info` of the global row, which is null in DM's rows, shows who wrote
the row. The location in a row of DM, or in ours of `at-least-once` delivery, may be earlier than what the target holds;
with `exactly-once` delivery it never is.

While a sharding DDL is unresolved the columns of the global row stay at the location where it began, as in DM: the log
is needed from there. `table_info` then has the location up to which everything is read, and applied except for the
changes that wait for that DDL.

Statements that ran on ghost tables of online DDL and wait for their RENAME are in DM's table. Beside DM's keys a row
holds `kept`, the statements with their sessions. DM's own rows lack it; their statements are read as run in a default
session with the ghost's schema.

XA transactions that are prepared in the source and neither committed nor rolled back there yet have a row each. It is
written with the checkpoint that passes the prepare, and deleted with the one that passes the commit or rollback. So the
rows are exactly the transactions that are prepared at the checkpoint.

The server to which a source's binlog names belong (those in its checkpoint, its open batch and its prepared
transactions) is recorded at a task's first contact with its source. It changes in the transaction that translates those
names when the source has failed over to another server.

Unfinished work of DM in its tables, which a task that takes over from DM can't continue, is refused
(`refuse_unfinished`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from unshard.ddl.context import Context
from unshard.ddl.online import Kept, Records
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
"""DM names a file of its relay log `mysql-bin|000001.000003`: the part after the bar is its folder."""


@dataclass(frozen=True, slots=True)
class TableCheckpoint:
    """A table's structure and, where the table was copied later than the checkpoint, its own location.

    `table` is None for a table that was dropped: its row is deleted. When read it is None for DM's rows, which have the
    structure in DM's own form. Events at or before `location` are in the target already.
    """

    table: Table | None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class ExitPoint:
    """DM's `safemode_exit_point`: changes up to `location` may already be in the target. `cause` is the reason."""

    location: Location
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The global location of one source and every table known there.

    Args:
        tables: the source's tables; one that was copied later has a location of its own.
        exact: the target holds no change after `location`, except as `exit_point` says.
        by_dm: DM wrote it.
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
    kept: Iterator[tuple[Any, ...]] = (  # made as they are sent: a transaction must not be silent for long
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


def load_upstream(connection: Any, meta: MetaTables, source: str) -> str | None:
    """Return the recorded server (`mysql.flavour.identify`), or None."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT uuid FROM {meta.upstream} WHERE source = %s", (source,))
        found = cursor.fetchone()
    return str(found[0]) if found else None


def save_upstream(cursor: Any, meta: MetaTables, source: str, uuid: str) -> None:
    """Record a server, in the caller's transaction. May run twice."""
    cursor.execute(f"REPLACE INTO {meta.upstream} (source, uuid) VALUES (%s, %s)", (source, uuid))


def structure_of(connection: Any, meta: MetaTables, source: str, name: TableName) -> Table | None:
    """Return a table's structure at the source's checkpoint; None where it is not tracked (yet)."""
    found = load_checkpoint(connection, meta, source)
    state = found.tables.get(name) if found is not None else None
    return state.table if state is not None else None


def set_structure(connection: Any, meta: MetaTables, source: str, name: TableName, table: Table | None) -> None:
    """Replace a table's structure in the checkpoint, or delete it with None; in one transaction that claims the source.

    A task that is still running, with the old structure, can write nothing afterwards and stops (SYNC-001).
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


_UNFINISHED = (("syncer_sharding_meta", "source_id", "a DDL of merged tables has not reached all of them"),)


def refuse_unfinished(connection: Any, meta: MetaTables, source: str) -> None:
    """Raise SyncError SYNC-046 where DM's `_syncer_sharding_meta` has rows of the source."""
    for suffix, column, what in _UNFINISHED:
        if _exists(connection, meta, suffix):
            name = meta.named(suffix)
            ((count,),) = rows(connection, f"SELECT COUNT(*) FROM {name} WHERE {column} = %s", (source,))
            if count:
                raise SyncError("SYNC-046", Where(source=source), f"{what} ({count} rows in {name})", {"table": name})


def refuse_unfinished_load(connection: Any, meta: MetaTables, source: str) -> None:
    """Raise SyncError SYNC-046 where DM was loading: its status says so, and the task has no load table of ours."""
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


def load_records(connection: Any, meta: MetaTables, source: str) -> dict[TableName, tuple[Kept, ...]]:
    """Return the recorded statements of a source, by ghost table."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT ghost_schema, ghost_table, ddls FROM {meta.online_ddl} WHERE id = %s", (source,))
        return {TableName(schema, table): _kept(schema, json.loads(form)) for schema, table, form in cursor.fetchall()}


def save_records(cursor: Any, meta: MetaTables, source: str, changes: Records) -> None:
    """Write changed records; runs in the transaction that moves the checkpoint, and may run twice."""
    for ghost, kept in changes.items():
        key = (source, ghost.schema, ghost.table)
        if not kept:
            cursor.execute(
                f"DELETE FROM {meta.online_ddl} WHERE id = %s AND ghost_schema = %s AND ghost_table = %s", key
            )
            continue
        form = {
            "schema": ghost.schema,
            "table": ghost.table,
            "ddls": [one.sql for one in kept],
            "kept": [one.to_dict() for one in kept],
        }
        cursor.execute(
            f"REPLACE INTO {meta.online_ddl} (id, ghost_schema, ghost_table, ddls) VALUES (%s, %s, %s, %s)",
            (*key, json.dumps(stamped(form))),
        )


def _kept(schema: str, form: Any) -> tuple[Kept, ...]:
    version_of(form, "what was run on a ghost table of online DDL")
    if "kept" in form:
        return tuple(Kept.from_dict(one) for one in form["kept"])
    return tuple(Kept(sql, Context(schema)) for sql in form["ddls"])


@dataclass(frozen=True, slots=True)
class PreparedXa:
    """The place of a prepared transaction's rows: from `begin` to byte `end` of its file.

    `begin` has the GTID set before the transaction.
    """

    xid: str
    begin: Location
    end: int


def load_prepared(connection: Any, meta: MetaTables, source: str) -> dict[str, PreparedXa]:
    """Return the prepared transactions of a source, by xid."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT xid, binlog_name, begin_pos, end_pos, binlog_gtid FROM {meta.prepared_xa} WHERE source = %s",
            (source,),
        )
        found = cursor.fetchall()
    return {
        xid: PreparedXa(xid, Location(Position(name, int(begin)), gtid), int(end))
        for xid, name, begin, end, gtid in found
    }


def keep(cursor: Any, meta: MetaTables, source: str, prepared: PreparedXa) -> None:
    """Record a prepared transaction; runs in the transaction that moves the checkpoint, and may run twice."""
    at = prepared.begin
    cursor.execute(
        f"REPLACE INTO {meta.prepared_xa} (source, xid, binlog_name, begin_pos, end_pos, binlog_gtid)"
        " VALUES (%s, %s, %s, %s, %s, %s)",
        (source, prepared.xid, at.position.file, at.position.offset, prepared.end, at.gtid),
    )


def drop(cursor: Any, meta: MetaTables, source: str, xid: str) -> None:
    """Delete its record; runs in the transaction that moves the checkpoint, and may run twice."""
    cursor.execute(f"DELETE FROM {meta.prepared_xa} WHERE source = %s AND xid = %s", (source, xid))
