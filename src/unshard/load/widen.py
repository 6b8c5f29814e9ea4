"""The target's table takes the rows of copies that differ: it gets every column that one of them has.

| the target's table, beside a copy | what is done |
|---|---|
| lacks a column that the copy got by ADD COLUMN | it gets it, as the copy has it |
| lacks another one: a copy of before has lost it | it gets it, with NULL let in, until that DROP is run |
| has it, and the copy's is wider of the same kind | it gets that type |
| has it NOT NULL, and the copy's is not | NULL is let in |
| has one that the copy has lost by DROP COLUMN | it stays until that DROP is run; NULL is let in |
| has one that the copy gets later | it has to be NULL or a constant for the rows of this copy, as ADD COLUMN fills it |

Everything else stops the task (SHARD-029). Columns of text need one character set.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from unshard.errors import ShardError, Where
from unshard.model.shape import misfits
from unshard.model.table import Column, Table, TableName, quote_name
from unshard.mysql.connection import rows
from unshard.mysql.structure import constant_defaults
from unshard.schema.lex import tokens

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")


@dataclass(frozen=True, slots=True)
class Side:
    """A table, and by its columns what an ALTER TABLE of the target says of each behind its name."""

    table: Table
    lines: Mapping[str, str]

    def line(self, column: Column) -> str:
        return f"{quote_name(column.name)} {self.lines[column.name]}"

    def fills_alike(self, column: Column) -> bool:
        """Whether a row that is written without the column gets what ADD COLUMN gives it later."""
        renewed = "ON UPDATE" in self.lines[column.name].upper()
        return column.name in constant_defaults(self.table) and not renewed and not column.auto_increment


def widen(
    connection: Any, there: Side, copy: Side, added: Collection[str], dropped: Collection[str], where: Where
) -> bool:
    """Let the target's table take the rows of a copy, as it is `there`; whether it was changed.

    `copy` has the columns of the target's that names fill too. `added`, `dropped`: the columns, in lower case, that
    the copy has got and lost by its DDL. Raises ShardError SHARD-029.
    """
    mine = {column.name.lower(): column for column in copy.table.columns if not column.generated}
    theirs = {column.name.lower(): column for column in there.table.columns}
    changes, faults = [], []
    for name, column in mine.items():
        other = theirs.get(name)
        if other is None:
            line = copy.line(column)
            changes.append(f"ADD COLUMN {line if name in added else _nullable(line)}")
            faults += [_filled(column)] if name in added and not copy.fills_alike(column) else []
        elif column.charset != other.charset and other.charset != "utf8mb4":
            faults.append(f"column {column.name} is {column.charset}, in the target {other.charset}")
        elif _is_wider(column, other):
            line = copy.line(column)
            changes.append(f"MODIFY COLUMN {line if not other.nullable else _nullable(line)}")
        elif column.nullable and not other.nullable:
            changes.append(f"MODIFY COLUMN {_nullable(there.line(other))}")
    for name, other in theirs.items():
        if name in mine or other.generated or any(one.name.lower() == name for one in copy.table.columns):
            continue
        if name in dropped:
            needs = not (other.nullable or other.has_default)
            changes += [f"MODIFY COLUMN {_nullable(there.line(other))}"] if needs else []
        elif not there.fills_alike(other):
            faults.append(_filled(other))
    target = there.table.name
    if faults:
        raise ShardError("SHARD-029", where, values={"target": str(target), "why": "; ".join(faults)})
    if changes:
        rows(connection, f"ALTER TABLE {target.quoted} {', '.join(changes)}")
    return bool(changes)


def _filled(column: Column) -> str:
    return f"column {column.name} {column.definition} can't be filled in rows that get it later"


def _nullable(line: str) -> str:
    """The same with NULL let in."""
    found = tokens(line)
    for one, other in pairwise(found):
        if (one.word, other.word) == ("NOT", "NULL"):
            return line[: one.start] + line[other.start :]
    return line


def _is_wider(column: Column, other: Column) -> bool:
    """Whether it holds what the other one does, and more, of the same kind."""
    if column.type in _INTEGERS and other.type in _INTEGERS:
        more = _INTEGERS.index(column.type) > _INTEGERS.index(other.type)
        return more and column.unsigned == other.unsigned
    if column.type == "decimal" == other.type:
        return _exceeds(*((c.precision - c.scale, c.scale, not c.unsigned) for c in (column, other)))
    if column.members:
        return column.type == other.type and set(column.members) > set(other.members)
    if column.type != other.type:
        back = not _unfit(column, other)
        return (
            column.charset == other.charset and not _unfit(other, column) and (not back or column.length > other.length)
        )
    return _exceeds(*((c.length, c.precision, c.fsp) for c in (column, other)))


def _exceeds(sizes: Sequence[int], others: Sequence[int]) -> bool:
    return sizes != others and all(one >= other for one, other in zip(sizes, others, strict=True))


def _unfit(column: Column, other: Column) -> list[str]:
    name = TableName("", "")
    return misfits(Table(name, (column,)), Table(name, (other,)))
