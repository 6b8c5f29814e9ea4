"""Unfinished work of DM in its tables, which a task that takes over from DM can't continue."""

from __future__ import annotations

from typing import Any

from unshard.errors import SyncError, Where
from unshard.mysql.connection import rows
from unshard.target.meta import MetaTables

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
