"""The size of the ranges into which tables are cut while they are compared.

The size is adapted to the time that the last ranges of the table took, so that each range takes a few seconds.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import MySQLdb

from unshard.compare.executor.chunk import ChunkFinding
from unshard.compare.executor.rows import asked_again, limit_lock_waits
from unshard.compare.executor.silent import silent_error
from unshard.compare.lock_patience import LockPatience
from unshard.compare.ranges import Bound, KeyRange, bound_of, bound_statement
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.errors import UnshardError
from unshard.model.table import TableName
from unshard.mysql.connection import ROWS_SECONDS, Endpoint, Side, connect, rows, server_error

FIRST_ROWS = 20_000
FEWEST_ROWS, MOST_ROWS = 1_000, 500_000
SECONDS = 2.0
"""Target time of a range."""

READING_WINS = 1.5
"""Least speed-up by which reading is chosen: it moves the rows over the network, and costs Spark more."""

_MOST_RANGES = 100_000


@dataclass(frozen=True, slots=True)
class CutChunk:
    """A range of a table. It is to be compared if `sampled` is set; otherwise a sample leaves it out."""

    table: ComparedTable
    part: KeyRange
    sampled: bool = True


@dataclass(slots=True)
class ChunkPace:
    """The size of a table's next range in rows, so that it takes about `seconds`, as measured at the last ranges.

    `most` is the largest size. `known`: at least one range has been measured.
    """

    rows: int = FIRST_ROWS
    most: int = MOST_ROWS
    seconds: float = SECONDS
    known: bool = False

    def note(self, finding: ChunkFinding) -> None:
        """Learn from a range that was compared; one with next to no rows says nothing."""
        count = max(finding.source_rows, finding.target_rows)
        if count >= FEWEST_ROWS and finding.seconds > 0:
            wanted = int(self.seconds * count / finding.seconds)
            self.rows = min(max(wanted, FEWEST_ROWS, self.rows // 4), self.most, self.rows * 4)
            self.known = True


@dataclass(slots=True)
class WayOfTable:
    """The way to compare a table's ranges: by reading the rows, or by checksums that the servers compute.

    Both are tried in turn until there is a rate of each. Reading is then chosen if it is more than `READING_WINS` times
    as fast, as with fast networks and slow servers.
    """

    rates: dict[bool, float] = field(default_factory=dict)
    _tried: int = 0

    def reads(self) -> bool:
        """Choose the way for the next range; return whether it is to read the rows."""
        if len(self.rates) < 2:
            self._tried += 1
            return self._tried % 2 == 0
        return self.rates[True] > self.rates[False] * READING_WINS

    def note(self, finding: ChunkFinding, *, reads: bool) -> None:
        """Learn from a range that was compared that way; one that differs was read in any case."""
        count = max(finding.source_rows, finding.target_rows)
        if count >= FEWEST_ROWS and finding.seconds > 0 and not finding.suspects:
            rate = count / finding.seconds
            self.rates[reads] = (self.rates.get(reads, rate) + rate) / 2


@dataclass(slots=True)
class TableCutter:
    """The cutter that divides all tables into ranges, one table after the other.

    It asks the target for bounds, then the sources. A context manager: its connections are closed at the end. With
    `fixed_rows` all ranges have that size. `percent` of the ranges are compared, and the first one of each table. A
    large table has at least `at_once` ranges, each of about `seconds`. With `locks` it waits for locked tables.
    """

    tables: Sequence[ComparedTable]
    fixed_rows: int = 0
    percent: int = 100
    at_once: int = 1
    seconds: float = SECONDS
    locks: LockPatience | None = None
    begun: dict[str, Bound | None] = field(default_factory=dict)
    paces: dict[str, ChunkPace] = field(default_factory=dict)
    faults: list[tuple[ComparedTable, UnshardError]] = field(default_factory=list)
    _left: set[TableName] = field(default_factory=set)
    _busy: float = 0.0
    _open: dict[tuple[Side, Endpoint], Any] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def ranges(self) -> Iterator[CutChunk]:
        """Yield every range, in order.

        A table whose bounds can't be read any more ends there, with an entry in `faults`.
        """
        for table in self.tables:
            try:
                yield from self._of_table(table)
            except UnshardError as error:
                self.faults.append((table, error))

    def pace(self, table: ComparedTable) -> ChunkPace:
        """Return the pace of the table's ranges, made at its first use."""
        most = min(max(int(table.rows_estimate * 1.1) // self.at_once, FIRST_ROWS), MOST_ROWS)
        return self.paces.setdefault(str(table.name), ChunkPace(self.fixed_rows or FIRST_ROWS, most, self.seconds))

    def knows_size_after(self, last: CutChunk) -> bool:
        """Return whether the next range can be cut now: it is of another table, or its size is known."""
        return last.part.upper is None or bool(self.fixed_rows) or self.pace(last.table).known

    def take_busy(self) -> float:
        """Return the seconds for which sources were asked for bounds since the last call."""
        taken, self._busy = self._busy, 0.0
        return taken

    def leave(self, table: ComparedTable) -> None:
        """Cut no further ranges of the table."""
        self._left.add(table.name)

    def note(self, table: ComparedTable, finding: ChunkFinding) -> None:
        """Learn from a range that was compared."""
        if not self.fixed_rows:
            self.pace(table).note(finding)

    def __enter__(self) -> TableCutter:
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def _of_table(self, table: ComparedTable) -> Iterator[CutChunk]:
        """Yield the ranges of one table; `begun` has the last bound of tables that were compared up to it before."""
        lower = self.begun.get(str(table.name))
        seen = {lower}
        for number in range(_MOST_RANGES):
            upper = self.next_bound(table, lower) if number < _MOST_RANGES - 1 else None
            if upper in seen:
                upper = None
            if table.name in self._left:
                return
            part = KeyRange(lower, upper)
            yield CutChunk(table, part, lower is None or self._is_sampled(table, part))
            if upper is None:
                return
            seen.add(upper)
            lower = upper

    def _is_sampled(self, table: ComparedTable, part: KeyRange) -> bool:
        return zlib.crc32(f"{table.name} {part}".encode()) % 100 < self.percent

    def next_bound(self, table: ComparedTable, lower: Bound | None, first: ComparedShard | None = None) -> Bound | None:
        """Return the end of the range after `lower`; None where it is the table's last one.

        The target is asked, then the source tables; `first` is asked before all. A server that does not answer is asked
        again for some seconds. Raises SourceError, TargetError.
        """
        if not table.range_key:
            return None
        for shard in (first, *(one for one in (None, *table.shards) if one is not first)):
            ask = partial(asked_again, partial(self._ask, table, shard, lower))
            found = self.locks.call(ask) if self.locks is not None else ask()
            if found is not None:
                return found
        return None

    def _ask(self, table: ComparedTable, shard: ComparedShard | None, lower: Bound | None) -> Bound | None:
        statement = bound_statement(table, shard, lower, self.pace(table).rows)
        if statement is None:
            return None
        side: Side = "target" if shard is None else "source"
        endpoint = table.endpoint if shard is None else shard.endpoint
        begun = time.monotonic()
        try:
            found = rows(self._connection(endpoint, side), statement)
        except MySQLdb.Error as error:
            used = self._open.pop((side, endpoint), None)
            name = table.name if shard is None else shard.table.name
            source = shard.source if shard is not None else None
            failed = server_error(error, endpoint, side, statement).at(source=source, table=str(name))
            failed.__cause__ = error
            raise silent_error(failed, [(side, endpoint, used)] if used else [], begun) or failed from error
        if shard is not None:
            self._busy += time.monotonic() - begun
        if not found or None in found[0]:
            return None
        return bound_of(table, shard, found[0])

    def _connection(self, endpoint: Endpoint, side: Side) -> Any:
        if (side, endpoint) not in self._open:
            opened = connect(endpoint, side, patience_seconds=ROWS_SECONDS)
            self._stack.callback(opened.close)
            rows(opened, "SET @@session.sql_mode = ''")  # bounds are written with backslashes
            limit_lock_waits(opened)
            self._open[side, endpoint] = opened
        return self._open[side, endpoint]
