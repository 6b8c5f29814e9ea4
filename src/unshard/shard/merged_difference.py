"""Generates the ALTER TABLE that changes a merged table from one structure to the next. Pure."""

from __future__ import annotations

from dataclasses import replace

from unshard.model.table import TableName, quote_name
from unshard.schema.definition import ColumnDefinition, DataType, Dialect, TableDefinition
from unshard.schema.text import column_text, default_text, key_text
from unshard.shard.join import IncompatibleError, joined_type, plain_keys

_TEXT_BYTES = {"tinytext": 255, "text": 65_535, "mediumtext": 16_777_215, "longtext": 4_294_967_295}
_ROUNDED = frozenset({"decimal", "float", "double"})
"""Types whose values a server rounds without an error."""


def difference(
    target: TableName,
    before: TableDefinition,
    after: TableDefinition,
    dialect: Dialect,
    there: TableDefinition | None = None,
) -> str:
    """Return one ALTER TABLE with all differences in columns and plain keys; empty if there are none.

    `there` is the table that the target really has. What somebody has widened in it by hand is not narrowed, and what
    somebody has dropped is not dropped again. Raises IncompatibleError where the statement would round the values of a
    column.
    """
    parts = _keys_dropped(before, after, there)
    for column in before.columns:
        if after.column(column.name) is None and (there is None or there.column(column.name) is not None):
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


def _keys_dropped(before: TableDefinition, after: TableDefinition, there: TableDefinition | None) -> list[str]:
    kept = plain_keys(after)
    dropped = [key.name for name, key in plain_keys(before).items() if name not in kept]
    return [f"DROP INDEX {quote_name(name)}" for name in dropped if there is None or there.key(name) is not None]


def _modified(there: ColumnDefinition, column: ColumnDefinition, table: TableDefinition, dialect: Dialect) -> list[str]:
    if replace(there, default=None) != replace(column, default=None):
        return [f"MODIFY COLUMN {_text(column, table, dialect)}"]
    if default_text(there, dialect) == default_text(column, dialect):
        return []
    name = quote_name(column.name)
    if column.default is None and not column.nullable:
        return [f"ALTER COLUMN {name} DROP DEFAULT"]
    return [f"ALTER COLUMN {name} SET DEFAULT {default_text(column, dialect, brackets=True)}"]


def _text(column: ColumnDefinition, table: TableDefinition, dialect: Dialect) -> str:
    """Return the column's text with its character set, because the target's default may be another one.

    It is as MySQL and MariaDB take it: the target may be of the other product than the source.
    """
    return column_text(column, replace(table, charset="", collation=""), dialect, brackets=True)
