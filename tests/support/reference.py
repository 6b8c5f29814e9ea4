"""The reference database: tables as dicts, against which every step that rewrites changes is tested.

It does what a server does with row changes, in the plainest way. The result of compact, causality, merge or safe mode
for a list of changes must leave it with the same rows as the list itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from unshard.model.change import Op
from unshard.model.table import Table, TableName

Row = tuple[Any, ...]


class ConflictError(AssertionError):
    """A change that a server would refuse, or that would affect no row."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change: INSERT has `after`, DELETE has `before`, UPDATE has both; whole rows, in table order."""

    table: TableName
    op: Op
    before: Row | None = None
    after: Row | None = None


@dataclass(slots=True)
class ReferenceTable:
    """The rows of one table as a multiset. Values compare exactly, so case and trailing blanks matter."""

    table: Table
    rows: Counter[Row] = field(default_factory=Counter)

    def insert(self, row: Row) -> None:
        """Insert a row. Raises ConflictError on a duplicate in any unique key; NULLs never clash."""
        clash = self._clashing(row)
        if clash:
            raise ConflictError(f"{self.table.name}: {row} meets {clash[0]} on a unique key")
        self.rows[row] += 1

    def delete(self, row: Row, *, missing_ok: bool = False) -> None:
        """Remove the row with the same identity, or with equal values if the table has no identity."""
        found = self._find(row)
        if found is not None:
            self._take(found)
        elif not missing_ok:
            raise ConflictError(f"{self.table.name}: there is no {row} to delete")

    def update(self, before: Row, after: Row) -> None:
        """Change one row. Raises ConflictError if it does not exist or the new row clashes with another."""
        self.delete(before)
        self.insert(after)

    def replace(self, row: Row) -> None:
        """REPLACE: every row that clashes in any unique key is removed first."""
        for clash in self._clashing(row):
            self._take(clash)
        self.rows[row] += 1

    def _take(self, row: Row) -> None:
        self.rows[row] -= 1
        if not self.rows[row]:
            del self.rows[row]

    def _find(self, row: Row) -> Row | None:
        identity = self.table.identity
        if not identity:
            return row if self.rows[row] > 0 else None
        wanted = self._values(row, identity)
        return next((other for other in self.rows if self._values(other, identity) == wanted), None)

    def _clashing(self, row: Row) -> list[Row]:
        return [
            other for other in self.rows if any(self._same(row, other, key.columns) for key in self.table.unique_keys)
        ]

    def _same(self, one: Row, other: Row, columns: tuple[str, ...]) -> bool:
        values = self._values(one, columns)
        return None not in values and values == self._values(other, columns)

    def _values(self, row: Row, columns: tuple[str, ...]) -> Row:
        names = [column.name for column in self.table.columns]
        return tuple(row[names.index(column)] for column in columns)


class ReferenceDatabase:
    """Several reference tables, changed one row change at a time."""

    def __init__(self, *tables: Table) -> None:
        self.tables = {table.name: ReferenceTable(table) for table in tables}

    def apply(self, *changes: RowChange, missing_ok: bool = False) -> None:
        """Apply changes in order. `missing_ok` allows a DELETE without a row, as safe mode needs.

        Raises ConflictError.
        """
        for change in changes:
            table = self.tables[change.table]
            before, after = change.before, change.after
            if change.op == Op.INSERT and after is not None:
                table.insert(after)
            elif change.op == Op.DELETE and before is not None:
                table.delete(before, missing_ok=missing_ok)
            elif change.op == Op.UPDATE and before is not None and after is not None:
                table.update(before, after)
            else:
                raise ValueError(f"not a whole change: {change}")

    @property
    def rows(self) -> dict[TableName, dict[Row, int]]:
        """All rows with the number of times that each exists, by which two databases are compared."""
        return {name: dict(table.rows) for name, table in self.tables.items()}
