"""The tracked structure of one table in the checkpoint: read, and set by a human."""

from __future__ import annotations

import json
from typing import Any

from unshard.errors import DdlError, Where
from unshard.model.stored_form import stamped
from unshard.model.table import Table, TableName
from unshard.target.checkpoint import load_checkpoint
from unshard.target.meta import MetaTables


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
