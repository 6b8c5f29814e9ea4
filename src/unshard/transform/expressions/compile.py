"""Compiles an expression for a table: every part is checked and gets its kind before any row is seen.

Only operations whose answer was proven to be the server's are evaluated; all others raise Refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from unshard.model.table import Table
from unshard.transform.expressions import arithmetic, texts
from unshard.transform.expressions.compare import compare
from unshard.transform.expressions.moments import Clock, part_of
from unshard.transform.expressions.parse import COMPARISONS, Node, Refused
from unshard.transform.expressions.values import (
    ImageRows,
    Value,
    ValueKind,
    column_value,
    condition,
    null_of,
    number_value,
)

TEMPORAL = frozenset({"year", "month", "day", "dayofmonth", "hour", "minute", "second"})
KNOWN = (
    "AND OR NOT = <=> <> < <= > >= IS IN BETWEEN LIKE CASE + - * DIV MOD COLLATE IF IFNULL COALESCE NULLIF ABS LEFT"
    " SUBSTRING LENGTH CHAR_LENGTH YEAR MONTH DAY HOUR MINUTE SECOND"
)
_INSTEAD = {
    "lower": "under a collation that ends in _ci the column alone is compared without case",
    "upper": "under a collation that ends in _ci the column alone is compared without case",
    "/": "how many digits a quotient keeps depends on settings; multiply the other side, or use DIV",
    "date": "of a zero date it gives NULL or not, as sql_mode says; compare the column itself: d >= '2024-05-01'",
    "now": "it would give another answer each time; write a fixed date",
    "regexp": "the servers' regular expressions differ; write LIKE",
}


class Unknown(Refused):
    """Raised for a column that the table doesn't have."""


def columns_of(node: Node) -> frozenset[str]:
    """Return the names of its columns, in lower case."""
    own = {node.value.lower()} if node.op == "column" else set()
    return frozenset(own.union(*(columns_of(part) for part in node.args)))


def compile_condition(node: Node, table: Table, clock: Clock) -> Callable[[ImageRows], Any]:
    """Return a function that gives TRUE, FALSE or NULL for each row. Raises Refused."""
    return _Compiler(table, clock).truth(node)


class _Compiler:
    def __init__(self, table: Table, clock: Clock) -> None:
        self._columns = {column.name.lower(): column for column in table.columns}
        self._table, self._clock = table, clock

    def truth(self, node: Node) -> Callable[[ImageRows], Any]:
        """Return a part's truth, as AND, WHEN and the whole expression take it: anything but 0 is true."""
        value = self.value(node)
        run = value.run
        if value.condition or value.kind.name == "null":
            return null_of if value.kind.name == "null" else run
        if value.kind.name in ("int", "decimal", "real", "year"):
            return compare("<>", value, number_value("0", "0"), node.text, self._clock).run
        raise Refused(node.text, "this is no condition; compare it with something")

    def value(self, node: Node) -> Value:
        op, args, text = node.op, node.args, node.text
        if op == "paren":
            return self.value(args[0])
        if op == "column":
            return self._column(node)
        if op == "number":
            return number_value(node.value, text)
        if op == "text":
            fixed = pa.scalar(node.value, pa.string())
            return Value(ValueKind("text"), lambda rows: fixed, text, node.value)
        if op == "bytes":
            raw = pa.scalar(bytes.fromhex(node.value), pa.binary())
            return Value(ValueKind("bytes"), lambda rows: raw, text, raw.as_py())
        if op == "null":
            return Value(ValueKind("null"), null_of, text)
        if op in COMPARISONS:
            return compare(op, self.value(args[0]), self.value(args[1]), text, self._clock)
        if op in ("and", "or", "not"):
            return self._logic(op, [self.truth(part) for part in args], text)
        if op in arithmetic.OPERATORS:
            return arithmetic.calculate(op, [self.value(part) for part in args], text)
        if op in TEMPORAL and len(args) == 1:
            return part_of(op, self.value(args[0]), text)
        found = getattr(self, f"_{_METHODS.get(op, '')}", None) if op in _METHODS else None
        if found is None:
            raise Refused(text, _INSTEAD.get(op, f"{op.upper()} isn't evaluated here. What is: {KNOWN}"))
        value: Value = found(node)
        return value

    def _column(self, node: Node) -> Value:
        column = self._columns.get(node.value.lower())
        if column is None:
            raise Unknown(node.text, f"{self._table.name} has no such column")
        return column_value(column, node.text)

    @staticmethod
    def _logic(op: str, parts: Sequence[Callable[[ImageRows], Any]], text: str) -> Value:
        if op == "not":
            inner = parts[0]
            return condition(text, lambda rows: pc.invert(inner(rows)))
        kernel = pc.and_kleene if op == "and" else pc.or_kleene

        def run(rows: ImageRows) -> Any:
            found = parts[0](rows)
            for part in parts[1:]:
                found = kernel(found, part(rows))
            return found

        return condition(text, run)

    def _is_null(self, node: Node) -> Value:
        inner = node.args[0]
        while inner.op == "paren":
            (inner,) = inner.args
        value = self.value(inner)
        if value.kind.name in ("date", "datetime") and not self._columns.get(inner.value.lower(), _ANY).nullable:
            raise Refused(node.text, "the column is NOT NULL, and the server takes a zero date for NULL here")
        run = value.run
        return condition(node.text, lambda rows: pc.is_null(run(rows)))

    def _is_true(self, node: Node) -> Value:
        inner = self.truth(node.args[0])
        return condition(node.text, lambda rows: pc.fill_null(inner(rows), False))

    def _is_false(self, node: Node) -> Value:
        inner = self.truth(node.args[0])
        return condition(node.text, lambda rows: pc.fill_null(pc.invert(inner(rows)), False))

    def _between(self, node: Node) -> Value:
        value, low, high = (self.value(part) for part in node.args)
        self._one_way(value, (low, high), node.text)
        sides = [compare(">=", value, low, node.text, self._clock), compare("<=", value, high, node.text, self._clock)]
        return self._logic("and", [side.run for side in sides], node.text)

    def _in(self, node: Node) -> Value:
        value, *listed = (self.value(part) for part in node.args)
        self._one_way(value, listed, node.text)
        equal = [compare("=", value, one, node.text, self._clock).run for one in listed]
        return self._logic("or", equal, node.text) if len(equal) > 1 else condition(node.text, equal[0])

    @staticmethod
    def _one_way(value: Value, others: Sequence[Value], text: str) -> None:
        """Refuse a list whose values compare in different ways: IN and BETWEEN may choose one way for all of it."""
        names = {"int" if one.kind.name == "decimal" else one.kind.name for one in others} - {"null"}
        if len(names) > 1 or (value.constant is not None and any(one.constant is None for one in others)):
            raise Refused(text, "write literals of one kind behind a column, or single comparisons with OR")

    def _like(self, node: Node) -> Value:
        value, pattern, *more = (self.value(part) for part in node.args)
        written = [one.constant for one in (pattern, *more)]
        kind = value.kind
        if value.constant is not None or kind.name != "text" or any(not isinstance(one, str) for one in written):
            raise Refused(node.text, "LIKE takes a text column and a 'pattern'")
        texts.check(kind.charset, kind.collation, node.text)
        escape = written[1] if more else ""
        if more and not escape:
            raise Refused(node.text, "ESCAPE takes one ASCII character, such as '|'")
        run = texts.like(value, written[0], escape, kind.collation, kind.charset, node.text)
        return condition(node.text, run)

    def _collate(self, node: Node) -> Value:
        value = self.value(node.args[0])
        if value.kind.name not in ("text", "enum"):
            raise Refused(node.text, "COLLATE goes with texts")
        charset = value.kind.charset or "utf8mb4"
        if node.value.split("_")[0] not in (charset, "utf8" if charset == "utf8mb3" else charset):
            raise Refused(node.text, f"the collation has to be one of {charset}, such as {charset}_bin")
        texts.check(charset, node.value, node.text)
        return replace(value, kind=replace(value.kind, name="text", charset=charset, collation=node.value))

    def _length(self, node: Node) -> Value:
        unit = "bytes" if node.op in ("length", "octet_length") else "characters"
        (value,) = self._arguments(node, 1)
        kind = value.kind
        if value.constant is not None or kind.name not in ("text", "bytes"):
            raise Refused(node.text, "it takes a text or bytes column")
        if kind.name == "text" and unit == "bytes" and kind.charset not in ("utf8mb4", "utf8mb3", "ascii"):
            raise Refused(node.text, f"the column's bytes are of {kind.charset}; write CHAR_LENGTH")
        run, own = value.run, "bytes" if kind.name == "bytes" else unit
        found = ValueKind("int", low=0, high=(1 << 32) - 1)
        return Value(found, lambda rows: texts.lengths(run(rows), own), node.text)

    def _cut(self, node: Node) -> Value:
        """Compile LEFT(text, n), SUBSTRING(text, from, n)."""
        value, *numbers = self._arguments(node, 2, 3)
        places = [one.constant for one in numbers]
        start = 1 if node.op == "left" else places[0]
        span = places[0] if node.op == "left" else places[1] if len(places) > 1 else None
        sound = isinstance(start, int) and start >= 1 and (span is None or (isinstance(span, int) and span >= 0))
        if value.kind.name != "text" or value.constant is not None or not sound or len(places) > 2:
            raise Refused(node.text, "it takes a text column and numbers from 1 on")
        begin, run = int(start) - 1, value.run
        end = None if span is None else begin + int(span)
        if (end or begin) >= 1 << 31:
            raise Refused(node.text, "no text is so long")

        def cut(rows: ImageRows) -> Any:
            return pc.utf8_slice_codeunits(run(rows), start=begin, stop=end)

        return Value(value.kind, cut, node.text)

    def _choice(self, node: Node) -> Value:
        """Compile IF, CASE, IFNULL, COALESCE, NULLIF, of integers or conditions."""
        op, text = node.op, node.text
        parts = list(node.args)
        if op in ("ifnull", "nullif", "if") and len(parts) != (3 if op == "if" else 2):
            raise Refused(text, f"{op.upper()} takes {3 if op == 'if' else 2} arguments")
        if op in ("ifnull", "coalesce"):
            values = [self.value(part) for part in parts]
            return arithmetic.choose([], values, text)
        if op == "nullif":
            same = compare("=", self.value(parts[0]), self.value(parts[1]), text, self._clock)
            nothing = Value(ValueKind("null"), null_of, text)
            return arithmetic.choose([same.run], [nothing, self.value(parts[0])], text)
        *pairs, last = parts
        tests = [self.truth(part) for part in pairs[::2]]
        return arithmetic.choose(tests, [self.value(part) for part in (*pairs[1::2], last)], text)

    def _arguments(self, node: Node, *counts: int) -> list[Value]:
        if len(node.args) not in counts:
            raise Refused(node.text, f"{node.op.upper()} takes {' or '.join(map(str, counts))} argument(s)")
        return [self.value(part) for part in node.args]


class _Any:
    nullable = True


_ANY = _Any()
_METHODS = {
    "is null": "is_null",
    "is true": "is_true",
    "is false": "is_false",
    "between": "between",
    "in": "in",
    "like": "like",
    "collate": "collate",
    **dict.fromkeys(("length", "octet_length", "char_length", "character_length"), "length"),
    **dict.fromkeys(("left", "substring", "substr"), "cut"),
    **dict.fromkeys(("if", "case", "ifnull", "coalesce", "nullif"), "choice"),
}
