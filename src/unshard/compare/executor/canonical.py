"""Converts column values to a canonical form, whatever server and type they come from. Arrow in, Arrow out.

Values are read by `dump.read`, so most are alike already. The remaining differences, by the columns that are
compared:

| columns | form |
|---|---|
| FLOAT in DOUBLE | the DOUBLE that the FLOAT's shortest text says, as the writer makes it |
| FLOAT and DOUBLE with (m,d) | rounded to d digits, as servers show them: they round in several ways before that |
| DECIMAL of several scales; times of several precisions | without zeros at the end |
| CHAR compared with another text type | without blanks at the end |
| BIT | eight bytes |
| JSON on either side | parsed: no blanks, keys in order, 2.0 as 2, integers beyond 64 bits as doubles |
| SET with several definitions | members in order |

A document that does not parse stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from unshard.model.table import Column
from unshard.mysql.types import ADDRESSES, BYTES, CHARACTERS, GEOMETRIES, INTEGERS, MEMBERS, TEMPORALS
from unshard.transform.latest_time import without_fraction

Kind = Literal["plain", "float", "double", "trailing zeros", "bit", "json", "set"]
_SIGNED, _UNSIGNED = -(1 << 63), 1 << 64
_ZEROS = r"(\.\d*?)0+$"
_POINT = r"\.$"
_POINTED = re.compile(r"\(\d+,(\d+)\)")


@dataclass(frozen=True, slots=True)
class ValueForm:
    """The canonical form of the values of one compared column.

    `trimmed`: blanks at the end of a text don't count. `digits` is the number of decimal places d of FLOAT(m,d) or
    DOUBLE(m,d). `one_zero`: -0 counts as 0, as TiDB and MariaDB store it. `clamped`: a TIME beyond 838:59:59 counts as
    838:59:59, as the task stores it.
    """

    kind: Kind
    trimmed: bool = False
    digits: int | None = None
    one_zero: bool = False
    clamped: bool = False


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
    if form.clamped:
        values = without_fraction(values)
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
