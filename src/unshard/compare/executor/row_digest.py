"""Digests of rows in SQL, by which a server sums up the rows of a range.

A server sums up rows as their number, a sum and an XOR of their digests. A row is the texts of its values in a form
that can be read back: numbers and times end with a comma, all other texts have their length before them, NULL is an N.
So no two rows have one text. Long values go in as their SHA-256: a row then never reaches `max_allowed_packet`, beyond
which a server would give NULL. The rows that have a digest are counted too, so that one without is never missed.

The digest of a row is its SHA-256, which all servers have and compute in the least time. Its four quarters become
numbers by CRC32, which costs a server a fifth of what CONV costs; two of them go into the sum, two into the XOR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unshard.model.table import Column, Table, quote_name
from unshard.mysql.types import ADDRESSES, CHARACTERS, INTEGERS, MEMBERS, TEMPORALS

_UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
_CONVERTED = frozenset({"latin1"})
_LONG = frozenset({"text", "mediumtext", "longtext", "blob", "mediumblob", "longblob"})
_PLAIN = INTEGERS | TEMPORALS | {"year", "decimal", "bit"}
"""Types whose texts have digits, points, colons, blanks and signs, and no comma."""

_SHORT_BYTES = frozenset({"binary", "varbinary", "tinyblob"})
_SUMMED = 1 << 64
_ONCE = f" LIMIT {(1 << 63) - 1}"
"""Keeps a server from putting the inner expression into each place of the outer one, and computing it again there."""


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of rows: their number, the sum modulo 2^64 of one half of their hashes, the XOR of the other half."""

    rows: int = 0
    total: int = 0
    xor: int = 0

    def __add__(self, other: Digest) -> Digest:
        return Digest(self.rows + other.rows, (self.total + other.total) % _SUMMED, self.xor ^ other.xor)


def server_side(columns: Sequence[Column]) -> bool:
    """Return whether the servers print the values of all these columns in one form."""
    first, *others = columns
    if any(column.type in ("json", "float", "double") or column.type in ADDRESSES for column in columns):
        return False
    if first.type in INTEGERS or first.type == "year":
        return not any("zerofill" in c.definition or c.definition == "year(2)" for c in columns)
    if first.type == "decimal":
        return not any("zerofill" in c.definition or c.scale != first.scale for c in columns)
    if first.type in TEMPORALS:
        return all(column.fsp == first.fsp for column in others)
    if first.type in CHARACTERS and first.charset != "binary":
        padded = {column.type == "char" for column in columns}
        return len(padded) == 1 and all(column.charset in _UTF8 | _CONVERTED for column in columns)
    if first.type in MEMBERS:
        known = all(column.members == first.members and "" not in column.members for column in columns)
        return known and bool(first.members) and all(column.charset in _UTF8 | _CONVERTED for column in columns)
    return first.type == "bit" or all(c.type in _SHORT_BYTES | _LONG for c in columns)


def digest_sql(table: Table, columns: Sequence[str], condition: str) -> str:
    """Return the statement that gives one row: rows, rows with a digest, sum and XOR.

    `columns` are in the same order everywhere, and all `server_side`.
    """
    parts = ", ".join(_marked(table.column(name)) for name in columns)
    where = f" WHERE {condition}" if condition else ""
    first, second = (f"CRC32(SUBSTRING(h, {at}, 16)) << 32 | CRC32(SUBSTRING(h, {at + 16}, 16))" for at in (1, 33))
    # as bytes: a table in memory has room for four bytes a letter of other texts, and goes to disk that much sooner
    digests = f"SELECT CONVERT(SHA2(CONCAT({parts}), 256) USING binary) h FROM {table.name.quoted}{where}{_ONCE}"
    return f"SELECT COUNT(*), COUNT(h), COALESCE(SUM({first}), 0), BIT_XOR({second}) FROM ({digests}) digests"


def digest_of(row: Sequence[object]) -> Digest | None:
    """Return the result of that statement; None where a row is too long for the server to concatenate."""
    rows, digested, total, xor = (int(value.decode() if isinstance(value, bytes) else str(value)) for value in row)
    return Digest(rows, total % _SUMMED, xor) if rows == digested else None


def _marked(column: Column) -> str:
    """Return arguments for CONCAT: the value's text in a form that marks its own end; N for NULL.

    They are NULL only where the server gives up.
    """
    text = _text(column)
    if column.type in _PLAIN:
        marked = f"{text}, ','"
    elif column.type in _LONG:
        marked = f"LENGTH({text}), ':', SHA2({text}, 256)"
    else:
        marked = f"LENGTH({text}), ':', {text}"
    return f"IF({quote_name(column.name)} IS NULL, 'N', CONCAT({marked}))" if column.nullable else marked


def _text(column: Column) -> str:
    name = quote_name(column.name)
    if column.type in CHARACTERS and column.charset != "binary":
        return f"CONVERT({_utf8(name, column)} USING binary)"
    if column.type in MEMBERS:
        return f"CONVERT({_utf8(f'CAST({name} AS CHAR)', column)} USING binary)"
    if column.type == "bit":
        return f"CAST({name} + 0 AS CHAR)"
    if column.type in INTEGERS or column.type in _SHORT_BYTES | _LONG:
        return name
    return f"CAST({name} AS CHAR)"


def _utf8(expression: str, column: Column) -> str:
    return f"CONVERT({expression} USING utf8mb4)" if column.charset in _CONVERTED else expression
