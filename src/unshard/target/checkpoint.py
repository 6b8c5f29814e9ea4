"""The checkpoint: how far a source is applied, and its tables' structures there. DM's table and columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.target.meta import MetaTables

_UPSERT = """
INSERT INTO {name} (id, cp_schema, cp_table, binlog_name, binlog_pos, binlog_gtid, table_info, is_global)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON DUPLICATE KEY UPDATE binlog_name = VALUES(binlog_name), binlog_pos = VALUES(binlog_pos),
    binlog_gtid = VALUES(binlog_gtid), table_info = VALUES(table_info)
"""


@dataclass(frozen=True, slots=True)
class TableCheckpoint:
    """A table's structure and, where it was copied later than the checkpoint, its own location.

    `table` is None for a table that was dropped: its row goes. Events at or before `location` are in the
    target already.
    """

    table: Table | None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The global location of one source and every table known there."""

    location: Location
    tables: Mapping[TableName, TableCheckpoint] = field(default_factory=dict)


def load_checkpoint(connection: Any, meta: MetaTables, source: str) -> Checkpoint | None:
    """The last checkpoint of the source, or None where it has none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT cp_schema, cp_table, binlog_name, binlog_pos, binlog_gtid, table_info, is_global"
            f" FROM {meta.checkpoint} WHERE id = %s",
            (source,),
        )
        found = cursor.fetchall()
    location: Location | None = None
    tables: dict[TableName, TableCheckpoint] = {}
    for schema, table, name, offset, gtid, info, is_global in found:
        at = Location(Position(name, int(offset)), gtid or "") if name else None
        if is_global:
            location = at
        else:
            tables[TableName(schema, table)] = TableCheckpoint(Table.from_dict(json.loads(info)), at)
    return Checkpoint(location, tables) if location is not None else None


def save_checkpoint(
    cursor: Any, meta: MetaTables, source: str, location: Location, changed: Mapping[TableName, TableCheckpoint]
) -> None:
    """Move the checkpoint; `changed` are the tables whose row differs. Runs in the caller's transaction."""
    statement = _UPSERT.format(name=meta.checkpoint)
    cursor.execute(statement, _row(source, "", "", location, "null", is_global=True))
    gone = [(source, name.schema, name.table) for name, state in changed.items() if state.table is None]
    kept: Iterable[tuple[Any, ...]] = [
        _row(source, name.schema, name.table, state.location, json.dumps(state.table.to_dict()), is_global=False)
        for name, state in changed.items()
        if state.table is not None
    ]
    for row in kept:
        cursor.execute(statement, row)
    for key in gone:
        cursor.execute(f"DELETE FROM {meta.checkpoint} WHERE id = %s AND cp_schema = %s AND cp_table = %s", key)


def _row(
    source: str, schema: str, table: str, location: Location | None, info: str, *, is_global: bool
) -> tuple[Any, ...]:
    name, offset, gtid = ("", 0, "")
    if location is not None:
        name, offset, gtid = location.position.file, location.position.offset, location.gtid
    return (source, schema, table, name, offset, gtid, info, is_global)
