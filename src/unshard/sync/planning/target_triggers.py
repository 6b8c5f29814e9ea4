"""Looks for triggers on a target table whenever its structure is read: they may be newer than the task's start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from unshard.errors import SyncError, Where
from unshard.log import logger
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.mysql.tidb import is_tidb
from unshard.mysql.triggers import triggers_on


@dataclass(frozen=True, slots=True)
class TargetTriggers:
    """The check for triggers on the tables that a source is written to.

    `written` returns all of these tables. With `stops`, a trigger that may change or write rows of the task stops it.
    Other triggers are logged.
    """

    source: str
    written: Callable[[], Iterable[TableName]]
    stops: bool

    def read(self, connection: Any, name: TableName) -> Table | None:
        """Return the structure of a target table; None if there is no such table. Raises SyncError SYNC-076."""
        table = read_table(connection, name)
        if table is not None and not is_tidb(connection):
            self._look(connection, name)
        return table

    def _look(self, connection: Any, name: TableName) -> None:
        for trigger in triggers_on(connection, name):
            does = trigger.does(self.written())
            if does and self.stops:
                values = {"trigger": trigger.name.quoted, "target": str(name), "does": does}
                raise SyncError("SYNC-076", Where(source=self.source, table=str(name)), values=values)
            words = {"table": str(name), "trigger": str(trigger.name), "does": does or "runs for each row"}
            logger("sync", source=self.source).warning("the target's table has a trigger", **words)
