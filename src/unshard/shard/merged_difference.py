"""The statement that brings a merged table from one structure to the next. Pure."""

from __future__ import annotations

from dataclasses import replace

from unshard.model.table import TableName, quote_name
from unshard.schema.definition import ColumnDefinition, Dialect, TableDefinition
from unshard.schema.text import column_text, default_text, key_text
from unshard.shard.join import plain_keys


def difference(target: TableName, before: TableDefinition, after: TableDefinition, dialect: Dialect) -> str:
    """One ALTER TABLE with everything that differs in columns and plain keys; empty where nothing does."""
    parts = _keys_dropped(before, after)
    for column in before.columns:
        if after.column(column.name) is None:
            parts.append(f"DROP COLUMN {quote_name(column.name)}")
    for column in after.columns:
        there = before.column(column.name)
        if there is None:
            parts.append(f"ADD COLUMN {_text(column, after, dialect)}")
        elif there != column:
            parts += _modified(there, column, after, dialect)
    known = plain_keys(before)
    parts += [f"ADD {key_text(key)}" for name, key in plain_keys(after).items() if name not in known]
    return f"ALTER TABLE {target.quoted} {', '.join(parts)}" if parts else ""


def _keys_dropped(before: TableDefinition, after: TableDefinition) -> list[str]:
    kept = plain_keys(after)
    return [f"DROP INDEX {quote_name(key.name)}" for name, key in plain_keys(before).items() if name not in kept]


def _modified(there: ColumnDefinition, column: ColumnDefinition, table: TableDefinition, dialect: Dialect) -> list[str]:
    if replace(there, default=None) != replace(column, default=None):
        return [f"MODIFY COLUMN {_text(column, table, dialect)}"]
    if default_text(there, dialect) == default_text(column, dialect):
        return []
    name = quote_name(column.name)
    if column.default is None and not column.nullable:
        return [f"ALTER COLUMN {name} DROP DEFAULT"]
    return [f"ALTER COLUMN {name} SET DEFAULT {default_text(column, dialect)}"]


def _text(column: ColumnDefinition, table: TableDefinition, dialect: Dialect) -> str:
    """The column with its character set written out: the target's own default may be another one."""
    return column_text(column, replace(table, charset="", collation=""), dialect)
