"""The merged tables of a task in optimistic mode: rows of `<task>_shard_merged`, which all of its sources share.

One row a target table, the pure `MergedTable` in JSON. A writer locks the rows of `shard_source` first, as writers of
`shard_locks` do, so that they come one after the other; what they write commits with the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from unshard.model.table import TableName
from unshard.shard.merged_form import from_form, to_form
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import Form
from unshard.target.meta import MetaTables

Step = Callable[[MergedTable, frozenset[str]], MergedTable]
"""From a merged table, and the sources that have not said yet which tables they own, to the next one."""


def load_merged(connection: Any, meta: MetaTables) -> tuple[dict[TableName, MergedTable], frozenset[str]]:
    """All merged tables of the task, and the sources that have not said yet which tables they own."""
    with connection.cursor() as cursor:
        silent = _silent(cursor, meta, "")
        cursor.execute(f"SELECT target_schema, target_table, state FROM {meta.shard_merged}")
        found = cursor.fetchall()
    tables = (from_form(TableName(schema, table), json.loads(state)) for schema, table, state in found)
    return {merged.target: merged for merged in tables}, silent


def move_merged(cursor: Any, meta: MetaTables, target: TableName, step: Step) -> MergedTable:
    """Make one step of a merged table, in the caller's transaction."""
    silent = _silent(cursor, meta, " FOR UPDATE")
    cursor.execute(
        f"SELECT state FROM {meta.shard_merged} WHERE target_schema = %s AND target_table = %s FOR UPDATE",
        (target.schema, target.table),
    )
    found = cursor.fetchone()
    before = from_form(target, json.loads(found[0])) if found is not None else MergedTable(target)
    after = step(before, silent)
    if after != before:
        _save(cursor, meta, after)
    return after


def take_out_of_merged(cursor: Any, meta: MetaTables, source: str, begun: tuple[TableName, Form] | None) -> None:
    """The source is no part of the task any more. `begun`: the target of a change that it has open, and its intent."""
    _silent(cursor, meta, " FOR UPDATE")
    cursor.execute(f"SELECT target_schema, target_table, state FROM {meta.shard_merged} FOR UPDATE")
    for schema, table, state in cursor.fetchall():
        target = TableName(schema, table)
        before = from_form(target, json.loads(state))
        after = before.take_out(source, begun[1] if begun is not None and begun[0] == target else None)
        if after != before:
            _save(cursor, meta, after)


def _silent(cursor: Any, meta: MetaTables, lock: str) -> frozenset[str]:
    cursor.execute(f"SELECT source, declared FROM {meta.shard_source} ORDER BY source{lock}")
    return frozenset(source for source, declared in cursor.fetchall() if not declared)


def _save(cursor: Any, meta: MetaTables, merged: MergedTable) -> None:
    """A table without shards loses its row, unless a change of it is open."""
    key = (merged.target.schema, merged.target.table)
    if not merged.shards and merged.runner is None:
        cursor.execute(f"DELETE FROM {meta.shard_merged} WHERE target_schema = %s AND target_table = %s", key)
        return
    cursor.execute(
        f"REPLACE INTO {meta.shard_merged} (target_schema, target_table, state) VALUES (%s, %s, %s)",
        (*key, json.dumps(to_form(merged))),
    )
