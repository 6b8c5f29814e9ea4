"""Refuses safe mode for unique keys whose collation on the target treats more texts as equal than the source's.

Safe mode writes a row by REPLACE, which removes any other row that has an equal value in a unique key. Two rows of the
source may have values that are equal there: one of the rows would be lost without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from unshard.errors import SyncError, Where
from unshard.model.table import Column, Table, TableName
from unshard.mysql.tidb_collations import Difference, same_collation
from unshard.sync.batch.plan import TablePlan


@dataclass(frozen=True, slots=True)
class CoarseKeys:
    """The comparison of unique keys in source and target, which asks each pair of collations once.

    `target` returns a table of the target. `differ` returns the difference of a collation of the source, given with its
    character set, from a collation of the target.
    """

    target: Callable[[TableName], Table | None]
    differ: Callable[[tuple[str, str], str], Difference | None]
    _known: dict[tuple[str, str], Difference | None] = field(default_factory=dict)

    def refuse(self, tables: Iterable[TablePlan], source: str) -> None:
        """Raise SyncError SYNC-077 for a table with such a key."""
        for plan in tables:
            there = self.target(plan.target.name) or Table(plan.target.name, ())
            for name in dict.fromkeys(name for key in there.unique_keys for name in key.columns):
                mine, its = _text(plan.table, name), _text(there, name)
                equal = self._equal(mine, its) if mine is not None and its is not None else ()
                if equal:
                    values = {"target": str(plan.target.name), "column": name, "equal": ", ".join(equal[:3])}
                    raise SyncError("SYNC-077", Where(source, str(plan.table.name)), values=values)

    def _equal(self, mine: Column, its: Column) -> tuple[str, ...]:
        """Return examples of texts that are equal for the target's column only."""
        assert mine.collation is not None
        assert mine.charset is not None
        assert its.collation is not None
        pair = (mine.collation, its.collation)
        if same_collation(*pair):
            return ()
        if pair not in self._known:
            self._known[pair] = self.differ((mine.collation, mine.charset), its.collation)
        found = self._known[pair]
        return found.equal if found is not None else ()


def _text(table: Table, name: str) -> Column | None:
    """Return a column of text with a collation; None if there is none of that name."""
    for column in table.columns:
        if column.name.lower() == (name or "").lower() and column.collation is not None and column.charset is not None:
            return column
    return None
