"""The conversions of a column's old values that TiDB's ALTER TABLE makes as the source's does.

| from | to |
|---|---|
| any type | the same type and character set, whatever NULL, DEFAULT, COMMENT and collation become |
| an integer, YEAR | an integer |
| an integer, DECIMAL | DECIMAL, FLOAT, DOUBLE; CHAR, VARCHAR and TEXT types, unless it is ZEROFILL |
| FLOAT | DOUBLE |
| DATE | DATETIME |
| DATETIME, TIMESTAMP, TIME | the same with other digits of a second (`ddl.fractions`) |
| CHAR, VARCHAR | CHAR, VARCHAR of any length, a TEXT with room; in the same character set or in utf8mb4 |
| TEXT types, VARBINARY, BLOB types | one of the same kind with room for all that the old one holds |
| ENUM, SET | the same with more members behind the old ones |
| BIT | BIT that is as long or longer |

All others are taken for different. Many of them are: TiDB brings TIME to the date of its own clock, FLOAT to text with
other digits, a ZEROFILL number to text without its zeros, and text to bytes of its own character set. A test on real
servers holds each row of the table to odd values.
"""

from __future__ import annotations

from unshard.schema.definition import (
    BLOB_TYPES,
    CLOB_TYPES,
    INTEGER_TYPES,
    ColumnDefinition,
    DataType,
    bytes_a_character,
)

_CHARACTERS = ("char", "varchar")
_BYTES = ("varbinary", *BLOB_TYPES)
_FLOATING = ("float", "double")
_FRACTIONS = ("datetime", "timestamp", "time")
_MEMBERS = ("enum", "set")
_ROOM = dict(zip((*BLOB_TYPES, *CLOB_TYPES), (255, 65_535, 16_777_215, 4_294_967_295) * 2, strict=True))
"""Bytes that a value of the type may have."""


def converts_alike(before: ColumnDefinition, after: ColumnDefinition) -> bool:
    """Return whether TiDB gives old values another type as the source does. Both columns are the source's. Pure."""
    old, new = before.type, after.type
    if before.charset != after.charset and old.is_text and (not new.is_text or after.charset != "utf8mb4"):
        return False
    if (old.name, old.arguments, old.members) == (new.name, new.arguments, new.members) or old.name in INTEGER_TYPES:
        return old.name == new.name or _holds_integer(old, new)
    match old.name:
        case "year":
            return new.name in INTEGER_TYPES
        case "decimal":
            return _is_number(new) or (_is_characters(new) and not old.zerofill)
        case "float":
            return not old.arguments and new.name == "double" and not new.arguments
        case "date":
            return new.name == "datetime"
        case "bit":
            return new.name == "bit" and new.arguments >= old.arguments
        case "char" | "varchar":
            most = old.arguments[0] * bytes_a_character(after.charset)
            return new.name in _CHARACTERS or (new.name in CLOB_TYPES and _ROOM[new.name] >= most)
    if old.name in CLOB_TYPES:
        most = _ROOM[old.name] * (1 if before.charset == after.charset else bytes_a_character(after.charset))
        return new.name in CLOB_TYPES and _ROOM[new.name] >= most
    if old.name in _BYTES:
        return new.name in _BYTES and _room(new) >= _room(old)
    if old.name in _MEMBERS:
        return new.name == old.name and new.members[: len(old.members)] == old.members
    return old.name == new.name and old.name in _FRACTIONS


def _holds_integer(old: DataType, new: DataType) -> bool:
    return new.name in INTEGER_TYPES or _is_number(new) or (_is_characters(new) and not old.zerofill)


def _is_number(kind: DataType) -> bool:
    """Return whether it is DECIMAL, or FLOAT or DOUBLE without a number of digits."""
    return kind.name == "decimal" or (kind.name in _FLOATING and not kind.arguments)


def _is_characters(kind: DataType) -> bool:
    return kind.name in _CHARACTERS or kind.name in CLOB_TYPES


def _room(kind: DataType) -> int:
    return _ROOM.get(kind.name) or kind.arguments[0]
