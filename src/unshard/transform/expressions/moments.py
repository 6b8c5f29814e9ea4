"""Dates and times in expressions: literals in the representation of the column, and functions such as YEAR()."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from unshard.transform.expressions.parse import Refused
from unshard.transform.expressions.values import ImageRows, Value, ValueKind

Clock = Callable[[str], str | None]
"""Returns a local time of the upstream (`YYYY-MM-DD HH:MM:SS`) in UTC; None where it isn't one moment."""

PART = "part of a date"
"""The type of these integers: MySQL has some of them UNSIGNED, MariaDB none."""

_LITERAL = re.compile(r"(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?)?")
_PARTS = {
    "year": (0, 4, 9999),
    "month": (5, 7, 12),
    "day": (8, 10, 31),
    "dayofmonth": (8, 10, 31),
    "hour": (11, 13, 23),
    "minute": (14, 16, 59),
    "second": (17, 19, 59),
}


def moment(literal: str, kind: ValueKind, text: str, clock: Clock) -> str:
    """Return a literal in the form of the column's texts. Raises Refused where the server might read it otherwise."""
    match = _LITERAL.fullmatch(literal)
    form = "YYYY-MM-DD" if kind.name == "date" else "YYYY-MM-DD HH:MM:SS"
    if match is None or not _exists(match[1], match[2] or "00:00:00"):
        raise Refused(text, f"write the date as '{form}', one of the calendar from year 1000 on")
    if kind.name == "date":
        if match[2]:
            raise Refused(text, "the column is a DATE; write 'YYYY-MM-DD' alone")
        return match[1]
    fraction = match[3] or ""
    if len(fraction) > kind.fsp:
        raise Refused(text, f"the column has {kind.fsp} digits of fraction; write no more of them")
    local = f"{match[1]} {match[2] or '00:00:00'}"
    if kind.name == "timestamp":
        found = clock(local)
        if found is None:
            raise Refused(text, "in the source's time zone this is no moment, or two; write another one")
        local = found
    return local + (f".{fraction:0<{kind.fsp}}" if kind.fsp else "")


def _exists(date: str, time: str) -> bool:
    try:
        datetime.fromisoformat(f"{date} {time}")
    except ValueError:
        return False
    return date >= "1000"


def part_of(name: str, value: Value, text: str) -> Value:
    """Return YEAR, MONTH, DAY, HOUR, MINUTE or SECOND of a value. Raises Refused."""
    start, stop, high = _PARTS[name]
    fits = ("date", "datetime") if stop <= 10 else ("datetime",)
    if value.kind.name not in fits or value.constant is not None:
        raise Refused(text, f"{name.upper()} takes a column of type {' or '.join(fits).upper()}")
    run = value.run

    def cut(rows: ImageRows) -> pa.Array:
        return pc.utf8_slice_codeunits(run(rows), start=start, stop=stop).cast(pa.int64())

    return Value(ValueKind("int", PART, high=high, unsigned=True), cut, text)
