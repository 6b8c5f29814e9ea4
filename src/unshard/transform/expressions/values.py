"""The nodes of a compiled expression: the kind of each value, known before any row is read, and its evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from unshard.model.table import Column
from unshard.mysql.types import BYTES, CHARACTERS, INTEGERS
from unshard.transform.expressions.parse import Refused

LARGEST_SIGNED, LARGEST = (1 << 63) - 1, (1 << 64) - 1
EXACT = frozenset({"int", "decimal"})
_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


class ImageRows:
    """Row images of one kind, with the values that were computed from their columns so far."""

    def __init__(self, images: pa.RecordBatch, count: int) -> None:
        """Take `images`, which have only the needed columns of the table, maybe none; `count` is the number of rows."""
        self.count = count
        self._columns = {name.lower(): n for n, name in enumerate(images.schema.names)}
        self._images = images
        self._made: dict[Any, Any] = {}

    def column(self, name: str) -> pa.Array:
        """Return the column of that name, in whatever case. Raises KeyError."""
        return self._images.column(self._columns[name.lower()])

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, which is called once for these rows."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


@dataclass(frozen=True, slots=True)
class ValueKind:
    """The type of a value in an expression; `name` is one of these.

    =========  ================================================================================
    int        from `low` to `high`; `unsigned` as the server has it
    year       a YEAR column
    decimal    `whole` digits before the point, `scale` after it
    real       a double
    text       by `charset` and `collation`
    enum       the same, with `members`
    bytes      compared byte by byte
    date, datetime, timestamp   MySQL's text, with `fsp` digits of fraction
    null       NULL as it is written
    other      allows only IS NULL; `type` is its definition
    =========  ================================================================================
    """

    name: str
    type: str = ""
    low: int = 0
    high: int = 0
    unsigned: bool = False
    whole: int = 0
    scale: int = 0
    charset: str = ""
    collation: str = ""
    members: tuple[str, ...] = ()
    fsp: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """A part of an expression after its check: its kind, and the function that evaluates it.

    Args:
        run: returns an array or a scalar. Integers are int64 or uint64 (`holder`); conditions are bool; decimals, texts
            and times are text; reals are double.
        text: the part as it is written.
        constant: the value of a literal.
        condition: whether it is TRUE, FALSE or NULL.
        source: the column that a text is read from; the cache key of values that are computed from the column once.
    """

    kind: ValueKind
    run: Callable[[ImageRows], Any] = field(compare=False)
    text: str
    constant: Any = None
    condition: bool = False
    source: str = ""


def integer(text: str, low: int, high: int, unsigned: bool, run: Callable[[ImageRows], Any]) -> Value:
    """Return a calculated integer. Raises Refused where the server's 64 bits may not hold it."""
    least, most = (0, LARGEST) if unsigned else (-LARGEST_SIGNED - 1, LARGEST_SIGNED)
    if low < least or high > most:
        raise Refused(
            text, f"it may leave the range of BIGINT{' UNSIGNED' if unsigned else ''}; move it to the other side"
        )
    return Value(ValueKind("int", low=low, high=high, unsigned=unsigned), run, text)


def condition(text: str, run: Callable[[ImageRows], Any]) -> Value:
    """Return a value that is TRUE, FALSE or NULL in each row."""
    return Value(ValueKind("int", low=0, high=1), run, text, condition=True)


def holder(kind: ValueKind) -> pa.DataType:
    """Return the Arrow type that an integer of this kind runs to."""
    return pa.uint64() if kind.high > LARGEST_SIGNED else pa.int64()


def as_integer(value: Value, to: pa.DataType | None = None) -> Callable[[ImageRows], Any]:
    """Return `value`, of kind int, in 64 bits, by default those that hold it."""
    run, wanted = value.run, to or holder(value.kind)

    def cast(rows: ImageRows) -> Any:
        found = run(rows)
        return found if found.type == wanted else found.cast(wanted)

    return cast


def column_value(column: Column, text: str) -> Value:
    """Return a column of the table. Raises Refused for one whose values the binlog doesn't have."""
    if column.generated:
        raise Refused(text, "a generated column has no value in the binlog; write what it is generated from")
    name, run = column.name, _reader(column)
    return Value(_kind(column), run, text, source=name.lower())


def _reader(column: Column) -> Callable[[ImageRows], Any]:
    name = column.name
    if column.type == "float":
        return lambda rows: rows.column(name).cast(pa.float64())
    if column.type in INTEGERS:
        wanted = holder(_kind(column))
        return lambda rows: rows.column(name).cast(wanted)
    return lambda rows: rows.column(name)


def _kind(column: Column) -> ValueKind:
    kind = ValueKind("other", column.definition)
    if column.type in INTEGERS:
        bits = _BITS[column.type]
        low, high = (0, (1 << bits) - 1) if column.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
        return replace(kind, name="int", low=low, high=high, unsigned=column.unsigned)
    if column.type in ("year", "date"):
        return replace(kind, name=column.type)
    if column.type in ("datetime", "timestamp"):
        return replace(kind, name=column.type, fsp=column.fsp)
    if column.type == "decimal":
        return replace(kind, name="decimal", whole=column.precision - column.scale, scale=column.scale)
    if column.type in ("float", "double") and "(" not in column.definition:
        return replace(kind, name="real")
    if column.type == "enum" and column.members and column.collation:
        return replace(
            kind, name="enum", members=column.members, charset=column.charset or "", collation=column.collation
        )
    if column.type in CHARACTERS and column.charset not in (None, "binary") and column.collation:
        return replace(kind, name="text", charset=column.charset or "", collation=column.collation)
    if (column.type in BYTES and column.type not in ("bit", "vector")) or column.charset == "binary":
        return replace(kind, name="bytes")
    return kind


def number_value(digits: str, text: str) -> Value:
    """Return a number as it is written. Raises Refused for one that is out of all ranges."""
    if "e" in digits.lower():
        real = float(digits)
        if real in (float("inf"), float("-inf")):
            raise Refused(text, "this is no number that a DOUBLE holds")
        return Value(ValueKind("real"), lambda rows: pa.scalar(real, pa.float64()), text, real)
    if "." not in digits and int(digits) <= LARGEST:
        whole = int(digits)
        kind = ValueKind("int", low=whole, high=whole, unsigned=whole > LARGEST_SIGNED)
        held = pa.scalar(whole, holder(kind))
        return Value(kind, lambda rows: held, text, whole)
    before, _, behind = digits.partition(".")
    before = before.lstrip("0")
    if len(before) + len(behind) > 65 or len(behind) > 30:
        raise Refused(text, "a DECIMAL has at most 65 digits, 30 of them behind the point")
    plain = f"{before or '0'}.{behind}" if behind else before or "0"
    fixed = pa.scalar(plain, pa.string())
    return Value(ValueKind("decimal", whole=len(before), scale=len(behind)), lambda rows: fixed, text, plain)


def null_of(rows: ImageRows) -> Any:
    """Return NULL for each row, as a condition."""
    return pa.nulls(rows.count, pa.bool_())
