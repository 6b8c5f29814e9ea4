"""Translates definitions to TiDB, which lacks some features of MySQL and MariaDB.

| in the source | in TiDB |
|---|---|
| a collation that TiDB lacks | the one that `TidbWords.collation_for` names; a TEXT is made wider where it has to be |
| a VARCHAR too long for its new character set | TEXT or MEDIUMTEXT |
| FULLTEXT, SPATIAL and VECTOR keys, CHECK in a column's definition | left out |
| a plain key longer than 3072 bytes | a key over prefixes |
| INVISIBLE, COMPRESSED, COLUMN_FORMAT, STORAGE of a column | left out: the column is a plain one |
| system versioning and its two columns | left out: current rows only |
| ENGINE, ROW_FORMAT and other options of storage, FORCE, ORDER BY, ALGORITHM, LOCK | left out |
| several changes that concern one column or key | statements of their own, in order |
| a key in a column's definition | ADD COLUMN, then ADD KEY |
| a stored generated column that is added to a table | a virtual one |
| spatial types, UUID, INET4, INET6, AUTO_INCREMENT that is added to a table | NotInTidbError |

TiDB itself refuses everything else that it lacks (expressions as defaults, functions), with its own error. The rules
come from TiDB's documentation of MySQL compatibility and from its source of the 7.5 line; tests compare them with a
real server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from unshard.model.table import TableName, quote_name
from unshard.schema.definition import (
    BLOB_TYPES,
    CLOB_TYPES,
    GEOMETRY_TYPES,
    ColumnDefinition,
    DataType,
    Dialect,
    KeyDefinition,
    KeyKind,
    KeyPart,
    TableDefinition,
    bytes_a_character,
)
from unshard.schema.implied import charset_of, widened
from unshard.schema.text import column_text, key_text

AS_TEXT = {"uuid": DataType("char", (36,)), "inet6": DataType("varchar", (39,)), "inet4": DataType("varchar", (15,))}
"""Types of MariaDB that become text in TiDB. Each value is stored as the text that MariaDB shows, in ASCII characters.
"""

_LARGEST_TEXT = 65535
_BEYOND_BMP = 4
_LONGEST_KEY = 3072
_VECTOR_SINCE = (8, 4, 0)
_WITH_PREFIX = frozenset({"char", "varchar", "binary", "varbinary", *CLOB_TYPES, *BLOB_TYPES})
LEFT_OUT_KEYS = frozenset({KeyKind.FULLTEXT, KeyKind.SPATIAL, KeyKind.VECTOR})
"""Kinds of keys that TiDB lacks, at least in some versions. They only speed up queries, so they are left out."""

_KEPT_KEY_OPTIONS = ("COMMENT", "INVISIBLE", "USING BTREE", "USING HASH")
_BARE = TableDefinition(())


class NotInTidbError(ValueError):
    """Raised for a part of a definition that has no equivalent in TiDB. The text names the part and the limit."""


@dataclass(frozen=True, slots=True)
class TidbWords:
    """The features of one TiDB server.

    Args:
        collation_for: returns the TiDB collation to use for a collation of the source.
        version: the server's version.
    """

    collation_for: Callable[[str], str]
    version: tuple[int, int, int] = (7, 5, 0)


@dataclass(frozen=True, slots=True)
class Translation:
    """The statements for TiDB in order, and the omitted parts of the source's statement, each with the reason."""

    statements: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def create_database(name: str, collation: str, words: TidbWords, *, if_not_exists: bool) -> str:
    """Return CREATE DATABASE with TiDB's collation for the source's default collation."""
    unless = "IF NOT EXISTS " if if_not_exists else ""
    return f"CREATE DATABASE {unless}{quote_name(name)} {_charset(collation, words)}"


def alter_database(name: str, collation: str, words: TidbWords) -> str:
    """Return an ALTER DATABASE that sets the default collation, with its character set, in TiDB's names."""
    return f"ALTER DATABASE {quote_name(name)} {_charset(collation, words)}"


def create_table(table: TableDefinition, name: TableName, words: TidbWords, *, if_not_exists: bool) -> Translation:
    """Return CREATE TABLE for a complete definition. Raises NotInTidbError."""
    unless = "IF NOT EXISTS " if if_not_exists else ""
    left_out: list[str] = []
    there = tidb_table(table, words, left_out)
    lines = [column_text(column, there, Dialect.TIDB) for column in there.columns]
    lines += [key_text(key) for key in there.keys]
    lines += [
        f"CONSTRAINT {quote_name(key.name)} FOREIGN KEY ({listed(key.columns)}) {key.reference}"
        for key in there.foreign_keys
    ]
    lines += [f"CONSTRAINT {quote_name(check.name)} CHECK ({check.expression}) {check.rest}" for check in there.checks]
    options = [f"DEFAULT CHARSET={there.charset} COLLATE={there.collation}"]
    options += [f"AUTO_INCREMENT={there.counter}"] if there.counter else []
    options += [f"COMMENT={comment}"] if (comment := there.option("COMMENT")) else []
    options += [there.partitions] if there.partitions else []
    body = ",\n  ".join(line.rstrip() for line in lines)
    text = f"CREATE TABLE {unless}{name.quoted} (\n  {body}\n) {' '.join(options)}"
    return Translation((text,), tuple(left_out))


def tidb_table(table: TableDefinition, words: TidbWords, left_out: list[str]) -> TableDefinition:
    """Return the definition that TiDB gets.

    The parts that are left out are appended to `left_out`. Raises NotInTidbError.
    """
    columns = tuple(tidb_column(column, words) for column in table.columns if not column.period)
    left_out += [check for column in table.columns for check in column.checks]
    if not columns:
        raise NotInTidbError("TiDB has no table without columns, and no periods")
    if table.versioned:
        left_out.append("system versioning")
    if table.partitions and "SYSTEM_TIME" in table.partitions.upper():
        left_out.append("partitions by SYSTEM_TIME")
        table = replace(table, partitions="")
    periods = {column.name.lower() for column in table.columns if column.period}
    collation = words.collation_for(table.collation)
    table = replace(table, columns=columns, charset=charset_of(collation), collation=collation)
    keys = []
    for key in table.keys:
        parts = tuple(part for part in key.parts if part.column.lower() not in periods)
        if key.kind in LEFT_OUT_KEYS:
            left_out.append(f"{key.kind} {key.name}")
        elif parts:
            keys.append(tidb_key(replace(key, parts=parts), table))
    return replace(table, keys=tuple(keys))


def tidb_column(column: ColumnDefinition, words: TidbWords) -> ColumnDefinition:
    """Return a complete column as TiDB gets it. Raises NotInTidbError."""
    kind = column.type
    if kind.name in GEOMETRY_TYPES or (kind.name == "vector" and words.version < _VECTOR_SINCE):
        raise NotInTidbError(f"column {column.name}: TiDB has no type {kind.name.upper()}")
    column = replace(column, invisible=False, others=())
    if kind.name in AS_TEXT:
        return replace(column, type=AS_TEXT[kind.name], charset="ascii", collation="ascii_bin")
    if not kind.is_text or column.charset is None or column.collation is None:
        return column
    before, collation = column.charset, words.collation_for(column.collation)
    charset = charset_of(collation)
    return replace(column, type=_wide_enough(kind, before, charset), charset=charset, collation=collation)


def _wide_enough(kind: DataType, before: str, charset: str) -> DataType:
    """Return a type that holds as many characters in `charset` as `kind` holds in the character set `before`."""
    if kind.name in CLOB_TYPES:
        return widened(kind, before, charset)
    if kind.name == "varchar" and kind.arguments[0] * bytes_a_character(charset) > _LARGEST_TEXT:
        most = 3 if bytes_a_character(before) < _BEYOND_BMP else 4  # bytes of a character of the old set in UTF-8
        return DataType("text" if kind.arguments[0] * most <= _LARGEST_TEXT else "mediumtext")
    return kind


def tidb_key(key: KeyDefinition, table: TableDefinition) -> KeyDefinition:
    """Return a key as TiDB gets it, over columns of `table`, which is already translated. Raises NotInTidbError."""
    key = replace(key, parts=tuple(_plain_part(part, table) for part in key.parts))
    options = tuple(option for option in key.options if option.upper().startswith(_KEPT_KEY_OPTIONS))
    sizes = [_part_bytes(part.prefix, table.column(part.column)) if part.column else 0 for part in key.parts]
    if (all(sizes) and sum(sizes) <= _LONGEST_KEY) or "" in key.columns:
        return replace(key, options=options)
    if key.kind.unique:
        raise NotInTidbError(f"{key.kind} {key.name} has more than the {_LONGEST_KEY} bytes that TiDB bears in a key")
    room = _LONGEST_KEY // len(key.parts)
    parts = []
    for part in key.parts:
        column = table.column(part.column)
        size = _part_bytes(part.prefix, column)
        if column is not None and (size == 0 or size > room):
            part = replace(part, prefix=room // bytes_a_character(column.charset))
        parts.append(part)
    return replace(key, parts=tuple(parts), options=options)


def _plain_part(part: KeyPart, table: TableDefinition) -> KeyPart:
    """Return the key part without its prefix if the column is not a text: MariaDB ignores such a prefix."""
    column = table.column(part.column) if part.prefix else None
    return replace(part, prefix=0) if column is not None and column.type.name not in _WITH_PREFIX else part


def _part_bytes(prefix: int, column: ColumnDefinition | None) -> int:
    """Return the most bytes that a column takes in a key; 0 if it has no limit."""
    if column is None:
        return 8
    if column.type.name in _WITH_PREFIX:
        return (prefix or sum(column.type.arguments)) * bytes_a_character(column.charset)
    return 8


def _charset(collation: str, words: TidbWords) -> str:
    there = words.collation_for(collation)
    return f"CHARACTER SET {charset_of(there)} COLLATE {there}"


def listed(columns: Sequence[str]) -> str:
    """Return the names quoted, with commas between them."""
    return ", ".join(map(quote_name, columns))
