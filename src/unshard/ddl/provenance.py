"""Refuses DDL on tables whose rows hold values of a column mapping or of an extracted column.

| statement | error |
|---|---|
| changes, renames or drops a column that a column mapping reads or writes | SYNC-017 |
| renames a table so that its rows would get other values of this kind (another number, another text) | SYNC-018 |
| moves rows by EXCHANGE or CONVERT between tables with other values of this kind, and runs on the target | SYNC-018 |

The rows on the target keep their old values, and no statement of the log rewrites them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from unshard.ddl.rewrite import renames
from unshard.ddl.statement import Ddl, StatementKind
from unshard.ddl.tracker import Changes
from unshard.errors import SyncError
from unshard.model.table import Column, Table, TableName
from unshard.mysql.types import INTEGERS


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one source table: the values in its rows on the target that depend on where the rows come from.

    Args:
        columns: the source's columns that a column mapping reads or writes.
        carried: the mapping's mark, and the extracted columns with their values.
        more: whether the target's table has columns that the source's lacks; such a table is made by hand.
    """

    columns: tuple[str, ...] = ()
    carried: tuple[object, ...] = ()
    more: bool = False


MarksOf = Callable[[TableName], Marks]
_WIDTH = re.compile(r"\(\d+\)")


def unmarked(_: TableName) -> Marks:
    """Return `Marks` without any mark: a `MarksOf` for rules that mark nothing."""
    return Marks()


def check_marks(
    statements: Iterable[Ddl],
    changes: Changes,
    before: Callable[[TableName], Table | None],
    marks: MarksOf,
    allows: Callable[[TableName], bool],
) -> None:
    """Raise SyncError SYNC-017 and SYNC-018, ConfigError CONFIG-007, CONFIG-008 and CONFIG-016 for a new name.

    `changes` are those of all the statements; `before` returns a table as it is before them.
    """
    last: Ddl | None = None
    origin: dict[TableName, TableName] = {}
    for ddl in statements:
        last = ddl
        for old, new in renames(ddl):
            origin[new] = origin.pop(old, old)
    if last is None:
        return
    for name, after in changes.items():
        first = origin.get(name, name)
        found = before(first)
        if after is None or not name.table or found is None or not allows(name):
            continue
        if first != name and marks(first).carried != marks(name).carried:
            where = replace(last.context.where, table=str(first))
            raise SyncError("SYNC-018", where, last.text[:500], {"name": str(name)})
        for column in marks(name).columns:
            if _column(found, column) != _column(after, column):
                where = replace(last.context.where, table=str(name))
                raise SyncError("SYNC-017", where, last.text[:500], {"column": column})


def check_moved_rows(statements: Iterable[Ddl], marks: MarksOf) -> None:
    """Raise SyncError SYNC-018 for an EXCHANGE PARTITION, or a CONVERT of a partition or table, between other marks.

    `statements` are those that the log has for the target. Raises what `marks` raises.
    """
    for ddl in statements:
        if ddl.kind is not StatementKind.ALTER_TABLE or renames(ddl):
            continue
        name, *others = ddl.tables
        for other in others:
            if marks(name).carried != marks(other).carried:
                where = replace(ddl.context.where, table=str(name))
                raise SyncError("SYNC-018", where, ddl.text[:500], {"name": str(other)})


def _column(table: Table, name: str) -> Column | None:
    """Return the column without an integer's width: MariaDB shows it, MySQL does not, and `after` is the target's."""
    found = next((column for column in table.columns if column.name.lower() == name.lower()), None)
    if found is None or found.type not in INTEGERS:
        return found
    return replace(found, definition=_WIDTH.sub("", found.definition))
