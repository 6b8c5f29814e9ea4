"""The unresolved sharding groups of a source, in DM's table `<task>_syncer_sharding_meta`.

The data are of our own form: one row for each source table and one, `is_global`, for the group; none for a group
without tables. They change in the transaction that moves the checkpoint, so they always describe the state at that
location.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from unshard.errors import Where
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import TableName, name_form, name_of
from unshard.shard.gone import Gone
from unshard.shard.group import ShardingGroup, TableState
from unshard.shard.group_keeper import ShardingGroupKeeper
from unshard.target.meta import MetaTables

_COLUMNS = "source_id, target_table_id, source_table_id, active_index, is_global, data"


def load_groups(connection: Any, meta: MetaTables, source: str) -> ShardingGroupKeeper:
    """Return the groups of a source that have tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT target_table_id, active_index, is_global, data FROM {meta.sharding_meta} WHERE source_id = %s",
            (source,),
        )
        found = cursor.fetchall()
    tables: dict[TableName, dict[TableName, TableState]] = {}
    heads: dict[TableName, tuple[int, bool, tuple[Gone, ...]]] = {}
    for _, index, is_global, data in found:
        form = json.loads(data)
        version_of(form, "the record of a sharding group", Where(source))
        target = name_of(form["target"])
        if is_global:
            heads[target] = int(index), form["reported"], tuple(map(Gone.from_dict, form.get("gone", ())))
        else:
            tables.setdefault(target, {})[name_of(form["table"])] = TableState.from_dict(form["state"])
    groups = {target: ShardingGroup(source, target, tables.get(target, {}), *head) for target, head in heads.items()}
    return ShardingGroupKeeper(source, groups)


def held_tables(connection: Any, meta: MetaTables, target: TableName) -> tuple[tuple[str, TableName], ...]:
    """Return the tables of all sources whose changes wait for a DDL of the target, as (source, table)."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT source_id, data FROM {meta.sharding_meta} WHERE target_table_id = %s AND NOT is_global"
            " ORDER BY source_id, source_table_id",
            (_id(target),),
        )
        rows = [(source, json.loads(data)) for source, data in cursor.fetchall()]
    held = ((source, form) for source, form in rows if not TableState.from_dict(form["state"]).idle)
    return tuple((source, name_of(form["table"])) for source, form in held)


def save_group(cursor: Any, meta: MetaTables, before: ShardingGroup | None, after: ShardingGroup) -> None:
    """Write what has changed since `before`, the group last loaded or saved; runs in the caller's transaction."""
    key = (after.source, _id(after.target))
    if not after.unresolved:
        cursor.execute(f"DELETE FROM {meta.sharding_meta} WHERE source_id = %s AND target_table_id = %s", key)
        return
    known = before.tables if before is not None and before.unresolved else {}
    target = name_form(after.target)
    head = {"target": target, "reported": after.reported, "gone": [one.to_dict() for one in after.gone]}

    def rows() -> Iterator[tuple[Any, ...]]:
        """Yield rows as they are sent: a transaction must not be silent for long."""
        yield (*key, "", after.resolved, True, json.dumps(stamped(head)))
        for table, state in after.tables.items():
            if known.get(table) != state:
                form = {"target": target, "table": name_form(table), "state": state.to_dict()}
                yield (*key, _id(table), after.resolved, False, json.dumps(stamped(form)))

    cursor.executemany(
        f"INSERT INTO {meta.sharding_meta} ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s)"
        " ON DUPLICATE KEY UPDATE active_index = VALUES(active_index), data = VALUES(data)",
        rows(),
    )
    for table in known.keys() - after.tables.keys():
        cursor.execute(
            f"DELETE FROM {meta.sharding_meta} WHERE source_id = %s AND target_table_id = %s AND source_table_id = %s",
            (*key, _id(table)),
        )


def _id(name: TableName) -> str:
    """Return DM's name of a table in these rows."""
    return name.quoted
