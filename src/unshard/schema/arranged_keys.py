"""Keys of a table as a server keeps them.

A server names keys, puts them in order, gives them prefixes that fit, and adds keys for foreign keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from unshard.schema.definition import (
    BLOB_TYPES,
    CLOB_TYPES,
    GEOMETRY_TYPES,
    ColumnDefinition,
    Dialect,
    KeyDefinition,
    KeyKind,
    KeyPart,
    TableDefinition,
    bytes_a_character,
)

_LONGEST_KEY = 3072
_LONGEST_KEY_OF = {"ARIA": 2300, "MYISAM": 1000}
_POINT_BYTES = 25


def arranged_keys(table: TableDefinition, dialect: Dialect) -> tuple[KeyDefinition, ...]:
    """Return the keys that the table has after a statement.

    The table's foreign keys must still have the names that the statement gave them, if any: a key that is made for a
    foreign key takes that name.
    """
    keys = [_with_prefixes(key, table, dialect) for key in table.keys]
    for foreign_key in table.foreign_keys:
        columns = tuple(column.lower() for column in foreign_key.columns)
        if not any(
            key.columns[: len(columns)] == columns for key in keys if key.kind.unique or key.kind is KeyKind.PLAIN
        ):
            own = foreign_key.name or foreign_key.index
            parts = tuple(KeyPart(column) for column in foreign_key.columns)
            keys.append(KeyDefinition(KeyKind.PLAIN, own, parts, generated=True))
    keys = [key for key in keys if not (key.generated and _replaced(key, keys))]
    named = _with_names(keys)
    nullable = {column.name.lower() for column in table.columns if column.nullable}
    return tuple(sorted(named, key=lambda key: _rank(key, nullable)))


def _with_prefixes(key: KeyDefinition, table: TableDefinition, dialect: Dialect) -> KeyDefinition:
    """Return the key with the prefixes that the server stores: a prefix as long as the column becomes none.

    MariaDB cuts a plain key over a TEXT to the length that fits, and turns a unique key that is too long into a hash.
    """
    parts = []
    for part in key.parts:
        column = table.column(part.column) if part.column else None
        if column is not None:
            prefix = _prefix(part.prefix, column, key, table, dialect)
            part = replace(part, column=column.name, prefix=prefix)
        parts.append(part)
    made = replace(key, parts=tuple(parts))
    if dialect is Dialect.MARIADB and key.kind is KeyKind.UNIQUE and _is_too_long(made, table):
        made = replace(made, options=(*(o for o in key.options if not o.startswith("USING")), "USING HASH"))
    return made


def _prefix(given: int, column: ColumnDefinition, key: KeyDefinition, table: TableDefinition, dialect: Dialect) -> int:
    lengths = column.type.arguments if column.type.name in ("char", "varchar", "binary", "varbinary") else ()
    if lengths and given >= lengths[0]:
        return 0
    if column.type.name in GEOMETRY_TYPES and dialect is Dialect.MARIADB and key.kind is not KeyKind.SPATIAL:
        return _POINT_BYTES
    large = column.type.name in (*CLOB_TYPES, *BLOB_TYPES)
    if not (large or lengths):
        return 0
    if key.kind is KeyKind.PLAIN and dialect is Dialect.MARIADB and (large or given):
        most = _LONGEST_KEY_OF.get(table.option("ENGINE").upper(), _LONGEST_KEY) // bytes_a_character(column.charset)
        return min(given or most, most)
    return given


def _is_too_long(key: KeyDefinition, table: TableDefinition) -> bool:
    """Return whether the key's values may be longer than an index of InnoDB allows."""
    total = 0
    for part in key.parts:
        column = table.column(part.column) if part.column else None
        if column is None:
            return False
        if column.type.name in (*CLOB_TYPES, *BLOB_TYPES) and not part.prefix:
            return True
        if column.type.name in ("char", "varchar", "binary", "varbinary"):
            total += (part.prefix or column.type.arguments[0]) * bytes_a_character(column.charset)
    return total > _LONGEST_KEY


def _replaced(generated: KeyDefinition, keys: Iterable[KeyDefinition]) -> bool:
    """Return whether another key begins with a generated key's columns, so that the generated key is not needed."""
    wanted = generated.columns
    return any(
        key is not generated and not key.generated and key.columns[: len(wanted)] == wanted
        for key in keys
        if key.kind.unique or key.kind is KeyKind.PLAIN
    )


def _with_names(keys: Sequence[KeyDefinition]) -> list[KeyDefinition]:
    """Return the keys in order, each with a name.

    An unnamed key takes the name of its first column, with a number if that name is taken.
    """
    taken = {key.name.lower() for key in keys if key.name}
    named = []
    for key in keys:
        if not key.name:
            stem = key.parts[0].column or "functional_index"
            free = [stem] if stem.upper() != "PRIMARY" else []
            candidates = [*free, *(f"{stem}_{number}" for number in range(2, 1000))]
            key = replace(key, name=next(one for one in candidates if one.lower() not in taken))
            taken.add(key.name.lower())
        named.append(key)
    return named


def _rank(key: KeyDefinition, nullable: set[str]) -> tuple[int, ...]:
    """Return the sort key for the order in which servers keep keys.

    The order is: primary, unique without NULL, other unique ones, the rest, FULLTEXT.
    """
    if key.kind is KeyKind.PRIMARY:
        return (0,)
    if key.kind is KeyKind.UNIQUE:
        partial = any(part.prefix for part in key.parts)
        may_be_null = not nullable.isdisjoint(key.columns) or "" in key.columns
        return (1, int(may_be_null), int(partial))
    return (2, int(key.kind is KeyKind.FULLTEXT))
