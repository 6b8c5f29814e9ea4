"""The record of statements that ran on ghost tables of online DDL and wait for their RENAME, in DM's table.

Beside DM's keys a row holds `kept`, the statements with their sessions. DM's own rows lack it; their statements are
read as run in a default session with the ghost's schema.
"""

from __future__ import annotations

import json
from typing import Any

from unshard.ddl.context import Context
from unshard.ddl.online import Kept, Records
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import TableName
from unshard.target.meta import MetaTables


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
