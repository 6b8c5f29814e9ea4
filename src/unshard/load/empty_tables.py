"""Drops empty tables that an earlier attempt of the task has created, so that they can be created again.

A table is renamed first. On every server RENAME ends the transactions that write into the table. So the table can't get
a row between the check that it is empty and the DROP. A table that has a row after all gets its name back.

| the process ends | then |
|---|---|
| before the RENAME | nothing was done |
| after the RENAME | the next attempt gives the table its name back, if it has a row; else it drops it |
| after the DROP | the next attempt creates the table |
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from unshard.load.checkpoint import LoadTables
from unshard.load.creation import named_lock
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.mysql.structure import families
from unshard.target.filled import FilledTables, with_rows

_THERE = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"


@dataclass(frozen=True, slots=True)
class EmptyTables:
    """The empty tables that a task created itself.

    Statements run on the given connection; driver errors are raised unchanged.
    """

    records: FilledTables

    def among(self, connection: Any, names: Iterable[TableName]) -> frozenset[TableName]:
        """Return the tables that the task has made and that hold no row, unless foreign keys connect them.

        None once a source of the task is loaded: statements of its log may have altered them.
        """
        if LoadTables(self.records.schema, self.records.task, "").any_finished(connection):
            return frozenset()
        known = self.records.read(connection)
        made = sorted(name for name in set(names) if name in known and known[name].made)
        empty = set(made).difference(with_rows(connection, made))
        return frozenset(empty.difference(families(connection)) if empty else ())

    def take_away(self, connection: Any, name: TableName) -> bool:
        """Drop the table if it is one of `among`; return whether it was dropped. May run again after any death."""
        aside = self._aside(name)
        with named_lock(connection, f"unshard:{aside}"[:64]):
            self._put_back(connection, name, aside)
            if name not in self.among(connection, (name,)):
                return False
            rows(connection, f"RENAME TABLE {name.quoted} TO {aside.quoted}")
            return not self._put_back(connection, name, aside)

    def put_back(self, connection: Any, names: Iterable[TableName]) -> None:
        """Give tables their names back that a death has left under another one. No table may have these names."""
        known = self.records.read(connection)
        for name in sorted(name for name in set(names) if name in known and known[name].made):
            aside = self._aside(name)
            with named_lock(connection, f"unshard:{aside}"[:64]):
                self._put_back(connection, name, aside)

    def _put_back(self, connection: Any, name: TableName, aside: TableName) -> bool:
        """Give the table its name back, or drop it if it has no row; return whether it has its name back."""
        if not rows(connection, _THERE, (aside.schema, aside.table)):
            return False
        if with_rows(connection, [aside]):
            rows(connection, f"RENAME TABLE {aside.quoted} TO {name.quoted}")
            return True
        rows(connection, f"DROP TABLE {aside.quoted}")
        return False

    def _aside(self, name: TableName) -> TableName:
        """Return the name that the table has in between."""
        mark = f"{zlib.crc32(str(name).encode()):08x}"
        return TableName(self.records.schema, f"{self.records.task}_emptied_{mark}")
