"""`unshard compare --repair`: corrects rows of the target that differ, while the task and the writers continue.

The rows are set to what the sources have. A number of keys of one table is repaired at a time, by these steps:

| step | why it overwrites no newer change |
|---|---|
| wait until the task has caught up | the next two steps are short then |
| look for the spellings that both ends have of these keys | a row that a source has in another spelling is not \
taken for an extra one |
| read the rows in the sources under shared locks | nobody changes them until the locks are released |
| take the sources' binlog positions, and wait until the checkpoints have passed them | the target has every change \
of these rows that there is |
| read the target | no change of these rows is under way |
| in one transaction: lock the records of the batches, read the checkpoints once more, see that the locks in the \
sources are still held, write, leave a receipt | no process of the task closes or opens a batch meanwhile, so a change \
that is made once the locks are lost is applied on top |
| release the locks in the sources | a later change is applied on top |

The process may end at any step: the transaction is rolled back or committed as a whole. Repairing again is right in
both cases.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

from unshard.compare.executor.keys import Key
from unshard.compare.executor.repair import repairs_of
from unshard.compare.executor.repair_rows import RepairOrder, SourceRows, keys_to_ask, read_sources
from unshard.compare.executor.rows import SideConnections, asked_again
from unshard.compare.executor.unique_values import UniqueValues, unique_values
from unshard.compare.places import LogPlace, SourceWatch, newest_places, wait_until_passed
from unshard.compare.repair import UNSURE
from unshard.compare.repair_steps import MENDED, orders_in_steps
from unshard.compare.repair_transaction import RefusedRow, RepairTransaction, place_text
from unshard.compare.result import ComparisonOutcome, RowClass, TableOutcome
from unshard.compare.tables import ComparedTable
from unshard.errors import CompareError, SourceError, TargetError, UnshardError, Where
from unshard.load.checkpoint import FINISHED, LoadTables
from unshard.mysql.connection import Endpoint, session
from unshard.target.meta import MetaTables
from unshard.target.repairs import NoTurn, create_repairs
from unshard.target.transactions import on_target
from unshard.target.writer import KeptWriter

ROWS_AT_ONCE = 100
HOLD_SECONDS, WRITE_SECONDS = 10.0, 3.0
"""Seconds for which rows of a source are locked, and the part of them that is left for the write.

A statement that is under way at the end is not broken off. All rows of a table without a key are written at once,
however long that takes.
"""

_SLOT = -1
_ONCE = 1
_PAUSE_SECONDS = 0.5


@dataclass(slots=True)
class RepairedRows:
    """The result of repairing one table.

    `moved` counts rows that are in another state now and were not written, `unsure` extra rows that a source may have.
    `refused` has the keys whose statements the target refused, with its answers.
    """

    table: str
    written: Counter[RowClass] = field(default_factory=Counter)
    moved: int = 0
    unsure: int = 0
    refused: dict[Key, str] = field(default_factory=dict)
    error: UnshardError | None = None

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        counts = ", ".join(f"{self.written[kind]:,} {kind.value}" for kind in MENDED)
        yield f"{self.table}: repaired {counts}"
        if self.moved:
            yield f"{self.table}: {self.moved:,} rows are in another state now than they were compared in: not written"
        if self.unsure:
            yield f"{self.table}: {self.unsure:,} {UNSURE}: not deleted"
        for key, answer in list(self.refused.items())[:5]:
            yield f"{self.table}: the target refuses row {', '.join(key)}: {answer}"
        if self.error is not None:
            yield str(self.error)


@dataclass(frozen=True, slots=True)
class Repairer:
    """The repair of rows of a task's tables. `patience_seconds` bounds the wait for a turn to write, for each table."""

    target: Endpoint
    meta: MetaTables
    watches: Sequence[SourceWatch]
    patience_seconds: float
    tell: Callable[[str], None]
    stopped: Callable[[], bool]

    @property
    def checks(self) -> str:
        """The value of `foreign_key_checks` in the task's sessions on the target."""
        return dict(self.target.session).get("foreign_key_checks", "0")

    def repair(self, found: ComparisonOutcome, tables: Mapping[str, ComparedTable]) -> list[RepairedRows]:
        """Repair what was found, table by table. `tables`: by name, those of which all columns are compared.

        An error of a table is in its result, and the others are repaired. Raises TargetError where the receipts can't
        be kept at all.
        """
        with session(self.target, "target") as connection:
            create_repairs(connection, self.meta)
            copied = {watch.side.source: self._is_copied(connection, watch) for watch in self.watches}
        done = []
        identity, number = uuid4().hex, 0
        kept = KeptWriter(self.target, _SLOT)
        try:
            for one in found.tables:
                table = tables.get(str(one.name))
                rows = _rows_to_repair(one, table)
                if table is None or not rows or self.stopped():
                    continue
                work = _TableRepair(self, kept, identity, RepairedRows(str(one.name)), self._watches(table))
                open_copies = [watch.side.source for watch in work.watches if not copied[watch.side.source]]
                if open_copies:
                    fault = f"{open_copies[0]}: its copy is not done"
                    work.result.error = CompareError("COMPARE-013", work.where, values={"fault": fault})
                orders = work.orders(table, rows) if not open_copies else []
                for order in orders:
                    number += 1
                    if not work.repair(order, number) or self.stopped():
                        break
                done.append(work.result)
        finally:
            kept.drop()
        return done

    def _is_copied(self, connection: Any, watch: SourceWatch) -> bool:
        """Return whether the copy of the source is done. A source that is followed has a checkpoint, so it is."""
        load = LoadTables(self.meta.schema, self.meta.task, watch.side.source)
        return watch.followed or not load.exist(connection) or load.read_status(connection) == FINISHED

    def _watches(self, table: ComparedTable) -> tuple[SourceWatch, ...]:
        wanted = {shard.source for shard in table.shards}
        return tuple(watch for watch in self.watches if watch.side.source in wanted)


def not_repaired(one: TableOutcome, table: ComparedTable | None) -> Iterator[str]:
    """Yield the reasons why rows of the table that differ are not repaired."""
    if not one.classes.total():
        return
    if table is None or one.errors:
        yield f"{one.name}: not all of its columns and rows were compared: not repaired"
        return
    if one.classes[RowClass.COLLISION]:
        yield f"{one.name}: {one.classes[RowClass.COLLISION]:,} keys have two source rows: no row can hold both"
    open_rows = one.classes[RowClass.IN_FLIGHT] + one.classes[RowClass.UNCLEAR]
    if open_rows:
        yield f"{one.name}: {open_rows:,} rows are in flight or unclear: not repaired"


def _rows_to_repair(one: TableOutcome, table: ComparedTable | None) -> list[tuple[Key, RowClass]]:
    """Return the rows that can be repaired; none of a table that was not compared as a whole."""
    if table is None or one.errors:
        return []
    if not table.key:
        surplus = one.surplus_by_hash()
        known = {diff.row_hash for diff in one.differences if diff.kind in MENDED}
        signs = ((RowClass.EXTRA, -1), (RowClass.MISSING, 1))
        return [((row,), kind) for kind, sign in signs for row in sorted(known) if surplus[row] * sign > 0]
    return [
        (diff.literals, diff.kind) for kind in MENDED for diff in one.differences if diff.kind is kind and diff.literals
    ]


def _no_turn(error: UnshardError, table: ComparedTable) -> NoTurn:
    end = table.shards[0].source if isinstance(error, SourceError) else "target"
    return NoTurn(error.where.source or end, str(error.cause or error.message))


def _values(orders: Sequence[RepairOrder]) -> Iterator[list[UniqueValues]]:
    for order in orders:
        yield asked_again(partial(unique_values, order))


@dataclass(slots=True)
class _TableRepair:
    """The repair of one table.

    `refused` has the keys that the target has refused in any attempt to repair some rows, with its answers. `tried` is
    the most rows that an attempt had to write whose answer was lost: the receipt of the next one may tell of them.
    """

    all: Repairer
    kept: KeptWriter
    identity: str
    result: RepairedRows
    watches: tuple[SourceWatch, ...]
    refused: dict[Key, str] = field(default_factory=dict)
    tried: int = 0

    def orders(self, table: ComparedTable, rows: Sequence[tuple[Key, RowClass]]) -> list[RepairOrder]:
        """Return the orders for these rows. None after an error, which is in the result then."""
        if not table.key:
            return [RepairOrder(table, tuple(rows))]
        try:
            return orders_in_steps(table, rows, ROWS_AT_ONCE, _values)
        except UnshardError as error:
            self.result.error = error
            return []

    def repair(self, order: RepairOrder, number: int) -> bool:
        """Repair these rows, waiting for a turn. False where it is no use to go on with this table."""
        deadline = time.monotonic() + self.all.patience_seconds
        self.refused, self.tried = {}, 0
        try:
            while True:
                turn = self._behind(newest_places(self.watches), deadline) or self._attempt(order, number)
                if turn is None:
                    return True
                fault = f"{turn.source}: {turn.fault}"
                if turn.lasting:
                    raise CompareError("COMPARE-013", self.where, values={"fault": fault})
                if time.monotonic() >= deadline or self.all.stopped():
                    values = {"fault": fault, "seconds": self.all.patience_seconds}
                    raise CompareError("COMPARE-014", self.where, values=values)
                time.sleep(random.uniform(0, _PAUSE_SECONDS))
        except UnshardError as error:
            self.result.error = error
            return False

    @property
    def where(self) -> Where:
        return Where(table=self.result.table)

    def _attempt(self, order: RepairOrder, number: int) -> NoTurn | None:
        """Repair the rows under locks in the sources. Return None, or why it was not their turn."""
        with closing(SideConnections(snapshot=False)) as held:
            try:
                rows = read_sources(order, keys_to_ask(order), held, locking=True)
            except (SourceError, TargetError) as error:
                if error.retryable:  # somebody has the table or a row for long, or the locks cross those of a writer
                    return _no_turn(error, order.table)
                raise
            until = time.monotonic() + HOLD_SECONDS
            places = newest_places(self.watches)
            late = self._behind(places, until - WRITE_SECONDS)
            return late or self._write(order, rows, places, number, held, until if order.table.key else math.inf)

    def _behind(self, places: Mapping[str, LogPlace | None], until: float) -> NoTurn | None:
        """Wait until the target has all up to these places. Return None, or the first source that is late."""
        passed = wait_until_passed(self.watches, places, until, self.all.stopped)
        late = [watch.side.source for watch in self.watches if watch.side.source not in passed]
        if not late:
            return None
        return NoTurn(late[0], f"the target has not come to {place_text(places[late[0]]) or 'any place'} of its binlog")

    def _write(
        self,
        order: RepairOrder,
        rows: SourceRows,
        places: Mapping[str, LogPlace | None],
        number: int,
        held: SideConnections,
        until: float,
    ) -> NoTurn | None:
        """Write the rows that differ still. Writers of the sources wait meanwhile, so a failure ends the attempt."""
        with closing(SideConnections()) as seen:
            try:
                repairs = repairs_of(order, rows, seen)
            except TargetError as error:
                if error.retryable:
                    return _no_turn(error, order.table)
                raise
        while True:
            left = [one for one in repairs if one.key not in self.refused]
            table = str(order.table.name)
            transaction = RepairTransaction(
                self.all.meta, self.identity, number, table, left, places, self.watches, held, until, self.all.checks
            )
            try:
                done = on_target(self.kept, transaction.run, self.where, _ONCE, schema=self.all.meta.schema)
            except UnshardError as error:
                if not error.retryable:
                    raise
                self.tried = max(self.tried, len(repairs))
                cause = error.__cause__ if isinstance(error.__cause__, UnshardError) else error
                return NoTurn("target", str(cause.cause or cause.message))
            if isinstance(done, NoTurn):
                return done
            if isinstance(done, RefusedRow):
                self.refused[done.key] = done.answer
                continue
            self.result.written.update(done.counts)
            self.result.refused.update(self.refused)
            self.result.unsure += len(rows.unsure)
            self.result.moved += len(order.rows) - (self.tried if done.earlier else len(repairs)) - len(rows.unsure)
            return None
