"""Logs the columns whose values the target stores in another form, before the first row of a table is written.

The check before the start warns of the tables that exist then. A table or column may be added while the log is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from unshard.log import logger
from unshard.model.table import Column, Table, TableName
from unshard.mysql.altered_values import TargetKind, altered
from unshard.sync.batch.plan import TablePlan


@dataclass(frozen=True, slots=True)
class ToldAlterations:
    """The logger of columns whose values the target stores in another form. It logs each column of one source once.

    Used by the sync unit's thread. `target` returns a table of the target. `kind` is called before the first table.
    `converts`: JSON values that JSON text can't express are converted; `clamps`: a TIME beyond the range of the target
    is clamped; else they stop the task, and are not logged here.
    """

    source: str
    target: Callable[[TableName], Table | None]
    kind: Callable[[], TargetKind]
    converts: bool = True
    clamps: bool = False
    _told: set[tuple[TableName, str, str]] = field(default_factory=set)

    def tell(self, plans: Iterable[TablePlan]) -> None:
        """Log what has not been logged yet of these tables."""
        for plan in plans:
            name = plan.table.name
            for effect, columns in self._altered(plan):
                new = [one.name for one in columns if (name, one.name, effect) not in self._told]
                if new:
                    words = {"table": str(name), "columns": ", ".join(new), "effect": effect}
                    logger("sync", source=self.source).warning("values are stored in another form", **words)
                    self._told.update((name, column, effect) for column in new)

    def _altered(self, plan: TablePlan) -> Iterator[tuple[str, list[Column]]]:
        there, kind = self.target(plan.target.name), self.kind()
        return altered(plan.table, there, kind, converts=self.converts, clamps=self.clamps)
