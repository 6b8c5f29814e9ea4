"""Compares structures of a table by how they read its row events.

A TABLE_MAP always has the number and the types of the columns, and lengths, digits and fractions: of two structures
that differ in these, one fails to read the events (BINLOG-022). It has the order of the columns, signs, character sets
and members only as far as `binlog_row_metadata` adds them, and a type code may stand for text or for bytes: there the
wrong one of two structures turns a value into another. Pure.
"""

from __future__ import annotations

from unshard.binlog.layout import WIRE
from unshard.model.table import Column, Table
from unshard.mysql import charsets
from unshard.mysql.types import CHARACTERS, INTEGERS

_SIZED = frozenset({"char", "varchar", "binary", "varbinary"})
_DIGITS = frozenset({"decimal", "bit"})
_TIMES = frozenset({"time", "datetime", "timestamp"})


def read_alike(one: Table, other: Table) -> bool:
    """Return whether row events are read in the same way by both structures."""
    return [_form(column) for column in one.columns] == [_form(column) for column in other.columns]


def differences(one: Table, other: Table) -> list[str]:
    """Return, in words, what the log need not tell apart of the columns that both structures have.

    Columns that only one of them has are none of it: their number is in the log.
    """
    there = {column.name.lower(): column for column in other.columns}
    common = [column for column in one.columns if column.name.lower() in there]
    found = [
        f"{column.name} {_shown(column)} or {_shown(there[column.name.lower()])}"
        for column in common
        if _may_be_taken_for(column, there[column.name.lower()])
    ]
    names = [column.name.lower() for column in common]
    order = [name for name in there if name in set(names)]
    if names != order:
        found.append(f"the order {', '.join(names)} or {', '.join(order)}")
    return found


def _form(column: Column) -> tuple[object, ...]:
    kind = column.type
    return (
        column.name.lower(),
        kind,
        column.compressed,
        column.generated,
        column.members,
        column.unsigned if kind in INTEGERS else None,
        _characters(column),
        column.length if kind in _SIZED else 0,
        (column.precision, column.scale) if kind in _DIGITS else (),
        column.fsp if kind in _TIMES else 0,
    )


def _characters(column: Column) -> object:
    """Return how the column's bytes are decoded; None for other types than text."""
    charset = column.charset
    if column.type not in CHARACTERS or charset is None or charset == "binary":
        return None
    try:
        return charsets.decoding(charset)
    except KeyError:  # no rows of it can be read
        return charset


def _may_be_taken_for(one: Column, other: Column) -> bool:
    """Return whether the log may show the same bytes for both columns, with different values."""
    if not WIRE.get(one.type, frozenset()) & WIRE.get(other.type, frozenset()):
        return False
    if one.type in ("enum", "set"):
        count = min(len(one.members), len(other.members))
        return one.members[:count] != other.members[:count]
    if one.type in INTEGERS:
        return one.unsigned != other.unsigned
    text = one.type in CHARACTERS, other.type in CHARACTERS
    if all(text):
        return _characters(one) != _characters(other)
    return one.type != other.type and (any(text) or "vector" in (one.type, other.type))


def _shown(column: Column) -> str:
    return f"{column.definition} {column.charset}" if column.type in CHARACTERS else column.definition
