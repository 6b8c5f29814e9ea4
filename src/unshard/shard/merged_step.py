"""The effect of one shard's statement on a merged table. Pure.

Decides whether it may change the table by itself or needs a barrier of all shards, and which statement brings the table
from one structure to the next.

| operation | kind |
|---|---|
| ADD COLUMN with a rule (`join.fill_of`), a wider type, NULL, SET DEFAULT, ADD plain KEY | grows |
| DROP COLUMN with a rule, DROP plain KEY | shrinks |
| RENAME or CHANGE of a name, any other MODIFY, UNIQUE, PRIMARY KEY, foreign keys, CHECK | barrier |
| partitions, options, columns without a rule, DROP and ADD of one name at once | barrier |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unshard.model.table import TableName, quote_name
from unshard.schema.definition import ColumnDefinition, DataType, Dialect, KeyKind, TableDefinition
from unshard.schema.operations import (
    AddColumn,
    AddKey,
    ChangeColumn,
    DropColumn,
    DropKey,
    NoChange,
    Operation,
    SetDefault,
)
from unshard.schema.text import column_text, default_text, key_text
from unshard.shard.join import IncompatibleError, fill_of, joined_column, joined_type, plain_keys

_TEXT_BYTES = {"tinytext": 255, "text": 65_535, "mediumtext": 16_777_215, "longtext": 4_294_967_295}
_ROUNDED = frozenset({"decimal", "float", "double"})
"""Types whose values a server rounds without an error."""


def barrier_of(before: TableDefinition, after: TableDefinition, operations: Sequence[Operation]) -> str:
    """Return why the operations need a barrier; empty if they don't. `after` is the structure after them."""
    added = {one.written.column.name.lower() for one in operations if isinstance(one, AddColumn)}
    dropped = {one.name.lower() for one in operations if isinstance(one, DropColumn)}
    if both := sorted(added & dropped):
        return f"it drops column {both[0]} and adds another one of that name"
    for operation in operations:
        why = _barrier(before, after, operation)
        if why:
            return why
    return _rest(before, after)


def _barrier(before: TableDefinition, after: TableDefinition, operation: Operation) -> str:
    match operation:
        case NoChange():
            return ""
        case AddColumn(written):
            if written.keys or written.foreign_keys:
                return f"it makes a key over the new column {written.column.name}"
            made = after.column(written.column.name)
            return _without_rule(made) if before.column(written.column.name) is None else ""
        case DropColumn(name):
            return _drop(before, name)
        case ChangeColumn(old, written):
            name = written.column.name
            if old.lower() != name.lower():
                return f"it renames column {old} to {name}"
            if written.keys or written.foreign_keys:
                return f"it makes a key over column {name}"
            return _change(before.column(old), after.column(name))
        case SetDefault(name):
            return _change(before.column(name), after.column(name))
        case AddKey(key) if key.kind is KeyKind.PLAIN:
            return ""
        case DropKey(name):
            key_there = before.key(name)
            plain = key_there is None or key_there.kind is KeyKind.PLAIN
            return "" if plain else f"it drops {name}, which is not a plain key"
    return f"{type(operation).__name__} is for all shards at once"


def _without_rule(column: ColumnDefinition | None) -> str:
    if column is None or fill_of(column) is not None:
        return ""
    return f"column {column.name} has no constant value that rows of shards without it could get"


def _drop(before: TableDefinition, name: str) -> str:
    for key in before.keys:
        if name.lower() in key.columns and (key.kind is not KeyKind.PLAIN or len(key.columns) > 1):
            return f"column {name} is part of key {key.name}"
    return _without_rule(before.column(name))


def _change(before: ColumnDefinition | None, after: ColumnDefinition | None) -> str:
    if before is None or after is None:
        return ""
    try:
        joined = joined_column((after, before), None)
    except IncompatibleError as error:
        return f"no type takes the values of before and behind it: {error}"
    if (joined.type, joined.nullable) != (after.type, bool(after.nullable)):
        return f"it narrows column {after.name}"
    return ""


def _rest(before: TableDefinition, after: TableDefinition) -> str:
    """Return the other differences, apart from columns and added or dropped plain keys; empty if nothing."""

    def rest(table: TableDefinition) -> TableDefinition:
        kept = tuple(replace(key, generated=False) for key in table.keys if key.kind is not KeyKind.PLAIN)
        return replace(table, columns=(), keys=tuple(sorted(kept, key=lambda key: key.name.lower())), counter="")

    if rest(before) != rest(after):
        return "it changes unique keys, constraints, partitions or options"
    for name, key in plain_keys(after).items():
        there = plain_keys(before).get(name)
        if there is not None and there.columns != key.columns:
            return f"it changes the columns of key {key.name}"
    return ""


def difference(
    target: TableName,
    before: TableDefinition,
    after: TableDefinition,
    dialect: Dialect,
    there: TableDefinition | None = None,
) -> str:
    """Return one ALTER TABLE with all differences in columns and plain keys; empty if there are none.

    `there` is the table that the target really has. What somebody has widened in it by hand is not narrowed. Raises
    IncompatibleError where the statement would round the values of a column.
    """
    parts = _keys_dropped(before, after)
    for column in before.columns:
        if after.column(column.name) is None:
            parts.append(f"DROP COLUMN {quote_name(column.name)}")
    for column in after.columns:
        known = before.column(column.name)
        if known is None:
            parts.append(f"ADD COLUMN {_text(column, after, dialect)}")
        elif known != column:
            real = there.column(column.name) if there is not None else None
            parts += _modified(known, _not_narrower(column, real) if real is not None else column, after, dialect)
    names = plain_keys(before)
    parts += [f"ADD {key_text(key)}" for name, key in plain_keys(after).items() if name not in names]
    return f"ALTER TABLE {target.quoted} {', '.join(parts)}" if parts else ""


def _not_narrower(column: ColumnDefinition, real: ColumnDefinition) -> ColumnDefinition:
    """Return the column as it takes the values of the target's real one too.

    Raises IncompatibleError where the statement would round them. What else does not fit is refused by the target, for
    the statement runs in a strict session.
    """
    kind = real.type
    if not _takes(real.type, column.type):
        try:
            joined = joined_type(column.type, real.type)
        except IncompatibleError as error:
            if real.type.name in _ROUNDED:
                raise IncompatibleError(f"column {column.name} of the target is {error}") from None
            joined = joined_type(column.type, column.type)
        kind = column.type if joined == joined_type(column.type, column.type) else joined
    found = replace(column, type=kind, nullable=bool(column.nullable or real.nullable))
    if kind.is_text and real.charset == "utf8mb4" != column.charset:
        return replace(found, charset=real.charset, collation=real.collation)
    return found


def _takes(kind: DataType, other: DataType) -> bool:
    """Return whether a text type takes all values of a CHAR or VARCHAR, or a number all digits of another."""
    if other.name in ("char", "varchar"):
        return _TEXT_BYTES.get(kind.name, 0) >= 4 * (other.arguments or (1,))[0]
    if kind.name == other.name == "decimal" and kind.unsigned == other.unsigned:
        (digits, scale), (others, fraction) = (((*one.arguments, 0, 0))[:2] for one in (kind, other))
        return scale >= fraction and digits - scale >= others - fraction
    return kind.name == "double" and other.name == "float"


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
    """Return the column's text with its character set, because the target's default may be another one."""
    return column_text(column, replace(table, charset="", collation=""), dialect)
