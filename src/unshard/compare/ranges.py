"""Key ranges of a target table, and what they are in each of its source tables. SQL text and numbers, no server.

A range is `lower < key <= upper` over the leading columns of the target's key. Its bounds are SQL literals of the
target's values. In a source table a column has its own name, `partition id` shifts the bounds of its column,
and an extracted column is a literal. So each row of a source table is in one range at least, whatever order its server
has, and in just one where both servers have the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.kernels.literals import render
from unshard.model.table import Column, quote_name
from unshard.mysql.tidb_collations import same_collation
from unshard.mysql.types import CHARACTERS, INTEGERS
from unshard.transform.column_mapping import ID_LIMIT

Bound = tuple[str, ...]
_BYTES = frozenset({"binary", "varbinary"})
_NUMBERS = INTEGERS | {"decimal", "year"}
_TIMES = frozenset({"date", "datetime", "timestamp"})
_ORDERED = _NUMBERS | _TIMES | _BYTES | {"char", "varchar"}


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of a table's keys; a bound that is None does not limit that side."""

    lower: Bound | None = None
    upper: Bound | None = None

    def __str__(self) -> str:
        lower = f"{', '.join(self.lower)} <" if self.lower else ""
        upper = f"<= {', '.join(self.upper)}" if self.upper else ""
        return " ".join(part for part in (lower, "key", upper) if part) if lower or upper else "all rows"


def in_order(target: Column, sources: Sequence[Column]) -> bool:
    """Return whether all servers sort the values of these columns in the same order."""
    if target.type not in _ORDERED:
        return False
    if target.type in CHARACTERS:
        same = all(column.collation and same_collation(column.collation, target.collation or "") for column in sources)
        return same and not (target.collation or "").startswith("gbk")
    if target.type in _NUMBERS:
        return all(column.type in _NUMBERS for column in sources)
    return all(column.type == target.type or (column.type in _BYTES and target.type in _BYTES) for column in sources)


def target_condition(table: ComparedTable, part: KeyRange) -> str:
    """Return the range's condition on the target, with the user's condition; empty: all rows."""
    names = [quote_name(name) for name in table.range_key]
    return _joined(between(names, part.lower, part.upper), table.condition)


def shard_condition(table: ComparedTable, shard: ComparedShard, part: KeyRange) -> str | None:
    """Return the range's condition on a source table; None where none of its rows can be in the range.

    Ids that `partition id` does not take are not rows of the table here: the plan has looked for them.
    """
    if _is_beyond(table, shard, part):
        return None
    expressions = [key_expression(shard, name) for name in table.range_key]
    lower, upper = (_shifted(table, shard, bound) for bound in (part.lower, part.upper))
    return _joined(between(expressions, lower, upper), table.condition)


def key_expression(shard: ComparedShard, name: str) -> str:
    """Return the SQL expression for a key column of the target in a statement on the source."""
    constant = next((one for one in shard.constants if one.column.name.lower() == name.lower()), None)
    if constant is not None:
        return bytes(render([constant.values(1)], [b""], b"")[0].as_py()).decode()
    if (mapping := shard.mapping) is not None and mapping.target_column.lower() == name.lower():
        return quote_name(mapping.source_column)
    return quote_name(name)


def bits_of(shard: ComparedShard, name: str) -> int | None:
    """Return the bits that `partition id` sets in values of that target column; None where it is not mapped so."""
    mapping = shard.mapping
    mapped = mapping is not None and not mapping.of_text and mapping.target_column.lower() == name.lower()
    return mapping.source_bits if mapping is not None and mapped else None


def is_text_mapped(shard: ComparedShard, name: str) -> bool:
    """Return whether a text is put before or after the values of that column of the target."""
    mapping = shard.mapping
    return mapping is not None and mapping.of_text and mapping.target_column.lower() == name.lower()


def between(expressions: Sequence[str], lower: Bound | None, upper: Bound | None) -> str:
    """Return `lower < key AND key <= upper` in ORs, of which servers make an index range."""
    parts = []
    if lower is not None:
        parts.append(f"({_compared(expressions, lower, '>', '>')})")
    if upper is not None:
        parts.append(f"({_compared(expressions, upper, '<', '<=')})")
    return " AND ".join(parts)


def bound_statement(table: ComparedTable, shard: ComparedShard | None, lower: Bound | None, rows: int) -> str | None:
    """Return a query for the key `rows` rows after `lower`, on the target or on a source table; None: there is none."""
    part = KeyRange(lower)
    if shard is None:
        name, names, condition = table.name, [quote_name(one) for one in table.range_key], target_condition(table, part)
        columns = [table.read.column(one) for one in table.range_key]
    else:
        found = shard_condition(table, shard, part)
        if found is None:
            return None
        name, condition = shard.table.name, _joined(found, shard.where)
        names = [key_expression(shard, one) for one in table.range_key]
        columns = [table.read.column(one) for one in table.range_key]
    printed = ", ".join(
        f"HEX({one})" if c.type in _BYTES else f"CAST({one} AS CHAR)" for one, c in zip(names, columns, strict=True)
    )
    order = ", ".join(one for one in names if one.startswith("`")) or "1"
    where = f" WHERE {condition}" if condition else ""
    return f"SELECT {printed} FROM {name.quoted}{where} ORDER BY {order} LIMIT {rows - 1}, 1"


def bound_of(table: ComparedTable, shard: ComparedShard | None, row: Sequence[object]) -> Bound:
    """Return the bound that such a query found, in values of the target."""
    found = []
    for name, value in zip(table.range_key, row, strict=True):
        text = value.decode() if isinstance(value, bytes) else str(value)
        bits = bits_of(shard, name) if shard is not None else None
        found.append(str(int(text) | bits) if bits is not None else _literal(table.read.column(name), text))
    return tuple(found)


def _is_beyond(table: ComparedTable, shard: ComparedShard, part: KeyRange) -> bool:
    """Return whether all ids of the source table lie outside of the range."""
    bits = bits_of(shard, table.range_key[0]) if table.range_key else None
    if bits is None:
        return False
    below = part.upper is not None and int(part.upper[0]) < bits
    return below or (part.lower is not None and int(part.lower[0]) > bits + ID_LIMIT)


def _shifted(table: ComparedTable, shard: ComparedShard, bound: Bound | None) -> Bound | None:
    if bound is None:
        return None
    bits = [bits_of(shard, name) for name in table.range_key]
    return tuple(value if shift is None else str(int(value) - shift) for value, shift in zip(bound, bits, strict=True))


def _compared(expressions: Sequence[str], bound: Bound, sign: str, last: str) -> str:
    """Return `a > 1 OR (a = 1 AND b > 2)`, with `last` as the sign of the last column."""
    terms = []
    for place, (expression, value) in enumerate(zip(expressions, bound, strict=True)):
        equal = [f"{one} = {its}" for one, its in zip(expressions[:place], bound[:place], strict=True)]
        own = f"{expression} {last if place == len(bound) - 1 else sign} {value}"
        terms.append(f"({' AND '.join([*equal, own])})" if equal else own)
    return " OR ".join(terms)


def _literal(column: Column, text: str) -> str:
    if column.type in _BYTES:
        return f"x'{text}'"
    if column.type in _NUMBERS:
        return text
    return bytes(render([pa.array([text], pa.string())], [b""], b"")[0].as_py()).decode()


def _joined(*conditions: str) -> str:
    return " AND ".join(f"({one})" for one in conditions if one)
