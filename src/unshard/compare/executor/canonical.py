"""One form for the values of a column, whatever server and type they come from; and digests of rows in SQL.

The form: Arrow in, Arrow out. The SQL: a server sums up the rows of a range by it.

Values are read by `dump.read`, so that most are alike already. The remaining differences, by the columns that are
compared:

| columns | form |
|---|---|
| FLOAT in DOUBLE | the DOUBLE that the FLOAT's shortest text says, as the writer makes it |
| FLOAT and DOUBLE with (m,d) | rounded to d digits, as servers show them: they round in several ways before that |
| DECIMAL of several scales; times of several precisions | without zeros at the end |
| CHAR beside another text type | without blanks at the end |
| BIT | eight bytes |
| JSON on either side | parsed: no blanks, keys in order, 2.0 as 2, integers beyond 64 bits as doubles |
| SET with several definitions | members in order |

A document that does not parse stays as it is.

A server sums up rows as their number, a sum and an XOR of their digests. A row is the texts of its values in a form
that can be read back: numbers and times end with a comma, all other texts have their length before them, NULL is an N.
So no two rows have one text. Long values go in as their SHA-256: a row then never reaches `max_allowed_packet`, beyond
which a server would give NULL. The rows that have a digest are counted too, so that one without is never missed.

The digest of a row is its SHA-256, which all servers have and compute in the least time. Its four quarters become
numbers by CRC32, which costs a server a fifth of what CONV costs; two of them go into the sum, two into the XOR.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from unshard.model.table import Column, Table, quote_name
from unshard.mysql.types import ADDRESSES, BYTES, CHARACTERS, GEOMETRIES, INTEGERS, MEMBERS, TEMPORALS

Kind = Literal["plain", "float", "double", "trailing zeros", "bit", "json", "set"]
_SIGNED, _UNSIGNED = -(1 << 63), 1 << 64
_ZEROS = r"(\.\d*?)0+$"
_POINT = r"\.$"
_POINTED = re.compile(r"\(\d+,(\d+)\)")


@dataclass(frozen=True, slots=True)
class ValueForm:
    """The form of one compared column. `trimmed`: blanks at the end of a text don't count. `digits`: of (m,d).

    `one_zero`: -0 is 0, as TiDB and MariaDB store it.
    """

    kind: Kind
    trimmed: bool = False
    digits: int | None = None
    one_zero: bool = False


def form_of(columns: Sequence[Column]) -> ValueForm | None:
    """Return the form for the values of all these columns; None where their types can't be compared."""
    families = {_family(column) for column in columns}
    if "json" in families and families <= {"json", "text"}:
        return ValueForm("json")
    if families <= {"text", "address"}:
        chars = {column.type == "char" for column in columns}
        return ValueForm("plain", trimmed=len(chars) > 1)
    if families == {"float", "double"}:
        return ValueForm("double", digits=_digits(columns)) if columns[0].type == "double" else None
    if len(families) > 1:
        return None
    (family,) = families
    if family in ("float", "double"):
        return ValueForm("double" if family == "double" else "float", digits=_digits(columns))
    if family == "decimal":
        return ValueForm("plain" if len({column.scale for column in columns}) == 1 else "trailing zeros")
    if family in TEMPORALS:
        return ValueForm("plain" if len({column.fsp for column in columns}) == 1 else "trailing zeros")
    if family == "bit":
        return ValueForm("bit")
    if family == "set" and len({column.members for column in columns}) > 1:
        return ValueForm("set")
    return ValueForm("plain")


def _digits(columns: Sequence[Column]) -> int | None:
    """Return the fewest decimal places in the columns' definitions; None where none has any."""
    found = [int(match[1]) for column in columns if (match := _POINTED.search(column.definition))]
    return min(found, default=None)


def _family(column: Column) -> str:
    kind = column.type
    if kind in INTEGERS or kind == "year":
        return "integer"
    if kind in CHARACTERS:
        return "bytes" if column.charset == "binary" else "text"
    if kind in GEOMETRIES:
        return "geometry"
    if kind in BYTES - {"bit", "vector"}:
        return "bytes"
    if kind in ADDRESSES:
        return "address"
    return kind


def canonical(values: pa.Array, form: ValueForm) -> pa.Array:
    """Return the values in that form. NULL stays NULL."""
    if form.kind in ("float", "double"):
        wide = form.kind == "double" and values.type == pa.float32()
        found = values.cast(pa.string()).cast(pa.float64()) if wide else values
        if form.digits is not None:
            found = pc.round(found, ndigits=form.digits)
        return pc.add(found, pa.scalar(0.0, found.type)) if form.one_zero or form.digits is not None else found
    if form.kind == "trailing zeros":
        return pc.replace_substring_regex(pc.replace_substring_regex(values, _ZEROS, r"\1"), _POINT, "")
    if form.kind == "bit":
        zeros = pa.scalar(bytes(8), pa.binary())
        return pc.binary_slice(pc.binary_join_element_wise(zeros, values, pa.scalar(b"", pa.binary())), -8)
    if form.kind == "json":
        return _by_distinct(values, document)
    if form.kind == "set":
        return _by_distinct(values, lambda text: ",".join(sorted(text.split(","))))
    return pc.utf8_rtrim(values, " ") if form.trimmed else values


def _by_distinct(values: pa.Array, change: Callable[[str], str]) -> pa.Array:
    """Return the values changed one by one. Each distinct value is changed once, as a Python object."""
    encoded = values.dictionary_encode()
    changed = [None if text is None else change(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(changed, pa.string()).take(encoded.indices)


def document(text: str) -> str:
    """Return a JSON document in one canonical form; a text that is not JSON unchanged."""
    try:
        found = json.loads(text, parse_int=_whole, parse_float=_number, parse_constant=_refuse)
        return json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    except (ValueError, RecursionError):
        return text


def _whole(digits: str) -> int | float:
    number = int(digits) if len(digits) < 40 else float(digits)
    return number if _SIGNED <= number < _UNSIGNED else _number(digits)


def _number(digits: str) -> int | float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(digits)
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number


def _refuse(word: str) -> Any:
    raise ValueError(word)


def members_known(columns: Sequence[Column]) -> bool:
    """Return whether the members of all columns of type ENUM or SET are known."""
    return all(column.members for column in columns if column.type in MEMBERS)


# SQL with which a server sums up the rows of a range: their number, a sum and an XOR of their digests.


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
    """Rows of one side: how many, the sum modulo 2^64 of one half of their digests, the XOR of the other."""

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
