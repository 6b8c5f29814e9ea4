"""The state of the target's tables by which a comparison that goes on knows them again: when each was made and copied.

It changes where a table was dropped, truncated or restored, where one was altered (not on TiDB), and where the task has
copied a source anew. It does not change by rows that are written, deleted or updated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import MySQLdb

from unshard.compare.executor.rows import asked_again
from unshard.compare.places import SourceWatch
from unshard.compare.tables import ComparedTable
from unshard.load.checkpoint import LoadTables
from unshard.model.table import TableName
from unshard.mysql.connection import rows, server_error, session

_MADE = "SELECT TABLE_NAME, {state} FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
_TIME, _NUMBER = "UNIX_TIMESTAMP(CREATE_TIME)", "TIDB_TABLE_ID"
"""TiDB gives a table that is made or truncated a number of its own. On others an ALTER TABLE changes the time too."""


def target_states(tables: Sequence[ComparedTable], watches: Sequence[SourceWatch]) -> dict[str, str]:
    """Return a digest of the state of each table, by name. Raises TargetError."""
    return asked_again(lambda: _states(tables, watches)) if tables else {}


def _states(tables: Sequence[ComparedTable], watches: Sequence[SourceWatch]) -> dict[str, str]:
    endpoint = tables[0].endpoint
    try:
        with session(endpoint, "target") as connection:
            made = _made(connection, {table.name.schema for table in tables}, _NUMBER if tables[0].tidb else _TIME)
            copies = {watch.side.source: _copy(connection, watch) for watch in watches}
    except MySQLdb.Error as error:
        raise server_error(error, endpoint, "target", "reading when its tables were made") from error
    return {
        str(table.name): _digest([made.get(table.name), [copies.get(shard.source) for shard in table.shards]])
        for table in tables
    }


def _made(connection: Any, schemas: set[str], state: str) -> Mapping[TableName, str]:
    """Return what tells each table from another one of its name."""
    return {
        TableName(schema, str(table)): str(time)
        for schema in sorted(schemas)
        for table, time in rows(connection, _MADE.format(state=state), (schema,))
    }


def _copy(connection: Any, watch: SourceWatch) -> tuple[str, ...]:
    """Return what tells a source's copy from another one; nothing where no load is on record."""
    if watch.meta is None:
        return ()
    load = LoadTables(watch.meta.schema, watch.meta.task, watch.side.source)
    return load.attempt(connection) if load.exist(connection) else ()


def _digest(form: Any) -> str:
    return hashlib.sha256(json.dumps(form).encode()).hexdigest()[:32]
