"""Exact arithmetic in expressions. An operation that may exceed the server's range is refused, so that no row fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from unshard.transform.expressions.compare import as_decimal, digits
from unshard.transform.expressions.moments import PART
from unshard.transform.expressions.parse import Refused
from unshard.transform.expressions.values import (
    LARGEST_SIGNED,
    ImageRows,
    Value,
    ValueKind,
    as_integer,
    holder,
    integer,
)

OPERATORS = frozenset({"+", "-", "*", "%", "div", "mod", "neg", "abs"})
_KERNELS = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_DECIMAL_DIGITS, _DECIMAL_SCALE = 65, 30


def calculate(op: str, values: Sequence[Value], text: str) -> Value:
    """Return a calculation with one or two values. Raises Refused."""
    if len(values) != (1 if op in ("neg", "abs") else 2):
        raise Refused(text, f"{op.upper()} has another number of arguments")
    names = {value.kind.name for value in values}
    if op == "neg" and values[0].constant is not None and names <= {"int", "decimal", "real"}:
        return _negative(values[0], text)
    if names == {"int"}:
        return _of_integers("%" if op == "mod" else op, values, text)
    if names <= {"int", "decimal"} and op in ("+", "-", "*"):
        return _of_decimals(op, values[0], values[1], text)
    kinds = " and ".join(value.kind.type or value.kind.name.upper() for value in values)
    raise Refused(text, f"no calculating with {kinds} here; compare the column itself with a literal")


def _negative(value: Value, text: str) -> Value:
    if value.kind.name == "int":
        number = -value.constant
        if number < -LARGEST_SIGNED - 1:
            raise Refused(text, "this is below the range of BIGINT")
        fixed = pa.scalar(number, pa.int64())
        return Value(ValueKind("int", low=number, high=number), lambda rows: fixed, text, number)
    if value.kind.name == "real":
        real = pa.scalar(-value.constant, pa.float64())
        return Value(value.kind, lambda rows: real, text, real.as_py())
    plain = value.constant.removeprefix("-") if value.constant.startswith("-") else f"-{value.constant}"
    exact = pa.scalar(plain, pa.string())
    return Value(value.kind, lambda rows: exact, text, plain)


def _of_integers(op: str, values: Sequence[Value], text: str) -> Value:
    one = values[0].kind
    if op in ("neg", "abs"):
        if one.type == PART:
            raise Refused(text, "no calculating with parts of a date: MySQL has them UNSIGNED, MariaDB not")
        low, high = -one.high, -one.low
        if op == "abs":
            low, high = 0, max(abs(one.low), abs(one.high))
        kernel = pc.negate if op == "neg" else pc.abs
        if op == "abs" and one.unsigned:
            return values[0]
        if one.unsigned:
            raise Refused(text, "the negative of an UNSIGNED column; move it to the other side")
        run = as_integer(values[0])
        return integer(text, low, high, False, lambda rows: kernel(run(rows)))
    other = values[1].kind
    unsigned = one.unsigned or other.unsigned
    if PART in (one.type, other.type):
        raise Refused(text, "no calculating with parts of a date: MySQL has them UNSIGNED, MariaDB not")
    if op in ("%", "div"):
        return _divided(op, values[0], values[1], text)
    ends = _ends(op, one, other)
    if op == "-" and unsigned and ends[1] > LARGEST_SIGNED:
        raise Refused(text, "whether it leaves the range of BIGINT depends on sql_mode; move a part to the other side")
    left, right = _alike(values[0], values[1], text, *ends)
    kernel = _KERNELS[op]
    return integer(text, *ends, unsigned, lambda rows: kernel(left(rows), right(rows)))


def _ends(op: str, one: ValueKind, other: ValueKind) -> tuple[int, int]:
    if op == "+":
        return one.low + other.low, one.high + other.high
    if op == "-":
        return one.low - other.high, one.high - other.low
    products = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    return min(products), max(products)


def _alike(
    left: Value, right: Value, text: str, low: int = 0, high: int = 0
) -> tuple[Callable[[ImageRows], Any], Callable[[ImageRows], Any]]:
    """Return both in the same 64-bit type, which holds the result too."""
    least = min(left.kind.low, right.kind.low, low)
    wide = max(left.kind.high, right.kind.high, high) > LARGEST_SIGNED
    if wide and least < 0:
        raise Refused(text, "it may leave the range of BIGINT; move a part to the other side")
    to = pa.uint64() if wide else pa.int64()
    return as_integer(left, to), as_integer(right, to)


def _divided(op: str, left: Value, right: Value, text: str) -> Value:
    """Return DIV or MOD: towards zero, the remainder with the sign of the left; NULL where the divisor is 0."""
    one, other = _alike(left, right, text)
    least = -LARGEST_SIGNED - 1
    if left.kind.low == least and other is not None and right.kind.low <= -1 <= right.kind.high:
        raise Refused(text, "the smallest BIGINT by -1 leaves the range")
    most = max(abs(left.kind.low), abs(left.kind.high))
    if op == "%":
        most = min(most, max(abs(right.kind.low), abs(right.kind.high)))
    low = 0 if left.kind.low >= 0 and (op == "%" or right.kind.low >= 0) else -most
    unsigned = left.kind.unsigned if op == "%" else left.kind.unsigned or right.kind.unsigned

    def run(rows: ImageRows) -> Any:
        dividend, divisor = one(rows), other(rows)
        zero = pc.equal(divisor, pa.scalar(0, divisor.type))
        safe = pc.if_else(zero, pa.scalar(None, divisor.type), divisor)
        quotient = pc.divide(dividend, safe)
        return quotient if op == "div" else pc.subtract(dividend, pc.multiply(quotient, safe))

    return integer(text, low, most, unsigned, run)


def _of_decimals(op: str, left: Value, right: Value, text: str) -> Value:
    one, other = left.kind, right.kind
    scale = one.scale + other.scale if op == "*" else max(one.scale, other.scale)
    whole = digits(one) + digits(other) if op == "*" else max(digits(one), digits(other)) + 1
    if whole + scale >= _DECIMAL_DIGITS or scale > _DECIMAL_SCALE:
        raise Refused(text, "the result may have more digits than a DECIMAL; write fewer behind the point")
    sides = []
    for value in (left, right):
        own = value.kind.scale if op == "*" else scale
        sides.append(as_decimal(value, own, max(digits(value.kind), 1)))
    first, second = sides
    kernel, to = _KERNELS[op], pa.decimal256(76, scale)
    return Value(
        ValueKind("decimal", whole=whole, scale=scale),
        lambda rows: kernel(first(rows), second(rows)).cast(to),
        text,
    )


def choose(tests: Sequence[Callable[[ImageRows], Any]], values: Sequence[Value], text: str) -> Value:
    """Return the value of the first test that is true, else the last; without tests the first that isn't NULL."""
    known = [value for value in values if value.kind.name != "null"]
    if not known or any(value.kind.name != "int" or value.kind.type == PART for value in known):
        raise Refused(text, "only whole numbers and conditions are chosen from; write the cases with AND and OR")
    low, high = min(value.kind.low for value in known), max(value.kind.high for value in known)
    unsigned = {value.kind.unsigned for value in known if value.constant is None}
    if (low < 0 and high > LARGEST_SIGNED) or len(unsigned) > 1:
        raise Refused(text, "signed and unsigned numbers in one choice; write the cases with AND and OR")
    to = holder(ValueKind("int", low=low, high=high))
    runs = [_of_any(value, to) for value in values]

    def run(rows: ImageRows) -> Any:
        if not tests:
            return pc.coalesce(*(one(rows) for one in runs))
        found = runs[-1](rows)
        for test, one in zip(reversed(tests), reversed(runs[:-1]), strict=True):
            found = pc.if_else(pc.fill_null(test(rows), False), one(rows), found)
        return found

    return integer(text, low, high, True in unsigned, run)


def _of_any(value: Value, to: pa.DataType) -> Callable[[ImageRows], Any]:
    if value.kind.name == "null":
        return lambda rows: pa.scalar(None, to)
    return as_integer(value, to)
