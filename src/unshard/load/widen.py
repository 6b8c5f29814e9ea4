"""Alters the target's table to accept the copies of shards whose structures differ: it gets every column of any copy.

A copy is a source table as it was dumped.

| the target's table, compared with a copy | what is done |
|---|---|
| lacks a column that the copy got by ADD COLUMN | it gets the column, as the copy has it |
| lacks another column: an earlier copy has lost it | it gets the column, nullable, until that DROP is run |
| has it, and the copy's is wider of the same kind | it gets that type |
| has it NOT NULL, and the copy's is not | it becomes nullable |
| has one that the copy has lost by DROP COLUMN | it stays until that DROP is run, nullable |
| has one that the copy gets later | it has to be NULL or a constant for the rows of this copy, as ADD COLUMN fills it |

Everything else stops the task (SHARD-029). Text columns need one character set.
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
from unshard.mysql.defaults import constant_defaults
from unshard.schema.lex import tokens

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")


@dataclass(frozen=True, slots=True)
class Side:
    """A table, with the definition of each column as an ALTER TABLE of the target writes it after the column's name."""

    table: Table
    lines: Mapping[str, str]

    def line(self, column: Column) -> str:
        """Return a column's name and definition, as ALTER TABLE takes them."""
        return f"{quote_name(column.name)} {self.lines[column.name]}"

    def fills_alike(self, column: Column) -> bool:
        """Return whether a row that is written without the column gets the value that ADD COLUMN gives it later."""
        renewed = "ON UPDATE" in self.lines[column.name].upper()
        return column.name in constant_defaults(self.table) and not renewed and not column.auto_increment


def widen(
    connection: Any, there: Side, copy: Side, added: Collection[str], dropped: Collection[str], where: Where
) -> bool:
    """Alter the target's table `there` to take the rows of a copy; return whether it was changed.

    `copy` includes the target's extracted columns. `added`, `dropped`: the columns, in lower case, that the copy has
    got and lost by its DDL. Raises ShardError SHARD-029.
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
        elif unlike := _other_charset(column, other):
            faults += unlike
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
    return _alter(connection, there.table.name, changes, faults, where)


def take_all(connection: Any, there: Side, joined: Side, where: Where) -> bool:
    """Alter the target's table `there` to take what the join of all shards does; return whether it was changed.

    Keys have a statement of their own: TiDB adds no key over a column that the same statement adds or alters (errors
    1072 and 8200). Safe to run again: a column or key that it has already stays as it is. Raises ShardError SHARD-029.
    """
    theirs = {column.name.lower(): column for column in there.table.columns}
    defaults, own_defaults = (constant_defaults(side.table) for side in (there, joined))
    changes, faults = [], []
    for column in joined.table.columns:
        other = theirs.get(column.name.lower())
        if other is None:
            changes.append(f"ADD COLUMN {joined.line(column)}")
        elif unlike := _other_charset(column, other):
            faults += unlike
        elif (
            _is_wider(column, other)
            or (column.nullable and not other.nullable)
            or (column.name in own_defaults and defaults.get(other.name) != own_defaults[column.name])
        ):
            changes.append(f"MODIFY COLUMN {joined.line(column)}")
    keys = {index.name.lower() for index in there.table.indexes}
    lines = (line.strip().rstrip(",") for line in joined.table.create_sql.splitlines())
    added = [f"ADD {line}" for line in lines if line.startswith("KEY ") and tokens(line)[1].value.lower() not in keys]
    altered = _alter(connection, there.table.name, changes, faults, where)
    return _alter(connection, there.table.name, added, (), where) or altered


def _alter(connection: Any, target: TableName, changes: Sequence[str], faults: Sequence[str], where: Where) -> bool:
    """Make the changes, unless there are faults; return whether there was a change to make."""
    if faults:
        raise ShardError("SHARD-029", where, values={"target": str(target), "why": "; ".join(faults)})
    if changes:
        rows(connection, f"ALTER TABLE {target.quoted} {', '.join(changes)}")
    return bool(changes)


def _other_charset(column: Column, other: Column) -> list[str]:
    """Return the fault of a text column whose character set the target's column does not take."""
    if column.charset == other.charset or other.charset == "utf8mb4":
        return []
    return [f"column {column.name} is {column.charset}, in the target {other.charset}"]


def _filled(column: Column) -> str:
    return f"column {column.name} {column.definition} can't be filled in rows that get it later"


def _nullable(line: str) -> str:
    """Return the same definition without NOT NULL."""
    found = tokens(line)
    for one, other in pairwise(found):
        if (one.word, other.word) == ("NOT", "NULL"):
            return line[: one.start] + line[other.start :]
    return line


def _is_wider(column: Column, other: Column) -> bool:
    """Return whether the column holds all values of the other, and more, of the same kind."""
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
