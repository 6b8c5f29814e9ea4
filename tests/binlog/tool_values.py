"""Whether a value of ours is what `mariadb-binlog` or `mysqlbinlog` printed for a column."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from unshard.model.table import Column

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_QUOTED = frozenset({"time", "datetime"})


def same(value: object, printed: str, column: Column) -> bool:
    """The tools know no names, no members, and not always signs: they print both readings of a negative integer."""
    if value is None or printed == "NULL":
        return value is None and printed == "NULL"
    kind = column.type
    text = printed.strip()
    if kind in _INTEGERS:
        return str(value) in re.findall(r"-?\d+", text)
    if kind in ("float", "double"):
        return float(text.split()[0]) == value
    if kind == "decimal":
        return text == value
    if kind == "date":
        return text.strip("'").replace(":", "-") == value
    if kind == "timestamp":
        return _moment(text, column.fsp) == value
    if kind in _QUOTED:
        return text.strip("'") == value
    if kind == "bit":
        return isinstance(value, bytes) and int(text[2:-1], 2) == int.from_bytes(value, "big")
    if kind == "enum":
        return int(text) == (value if isinstance(value, int) else column.members.index(value) + 1)
    if kind == "set":
        return int(text[2:-1], 2) == (value if isinstance(value, int) else _bits(str(value), column.members))
    plain = value.rstrip(b"\0").decode() if isinstance(value, bytes) else value
    return text == f"'{plain}'"


def _moment(text: str, digits: int) -> str:
    seconds, _, fraction = text.strip("'").partition(".")
    moment = f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M:%S}"
    return f"{moment}.{fraction}" if digits else moment


def _bits(value: str, members: tuple[str, ...]) -> int:
    return sum(1 << members.index(name) for name in value.split(",") if name)
