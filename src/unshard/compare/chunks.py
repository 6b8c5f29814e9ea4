"""Cutting tables into ranges while they are compared: each as large as the table's last ones say takes some seconds."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import MySQLdb

from unshard.compare.executor.chunk import ChunkFinding
from unshard.compare.ranges import Bound, KeyRange, bound_of, bound_statement
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.errors import UnshardError
from unshard.mysql.connection import ROWS_SECONDS, Endpoint, Side, connect, rows, server_error

FIRST_ROWS = 20_000
FEWEST_ROWS, MOST_ROWS = 1_000, 500_000
SECONDS = 2.0
"""How long a range should take."""

_MOST_RANGES = 100_000


@dataclass(frozen=True, slots=True)
class CutChunk:
    """A range of a table. `sampled`: it is to be compared; else a sample leaves it out."""

    table: ComparedTable
    part: KeyRange
    sampled: bool = True


@dataclass(slots=True)
class ChunkPace:
    """How many rows of a table make a range, by what the last ones took."""

    rows: int = FIRST_ROWS

    def note(self, finding: ChunkFinding) -> None:
        """Learn from a range that was compared; one with next to no rows says nothing."""
        count = max(finding.source_rows, finding.target_rows)
        if count >= FEWEST_ROWS and finding.seconds > 0:
            wanted = int(SECONDS * count / finding.seconds)
            self.rows = min(max(wanted, FEWEST_ROWS, self.rows // 4), MOST_ROWS, self.rows * 4)


@dataclass(slots=True)
class TableCutter:
    """Gives the ranges of all tables, one after the other. Asks the target for bounds, then the sources.

    A context: its connections are closed at the end. `fixed_rows` makes all ranges of that size; `percent` of them are
    compared, and the first of each table.
    """

    tables: Sequence[ComparedTable]
    fixed_rows: int = 0
    percent: int = 100
    begun: dict[str, Bound | None] = field(default_factory=dict)
    paces: dict[str, ChunkPace] = field(default_factory=dict)
    faults: list[tuple[ComparedTable, UnshardError]] = field(default_factory=list)
    _open: dict[tuple[Side, Endpoint], Any] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def ranges(self) -> Iterator[CutChunk]:
        """Every range, in order. A table whose bounds can't be read any more ends there, with an entry in `faults`."""
        for table in self.tables:
            try:
                yield from self._of_table(table)
            except UnshardError as error:
                self.faults.append((table, error))

    def pace(self, table: ComparedTable) -> ChunkPace:
        return self.paces.setdefault(str(table.name), ChunkPace(self.fixed_rows or FIRST_ROWS))

    def note(self, table: ComparedTable, finding: ChunkFinding) -> None:
        """Learn from a range that was compared."""
        if not self.fixed_rows:
            self.pace(table).note(finding)

    def __enter__(self) -> TableCutter:
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def _of_table(self, table: ComparedTable) -> Iterator[CutChunk]:
        """`begun` has the last bound of tables that were compared up to it before."""
        lower = self.begun.get(str(table.name))
        seen = {lower}
        for number in range(_MOST_RANGES):
            upper = self._next_bound(table, lower) if number < _MOST_RANGES - 1 else None
            if upper in seen:
                upper = None
            part = KeyRange(lower, upper)
            yield CutChunk(table, part, lower is None or self._is_sampled(table, part))
            if upper is None:
                return
            seen.add(upper)
            lower = upper

    def _is_sampled(self, table: ComparedTable, part: KeyRange) -> bool:
        return zlib.crc32(f"{table.name} {part}".encode()) % 100 < self.percent

    def _next_bound(self, table: ComparedTable, lower: Bound | None) -> Bound | None:
        if not table.range_key:
            return None
        for shard in (None, *table.shards):
            found = self._ask(table, shard, lower)
            if found is not None:
                return found
        return None

    def _ask(self, table: ComparedTable, shard: ComparedShard | None, lower: Bound | None) -> Bound | None:
        statement = bound_statement(table, shard, lower, self.pace(table).rows)
        if statement is None:
            return None
        side: Side = "target" if shard is None else "source"
        endpoint = table.endpoint if shard is None else shard.endpoint
        try:
            found = rows(self._connection(endpoint, side), statement)
        except MySQLdb.Error as error:
            self._open.pop((side, endpoint), None)
            raise server_error(error, endpoint, side, statement).at(table=str(table.name)) from error
        if not found or None in found[0]:
            return None
        return bound_of(table, shard, found[0])

    def _connection(self, endpoint: Endpoint, side: Side) -> Any:
        if (side, endpoint) not in self._open:
            opened = connect(endpoint, side, patience_seconds=ROWS_SECONDS)
            self._stack.callback(opened.close)
            rows(opened, "SET @@session.sql_mode = ''")  # bounds are written with backslashes
            self._open[side, endpoint] = opened
        return self._open[side, endpoint]
