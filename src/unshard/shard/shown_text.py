"""Tells which texts of a column a server shows as they are. Pure.

The dictionaries of MariaDB and MySQL are in utf8mb3, which has no letters of four bytes. SHOW CREATE TABLE and
`information_schema` have a `?` in place of each such letter, so a `?` may stand for one. MySQL 8.0 and newer show a
default with such letters by its bytes. A structure that is recorded has the first form, also where it was computed from
a statement that has the letters, or has the bytes.

Nothing is generated from a text that is not certain: a shard's own statement runs, which has the letters. The dump asks
for the defaults of the tables that it copies (`dump.true_defaults`), so a target that is made of them has the letters.
"""

from __future__ import annotations

import re
from dataclasses import replace

from unshard.model.table import quote_text
from unshard.mysql.charsets import BEYOND_THREE_BYTES
from unshard.schema.definition import ColumnDefinition, DefaultKind, TableDefinition

_BYTES = re.compile("0x((?:[0-9A-Fa-f]{2})+)")
_LETTER = re.compile("[\U00010000-\U0010ffff]")


def letters_as_shown(text: str) -> str:
    """Return the text with the `?` that the dictionaries have for each letter of four bytes."""
    return _LETTER.sub("?", text)


def as_shown(table: TableDefinition) -> TableDefinition:
    """Return the structure with the defaults and the members as SHOW CREATE TABLE has them."""
    return replace(table, columns=tuple(map(_column_as_shown, table.columns)))


def _column_as_shown(column: ColumnDefinition) -> ColumnDefinition:
    default, members = column.default, column.type.members
    if default is not None and (text := letters_as_shown(_with_text(column, default.text))) != default.text:
        column = replace(column, default=replace(default, text=text))
    if any(map(_LETTER.search, members)):
        shown = tuple(map(letters_as_shown, members))
        column = replace(column, type=replace(column.type, members=shown))
    return column


def _with_text(column: ColumnDefinition, default: str) -> str:
    """Return the default of a text column as a quoted text where it is shown by its bytes."""
    found = _BYTES.fullmatch(default) if column.type.is_text and column.charset == "utf8mb4" else None
    try:
        text = bytes.fromhex(found[1]).decode() if found is not None else None
    except UnicodeDecodeError:
        return default
    return default if text is None else quote_text(text)


def has_certain_default(column: ColumnDefinition) -> bool:
    """Return whether the text of the default is the one that the column really has."""
    default = column.default
    if default is None or "?" not in default.text:
        return True
    return default.kind is DefaultKind.CONSTANT and column.charset not in BEYOND_THREE_BYTES


def has_certain_members(column: ColumnDefinition) -> bool:
    """Return whether the members of an ENUM or SET are those that the column really has."""
    return column.charset not in BEYOND_THREE_BYTES or not any("?" in member for member in column.type.members)


def uncertain_part(column: ColumnDefinition) -> str:
    """Return which part of the column a server does not show for certain, in words; empty if it shows all."""
    if not has_certain_members(column):
        return "members"
    return "" if has_certain_default(column) else "a default"


def without_uncertain_defaults(table: TableDefinition) -> TableDefinition:
    """Return the structure without the defaults that are not certain: shards that have the column give its values."""
    columns = (one if has_certain_default(one) else replace(one, default=None) for one in table.columns)
    return replace(table, columns=tuple(columns))
