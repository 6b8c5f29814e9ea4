"""The structures with which a task without a copy begins, and those of tables that a copy does not have.

Nobody has recorded the structure that such a source table had at the task's position in the log. There are two that may
be it: the target's, and the source's present one.

| at the start of an incremental task | the table's structure |
|---|---|
| both read row events alike (`binlog.reading`) | the target's |
| they differ, and no statement between the start and now names the table | the source's present one |
| they differ, and a statement does | as for a table that is first met later |

| a table that is first met later | its structure |
|---|---|
| they differ in what the log tells, or only one of them has a column | the target's: else its rows stop the task |
| they differ in what the log need not tell | not known (SYNC-082) |
| an earlier block-allow list of the task left it out | asked for in vain: its rows are missing (SYNC-084) |

The second row of the first table is recorded with the first checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Event
from typing import Any

from unshard.binlog.reading import differences, read_alike
from unshard.ddl.for_tidb import upstream_structure, words_of
from unshard.ddl.renamed_table import renamed, without_columns
from unshard.errors import SyncError, Where
from unshard.log import logger
from unshard.model.position import Position
from unshard.model.table import Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.mysql.structure import read_table, table_names
from unshard.mysql.tidb import is_tidb
from unshard.mysql.types import CHARACTERS
from unshard.schema.definition import Dialect
from unshard.source.snapshot import locate
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.statements.crossings import altered
from unshard.sync.statements.earlier_lists import EarlierLists
from unshard.sync.statements.reader import StatementReader
from unshard.sync.statements.tracked_tables import NOT_COPIED, UNSURE
from unshard.sync.unit import SyncUnit
from unshard.target.checkpoint import Checkpoint, TableCheckpoint
from unshard.transform.source_rules import SourceRules
from unshard.worker.source_facts import answer_of


@dataclass(slots=True)
class FirstStructures:
    """Finds the first structures of one source's tables. Used by the subtask's thread.

    Args:
        rules: the source's rules.
        store: the records in the target, with a connection to it.
        endpoint: the source.
        dialect: the source's.
        there: returns a target table's structure.
        earlier: the block-allow lists by which the source has been followed.
    """

    rules: SourceRules
    store: CheckpointStore
    endpoint: Endpoint = field(repr=False)
    dialect: Dialect
    there: Callable[[TableName], Table | None]
    earlier: EarlierLists
    _alike: frozenset[TableName] = frozenset()

    def begin(self, sync: SyncUnit, start: Checkpoint, stop: Event) -> Checkpoint | None:
        """Return the start of an incremental task, with the structures that only the source has, and has still.

        Reads the log from there to its present end where there are any. None when `stop` came first.
        """
        present, end = answer_of(self.endpoint, self._present)
        read = cache(lambda target: self.store.on_target(lambda connection: read_table(connection, target)))
        known = {name: there for name in present if (there := self._in_target(name, read)) is not None}
        unlike = {name: present[name] for name, there in known.items() if not read_alike(present[name], there)}
        self._alike = frozenset(known.keys() - unlike.keys())
        self.store.drop()
        if not unlike:
            return start
        shown = ", ".join(str(name) for name in sorted(unlike)[:10])
        log = logger("sync", source=self.rules.source)
        words = {"tables": len(unlike), "some_of_them": shown, "begin": str(start.location.position), "end": str(end)}
        log.info("the log is read for statements on tables that differ between source and target", **words)
        may_differ = self._altered(start.location.position, end, sync.statements.reader, sync, stop)
        if may_differ is None:
            return None
        tables = {name: TableCheckpoint(table) for name, table in unlike.items() if not may_differ(name)}
        return replace(start, tables={**tables, **start.tables})

    def of(self, name: TableName) -> Table | None:
        """Return the structure of a table at the present position of the log; None without a target table.

        Raises SyncError SYNC-082 where it can't be known, SYNC-084 where an earlier list left the table out.
        """
        if self.rules.allow.allows(name) and self.earlier.leave_out(name):
            values = {"target": str(self.rules.router.route(name))}
            raise SyncError(NOT_COPIED, Where(self.rules.source, str(name)), values=values)
        there, present = self._both(name)
        found = self._as_upstream(there, present, name)
        if there is None or present is None or name in self._alike:
            return found
        doubts = differences(present, there)
        if found is None:
            own = {column.name.lower() for column in present.columns if column.type in CHARACTERS}
            texts = (column for column in there.columns if column.type in CHARACTERS)
            doubts += [f"the character set of {text.name}" for text in texts if text.name.lower() not in own]
        if doubts:
            values = {"columns": "; ".join(doubts), "target": str(self.rules.router.route(name))}
            raise SyncError(UNSURE, Where(self.rules.source, str(name)), values=values)
        return found

    def presumed(self, name: TableName) -> Table | None:
        """Return as `of`, by the target's structure where it can't be known."""
        return self._as_upstream(*self._both(name), name)

    def _present(self, connection: Any) -> tuple[dict[TableName, Table], Position]:
        """Return the source's tables that are followed, as they are now, and then the end of its log."""
        names = [name for name in table_names(connection) if self.rules.allow.allows(name)]
        found = {name: table for name in names if (table := read_table(connection, name)) is not None}
        return found, locate(connection).position

    @staticmethod
    def _altered(
        begin: Position, end: Position, reader: StatementReader, sync: SyncUnit, stop: Event
    ) -> Callable[[TableName], bool] | None:
        try:
            upstream = sync.store.upstream()
            return altered(begin, end, reader.altering, sync.relay, upstream, sync.source, stop)
        finally:
            sync.store.drop()

    def _both(self, name: TableName) -> tuple[Table | None, Table | None]:
        there = self._in_target(name, self.there)
        present = None
        if there is not None:
            present = answer_of(self.endpoint, lambda connection: read_table(connection, name))
        return there, present

    def _in_target(self, name: TableName, read: Callable[[TableName], Table | None]) -> Table | None:
        found = read(self.rules.router.route(name))
        if found is None:
            return None
        extracted: Collection[str] = [one.column for one in self.rules.router.extracted(name, self.rules.source)]
        return without_columns(found, extracted)

    def _as_upstream(self, there: Table | None, present: Table | None, name: TableName) -> Table | None:
        """Return the target's structure under the source table's name.

        TiDB's structure does not have everything; there the source's present structure adds the rest.
        """
        if there is None:
            return None
        wished = self.rules.collations
        words = self.store.on_target(lambda connection: words_of(connection, wished) if is_tidb(connection) else None)
        if words is None:
            return renamed(there, name)
        return upstream_structure(there, present, name, self.dialect, words)
