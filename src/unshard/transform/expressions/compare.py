"""Compares two values by the server's rules of type conversion; a comparison with an uncertain result is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from unshard.transform.expressions import texts
from unshard.transform.expressions.moments import Clock, moment
from unshard.transform.expressions.parse import Refused
from unshard.transform.expressions.values import (
    EXACT,
    ImageRows,
    Value,
    ValueKind,
    as_integer,
    condition,
    holder,
    null_of,
)

Run = Callable[[ImageRows], Any]
_KERNELS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,14})")
_TEMPORAL = frozenset({"date", "datetime", "timestamp"})
_WHERE_DOUBLE = "the server compares the two as DOUBLE"


def compare(sign: str, left: Value, right: Value, text: str, clock: Clock) -> Value:
    """Return `left sign right`. Raises Refused where the answer would not surely be the server's."""
    if left.kind.name == "null" or right.kind.name == "null":
        if sign == "<=>":
            other = right if left.kind.name == "null" else left
            run = other.run
            return condition(text, lambda rows: pc.is_null(run(rows)))
        return condition(text, null_of)
    if left.constant is not None and right.constant is None:
        left, right, sign = right, left, _TURNED.get(sign, sign)
    if sign == "<=>":
        return condition(text, _null_safe(_comparison("=", left, right, text, clock), left.run, right.run))
    return condition(text, _comparison(sign, left, right, text, clock))


def _null_safe(equal: Run, left: Run, right: Run) -> Run:
    def run(rows: ImageRows) -> Any:
        neither = pc.and_(pc.is_null(left(rows)), pc.is_null(right(rows)))
        return pc.or_(pc.fill_null(equal(rows), False), neither)

    return run


def _comparison(sign: str, left: Value, right: Value, text: str, clock: Clock) -> Run:
    """Return the comparison; if one side is a literal, it is `right`."""
    one, other = left.kind, right.kind
    names = {one.name, other.name}
    if names == {"int"}:
        return _integers(sign, left, right)
    if one.name == "year":
        if other.name != "int" or right.constant is None or not 1901 <= right.constant <= 2155:
            raise Refused(text, "a YEAR is compared with a number from 1901 to 2155 only")
        return _kernel(sign, _cast(left, pa.int64()), _cast(right, pa.int64()))
    if names <= EXACT:
        return _decimals(sign, left, right, text)
    if names <= {"real", "int", "decimal"}:
        return _reals(sign, left, right, text)
    if one.name == "int" and other.name == "text":
        return _integers(sign, left, _as_number(right, text))
    if one.name == "enum" and other.name == "int" and right.constant is not None:
        return _members(sign, left, right, text)
    if one.name in ("text", "enum") and other.name in ("text", "enum"):
        return _texts(sign, left, right, text)
    if one.name == "bytes" and (
        other.name == "bytes" or (isinstance(right.constant, str) and right.constant.isascii())
    ):
        return _kernel(sign, _cast(left, pa.binary()), _cast(right, pa.binary()))
    if one.name in _TEMPORAL:
        return _moments(sign, left, right, text, clock)
    if one.name == "text" and other.name in EXACT | {"real"}:
        raise Refused(text, f"{_WHERE_DOUBLE}; write the number as a text: '{right.text}'")
    kinds = " with ".join(kind.type or kind.name.upper() for kind in (one, other))
    raise Refused(text, f"{kinds} is not compared here; only IS NULL can be asked, or compare another column")


def _kernel(sign: str, left: Run, right: Run) -> Run:
    kernel = _KERNELS[sign]
    return lambda rows: kernel(left(rows), right(rows))


def _cast(value: Value, to: pa.DataType) -> Run:
    run = value.run
    return lambda rows: run(rows).cast(to)


def _integers(sign: str, left: Value, right: Value) -> Run:
    one, other = holder(left.kind), holder(right.kind)
    if one == other:
        return _kernel(sign, as_integer(left), as_integer(right))
    wide = pa.decimal128(20, 0)
    return _kernel(sign, _widened(left, wide), _widened(right, wide))


def _widened(value: Value, to: pa.DataType) -> Run:
    run = as_integer(value)
    return lambda rows: run(rows).cast(to)


def digits(kind: ValueKind) -> int:
    """Return how many digits before the point an exact number may have."""
    return kind.whole if kind.name == "decimal" else max(len(str(abs(kind.low))), len(str(abs(kind.high))))


def as_decimal(value: Value, scale: int, whole: int) -> Run:
    """Return an exact number as a decimal of `whole` digits before the point and `scale` after it."""
    to = pa.decimal256(whole + scale, scale)
    if value.kind.name == "decimal":
        run = value.run
        return lambda rows: run(rows).cast(to)
    whole_numbers = as_integer(value)
    wide = pa.decimal256(20 + scale, scale)
    return lambda rows: whole_numbers(rows).cast(wide).cast(to)


def _decimals(sign: str, left: Value, right: Value, text: str) -> Run:
    scale = max(left.kind.scale, right.kind.scale)
    whole = max(digits(left.kind), digits(right.kind), 1)
    if whole + scale > 76 or scale > 56:
        raise Refused(text, "these have too many digits together; write fewer behind the point")
    return _kernel(sign, as_decimal(left, scale, whole), as_decimal(right, scale, whole))


def _reals(sign: str, left: Value, right: Value, text: str) -> Run:
    if left.kind.name in EXACT and right.constant is not None:
        raise Refused(text, f"{_WHERE_DOUBLE}; write the number without an exponent")
    for value in (left, right):
        if value.kind.name == "decimal" and value.constant is None:
            raise Refused(text, f"{_WHERE_DOUBLE}, which DECIMAL has no exact form in; compare it with a number")
    return _kernel(sign, _real(left), _real(right))


def _real(value: Value) -> Run:
    if value.kind.name == "decimal":
        fixed = pa.scalar(float(value.constant), pa.float64())
        return lambda rows: fixed
    run = value.run
    return lambda rows: pc.cast(run(rows), pa.float64(), safe=False)


def _as_number(value: Value, text: str) -> Value:
    """Return a text beside an integer as a number; with up to 15 digits all of the server's ways give the same."""
    if not isinstance(value.constant, str) or not _INTEGER.fullmatch(value.constant):
        raise Refused(text, f"{_WHERE_DOUBLE}; write a whole number without quotes")
    number = int(value.constant)
    fixed = pa.scalar(number, pa.int64())
    return Value(ValueKind("int", low=number, high=number), lambda rows: fixed, value.text, number)


def _members(sign: str, left: Value, right: Value, text: str) -> Run:
    members = left.kind.members
    if "" in members:
        raise Refused(text, "an ENUM with an empty member has no number in the binlog that tells it from 0")
    run, number = left.run, as_integer(right, pa.int64())
    return _kernel(sign, lambda rows: texts.index_of(run(rows), members), number)


def _texts(sign: str, left: Value, right: Value, text: str) -> Run:
    collation, charset = left.kind.collation or right.kind.collation, left.kind.charset or right.kind.charset
    if not collation:
        raise Refused(text, "two literals; the answer is the same for every row")
    texts.check(charset, collation, text)
    binary = texts.folding(collation) is None
    padded = texts.pads(collation)
    if right.constant is None:
        if right.kind.collation != collation or right.kind.charset != charset or not binary:
            raise Refused(text, f"two columns are compared under one _bin collation; add COLLATE {charset}_bin to both")
    elif right.kind.collation not in ("", collation):
        raise Refused(text, "give both sides the same COLLATE, or only the column")
    if sign in ("=", "<>"):
        return _kernel(sign, _comparable(left, collation), _other(right, collation, charset, text))
    if not binary or charset not in ("utf8mb4", "utf8mb3"):
        raise Refused(
            text, f"the order of {collation} isn't known here; for the order of codes add COLLATE utf8mb4_bin"
        )
    one, other = left.run, right.run
    return lambda rows: texts.ordered(sign, one(rows), other(rows), padded)


def _comparable(value: Value, collation: str) -> Run:
    return lambda rows: texts.comparable(value, collation, rows)


def _other(value: Value, collation: str, charset: str, text: str) -> Run:
    if value.constant is None:
        return _comparable(value, collation)
    fixed = pa.scalar(texts.constant_form(value.constant, collation, charset, text), pa.string())
    return lambda rows: fixed


def _moments(sign: str, left: Value, right: Value, text: str, clock: Clock) -> Run:
    one, other = left.kind, right.kind
    run = left.run
    if isinstance(right.constant, str):
        fixed = pa.scalar(moment(right.constant, one, text, clock), pa.string())
        return _kernel(sign, run, lambda rows: fixed)
    if one.name == "timestamp" or (one.name, one.fsp) != (other.name, other.fsp):
        raise Refused(
            text, "compare it with a text such as '2024-05-01', or with a DATE or DATETIME of the same digits"
        )
    return _kernel(sign, run, right.run)
