"""Validates the rows of the full load, range by range; keys that differ are checked again like changed keys.

Each range is read by one Spark task. Its end is recorded in the target, so that validation continues after it when it
is restarted. Rows that change meanwhile are reported by their batches.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from unshard.compare.executor.chunk import ChunkFinding, ChunkOrder, compare_chunk
from unshard.compare.executor.silent import SILENT
from unshard.compare.pace import FIRST_ROWS, ChunkPace, TableCutter
from unshard.compare.ranges import Bound, KeyRange
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.dump.plan import list_tables
from unshard.errors import UnshardError, disclose
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.retry import retrying
from unshard.run_tasks import RunTasks
from unshard.target.loaded_rows import LoadedTable, list_loaded, move_bound, unfinished
from unshard.target.pending_keys import PendingKey, add_pending
from unshard.target.validation import RUNNING, STOPPED
from unshard.validation.first_look import FirstLook
from unshard.validation.tables import GONE, NO_KEY, ValidatedTables
from unshard.validation.verdicts import Verdicts

RANGE_SECONDS = 0.5
"""Target time of a range: its slot is soon free for the sync."""

MOST_KEYS = 5_000
"""Keys that differ of one range at most; where there are more, the range is cut."""

LAG_SECONDS = 60.0
"""While the sync lags, a range is read as often: most of what it shows would only be under way."""

RETRY_SECONDS = 30.0
"""Pause before a table that could not be read is tried again."""

SILENT_SECONDS = 3600.0
"""The same where a server was silent for a whole statement: it would work for as long again."""

_TOO_MANY = "{count:,} more rows of the full load differ than can be judged: `unshard compare` tells of all"
_BY_VALUE = 1
"""The kind of a key that differs: what it lacks is seen at the next look."""


@dataclass(slots=True)
class LoadedRows:
    """The comparison of loaded rows. Used by the validator's thread.

    `shared`: other sources have rows of the same target tables. `listed`: the tables to compare are on record.
    """

    tables: ValidatedTables
    run: RunTasks
    verdicts: Verdicts
    first: FirstLook
    rows_per_second: int
    shared: bool
    listed: bool
    _paces: dict[TableName, ChunkPace] = field(default_factory=dict)
    _postponed: dict[TableName, float] = field(default_factory=dict)
    _last: float = 0.0
    _over: bool = False

    def look(self, room: int) -> list[PendingKey] | None:
        """Compare the next range. Return the keys that differ; None where there is nothing to do now.

        `room` is for how many keys the judge has room. Raises SourceError, TargetError, EngineError; the table is tried
        again later then.
        """
        if not self.rows_per_second:
            return None
        if not self.listed:
            self._list()
            self.listed = True
        elif self._over or room < MOST_KEYS or not self._is_due():
            return None
        waiting = self.verdicts.on_target(self._unfinished)
        self._over = not waiting
        now = time.monotonic()
        one = next((one for one in waiting if self._postponed.get(one.target, 0.0) <= now), None)
        if one is None:
            return None
        try:
            return self._look_at(one)
        except UnshardError as error:
            pause = SILENT_SECONDS if error.code == SILENT else RETRY_SECONDS
            self._postponed[one.target] = time.monotonic() + pause
            self.tables.forget(one.target)
            if not error.retryable:
                self._tell(one, STOPPED, f"not validated: {error.code}: {error.message}: {error.cause}")
            raise

    def _is_due(self) -> bool:
        return not self.first.lags() or time.monotonic() - self._last >= LAG_SECONDS

    def _unfinished(self, connection: Any) -> list[LoadedTable]:
        return unfinished(connection, self.verdicts.meta, self.verdicts.source)

    def _list(self) -> None:
        """Record all tables that the source has now. A later one has no loaded rows."""
        found: dict[TableName, LoadedTable] = {}
        side = self.tables.side

        def listing() -> None:
            found.clear()
            with session(side.endpoint, "source") as connection:
                for one in list_tables(connection, side.takes):
                    target = side.route(one.name)
                    known = found.get(target, LoadedTable(target, ()))
                    found[target] = replace(
                        known, origins=(*known.origins, one.name), rows_about=known.rows_about + one.rows
                    )

        retrying(listing, attempts=3)
        self.verdicts.in_one(
            lambda cursor: list_loaded(cursor, self.verdicts.meta, self.verdicts.source, found.values())
        )

    def _look_at(self, one: LoadedTable) -> list[PendingKey]:
        plan = self.tables.get(one.target)
        if plan.table is None:
            return self._leave(one, plan.fault)
        table = plan.table
        same = one.range_key == table.range_key
        begin = one if same else replace(one, range_key=table.range_key, bound=None, rows_done=0)
        begun = time.monotonic()
        upper, finding = self._compare(table, begin.bound)
        took = time.monotonic() - begun
        self._pace(one.target).note(replace(finding, seconds=took))
        moved = replace(
            begin,
            bound=upper,
            done=upper is None,
            rows_done=begin.rows_done + finding.source_rows,
        )
        note = _TOO_MANY.format(count=finding.beyond) if finding.beyond else plan.note
        since, origin = time.time(), table.shards[0].table.name
        found = [PendingKey(origin, one.target, key, _BY_VALUE, since, 0, table.key) for key in finding.suspects]
        failed = self._postponed.pop(one.target, None) is not None
        told = begin.bound is None or finding.beyond > 0 or failed

        def write(cursor: Any) -> None:
            add_pending(cursor, self.verdicts.meta, self.verdicts.source, found)
            move_bound(cursor, self.verdicts.meta, moved)
            for name in one.origins if told else ():
                self.verdicts.tell_status(cursor, name, one.target, RUNNING, note)

        self.verdicts.in_one(write)
        self._last = time.monotonic()
        self._rest(finding, took)
        return found

    def _rest(self, finding: ChunkFinding, took: float) -> None:
        count = max(finding.source_rows, finding.target_rows)
        self.first.stop.wait(min(max(count / self.rows_per_second - took, 0.0), 2 * RANGE_SECONDS))

    def _leave(self, one: LoadedTable, fault: str) -> list[PendingKey]:
        """Record why a table can't be compared. It is tried again later where that may change."""
        over = fault in (GONE, NO_KEY)
        if over:
            self.verdicts.in_one(
                lambda cursor: move_bound(cursor, self.verdicts.meta, replace(one, done=True, rows_done=0))
            )
        else:
            self._postponed[one.target] = time.monotonic() + RETRY_SECONDS
            self.tables.forget(one.target)
        self._tell(one, STOPPED, fault)
        return []

    def _tell(self, one: LoadedTable, stage: str, message: str) -> None:
        def write(cursor: Any) -> None:
            for name in one.origins:
                self.verdicts.tell_status(cursor, name, one.target, stage, message)

        self.verdicts.in_one(write)

    def _compare(self, table: ComparedTable, lower: Bound | None) -> tuple[Bound | None, ChunkFinding]:
        """Compare the range after `lower`, a smaller one where it has too many rows that differ. Return its end."""
        cutter = TableCutter((table,))
        with cutter:
            for first, count in self._cuts(table):
                cutter.paces[str(table.name)] = ChunkPace(count)
                upper = retrying(partial(cutter.next_bound, table, lower, first), attempts=3)
                order = ChunkOrder(table, KeyRange(lower, upper), shared=self.shared, most=MOST_KEYS)
                (outcome,) = self.run([pickle.dumps(order)], compare_chunk)
                finding = ChunkFinding.from_dict(disclose(outcome))
                if not finding.beyond or not table.range_key:
                    break
        return upper, finding

    def _cuts(self, table: ComparedTable) -> Iterator[tuple[ComparedShard | None, int]]:
        """Yield which side has the end of the range, and how many of its rows go into it.

        The smallest of the small ranges has no more rows in all than a range may have keys that differ.
        """
        yield None, self._pace(table.name).rows
        few = max(MOST_KEYS // (len(table.shards) + 1), 1)
        for side in (None, *table.shards):
            yield side, few

    def _pace(self, name: TableName) -> ChunkPace:
        most = max(self.rows_per_second, 1)
        return self._paces.setdefault(name, ChunkPace(min(FIRST_ROWS, most), most, RANGE_SECONDS))
