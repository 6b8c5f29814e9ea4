"""The structure that a shard's statement leads to where earlier ones were left out of the target. Pure.

The structure that is in force for a shard is that of its changes as far as they go to the target. By a statement that
an event filter leaves out, the table upstream gets another one. A later statement changes the columns and keys in force
that it changes upstream, and no others. One that changes anything else of the table brings all of that.
"""

from __future__ import annotations

from dataclasses import replace

from unshard.schema.definition import KeyDefinition, TableDefinition
from unshard.shard.join import without_columns_and_keys


def carried(own: TableDefinition, before: TableDefinition, after: TableDefinition) -> TableDefinition:
    """Return the structure in force behind a statement that leads the table upstream from `before` to `after`.

    `own` is the structure in force before it. A column that only the table upstream has is not made by a change of it.
    """
    if own == before:
        return after
    columns = []
    for column in after.columns:
        was, there = before.column(column.name), own.column(column.name)
        if was is None or (was != column and there is not None):
            columns.append(column)
        elif there is not None:
            columns.append(there)
    columns += [one for one in own.columns if not _has_column(before, after, one.name)]
    keys = [key for key in after.keys if _key(before, key.name) != _key(after, key.name)]
    keys += [key for key in own.keys if _key(before, key.name) == _key(after, key.name)]
    base = own if without_columns_and_keys(before) == without_columns_and_keys(after) else after
    return replace(base, columns=tuple(columns), keys=tuple(keys))


def _has_column(before: TableDefinition, after: TableDefinition, name: str) -> bool:
    return before.column(name) is not None or after.column(name) is not None


def _key(table: TableDefinition, name: str) -> KeyDefinition | None:
    key = table.key(name)
    return replace(key, generated=False) if key is not None else None
