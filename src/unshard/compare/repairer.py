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

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import MySQLdb

from unshard.compare.executor.keys import Key
from unshard.compare.executor.repair import (
    RepairOrder,
    RowRepair,
    SourceRows,
    keys_to_ask,
    read_sources,
    repairs_of,
)
from unshard.compare.executor.rows import SideConnections
from unshard.compare.places import LogPlace, SourceWatch, newest_places, wait_until_passed
from unshard.compare.repair import UNSURE
from unshard.compare.result import ComparisonOutcome, RowClass, TableOutcome
from unshard.compare.tables import ComparedTable
from unshard.crash_point import reach
from unshard.errors import CompareError, SourceError, UnshardError, Where
from unshard.load.checkpoint import FINISHED, LoadTables
from unshard.mysql.connection import Endpoint, session
from unshard.mysql.failures import ends_connection, is_transient
from unshard.target.error_values import changed_value, query_with_error_values
from unshard.target.meta import MetaTables
from unshard.target.repairs import NoTurn, RepairReceipt, create_repairs, receipt_of, take_turn, write_receipt
from unshard.target.transactions import BEGIN, on_target
from unshard.target.writer import CUT, KeptWriter, ServerAnswer, query

ROWS_AT_ONCE = 100
HOLD_SECONDS = 10.0
"""The longest time for which rows of a source are locked while the task comes to their place."""

_REPAIRED = (RowClass.EXTRA, RowClass.CHANGED, RowClass.MISSING)
"""In this order: a DELETE or UPDATE may free a unique value that an INSERT takes."""

_SLOT = -1
_ATTEMPTS = 5
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
        counts = ", ".join(f"{self.written[kind]:,} {kind.value}" for kind in _REPAIRED)
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
                orders = orders_of(one, tables.get(str(one.name)))
                if not orders or self.stopped():
                    continue
                work = _TableRepair(self, kept, identity, RepairedRows(str(one.name)), self._watches(orders[0].table))
                open_copies = [watch.side.source for watch in work.watches if not copied[watch.side.source]]
                if open_copies:
                    fault = f"{open_copies[0]}: its copy is not done"
                    work.result.error = CompareError("COMPARE-013", work.where, values={"fault": fault})
                    orders = []
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


def orders_of(one: TableOutcome, table: ComparedTable | None) -> list[RepairOrder]:
    """Return orders for the rows that can be repaired; none for a table that was not compared as a whole."""
    if table is None or one.errors:
        return []
    rows = [
        (diff.literals or (diff.row_hash,), diff.kind)
        for kind in _REPAIRED
        for diff in one.differences
        if diff.kind is kind and (diff.literals or diff.row_hash)
    ]
    size = ROWS_AT_ONCE if table.key else max(len(rows), 1)
    return [RepairOrder(table, tuple(rows[at : at + size])) for at in range(0, len(rows), size)]


@dataclass(slots=True)
class _TableRepair:
    """The repair of one table."""

    all: Repairer
    kept: KeptWriter
    identity: str
    result: RepairedRows
    watches: tuple[SourceWatch, ...]

    def repair(self, order: RepairOrder, number: int) -> bool:
        """Repair these rows, waiting for a turn. False where it is no use to go on with this table."""
        deadline = time.monotonic() + self.all.patience_seconds
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
        asked = keys_to_ask(order)
        with closing(SideConnections(snapshot=False)) as held:
            try:
                rows = read_sources(order, asked, held, locking=True)
            except SourceError as error:
                if error.retryable:  # a writer has one of the rows for long, or the locks cross those of a writer
                    return NoTurn(order.table.shards[0].source, str(error.cause or error.message))
                raise
            places = newest_places(self.watches)
            late = self._behind(places, time.monotonic() + HOLD_SECONDS)
            return late or self._write(order, rows, places, number, held)

    def _behind(self, places: Mapping[str, LogPlace | None], until: float) -> NoTurn | None:
        """Wait until the target has all up to these places. Return None, or the first source that is late."""
        passed = wait_until_passed(self.watches, places, until, self.all.stopped)
        late = [watch.side.source for watch in self.watches if watch.side.source not in passed]
        if not late:
            return None
        return NoTurn(late[0], f"the target has not come to {_text(places[late[0]]) or 'any place'} of its binlog")

    def _write(
        self,
        order: RepairOrder,
        rows: SourceRows,
        places: Mapping[str, LogPlace | None],
        number: int,
        held: SideConnections,
    ) -> NoTurn | None:
        refused: dict[Key, str] = {}
        with closing(SideConnections()) as seen:
            repairs = repairs_of(order, rows, seen)
        while True:
            left = [one for one in repairs if one.key not in refused]
            table = str(order.table.name)
            transaction = _Transaction(self.all.meta, self.identity, number, table, left, places, self.watches, held)
            done = on_target(self.kept, transaction.run, self.where, _ATTEMPTS, schema=self.all.meta.schema)
            if isinstance(done, NoTurn):
                return done
            if isinstance(done, _Refused):
                refused[done.key] = done.answer
                continue
            self.result.written.update(done)
            self.result.refused.update(refused)
            self.result.unsure += len(rows.unsure)
            self.result.moved += len(order.rows) - len(repairs) - len(rows.unsure)
            return None


@dataclass(frozen=True, slots=True)
class _Refused:
    """A row whose statement the target refuses, with the target's answer."""

    key: Key
    answer: str


@dataclass(frozen=True, slots=True)
class _Transaction:
    """One transaction of a repair. It may run twice: its receipt shows whether it was committed.

    `held` are the connections that hold the locks in the sources.
    """

    meta: MetaTables
    identity: str
    number: int
    table: str
    repairs: Sequence[RowRepair]
    places: Mapping[str, LogPlace | None]
    watches: tuple[SourceWatch, ...]
    held: SideConnections

    def run(self, connection: Any) -> Counter[RowClass] | NoTurn | _Refused:
        """Run the transaction. Return the rows written, by class, or why nothing was. Raises MySQLdb.Error."""
        connection.query(BEGIN)
        with connection.cursor() as cursor:
            done = self._within(cursor)
        if not isinstance(done, Counter):
            connection.query(b"ROLLBACK")
            return done
        reach("repair-commit-before")
        connection.query(b"COMMIT")
        reach("repair-commit-after")
        return done

    def _within(self, cursor: Any) -> Counter[RowClass] | NoTurn | _Refused:
        turn = self._turn(cursor)
        if turn is not None:
            return turn
        earlier = receipt_of(cursor, self.meta, self.identity, self.number)
        if earlier is not None:
            counts = (earlier.deleted, earlier.updated, earlier.inserted)
            return Counter(dict(zip(_REPAIRED, counts, strict=True)))
        written: Counter[RowClass] = Counter()
        for one in self.repairs:
            answer = _run(cursor.connection, one)
            if answer:
                return _Refused(one.key, answer)
            written[one.kind] += one.rows
        places = {source: _text(place) for source, place in self.places.items()}
        deleted, updated, inserted = (written[kind] for kind in _REPAIRED)
        receipt = RepairReceipt(self.identity, self.number, self.table, places, inserted, updated, deleted)
        write_receipt(cursor, self.meta, receipt)
        return written

    def _turn(self, cursor: Any) -> NoTurn | None:
        """Return why nothing may be written now. While the transaction lasts, no batch is opened or closed."""
        followed = sorted(watch.side.source for watch in self.watches if watch.followed)
        applied = take_turn(cursor, self.meta, followed)
        if isinstance(applied, NoTurn):
            return applied
        for source, there in applied.items():
            wanted = self.places[source]
            if wanted is None:
                return NoTurn(source, "the source has no binlog", lasting=True)
            if there.server != wanted.server or there.position < wanted.position:
                return NoTurn(source, f"the target is at {there.position}, and the source at {wanted.position}")
        lost = self.held.lost()
        for watch in self.watches:
            if watch.side.endpoint in lost:
                return NoTurn(watch.side.source, f"the locks of its rows are lost: {lost[watch.side.endpoint]}")
        return None


def _run(connection: Any, one: RowRepair) -> str:
    """Run one statement. Return "", or why the target refuses it. Raises MySQLdb.Error for a passing failure."""
    try:
        answer = _answer(connection, one)
    except MySQLdb.Error as error:
        if ends_connection(error) or is_transient(error):
            raise
        return f"{error.args[0]}: {error.args[1]}" if len(error.args) > 1 else str(error)
    if answer is None:
        return "it would store another value than the source has, beside the number 0 of an ENUM"
    if answer.warnings and (changed := changed_value(connection, answer.warnings)):
        return changed
    return "" if answer.found == one.rows else f"{answer.found} rows are found by its values in place of {one.rows}"


def _answer(connection: Any, one: RowRepair) -> ServerAnswer | None:
    """Run one statement as the sync does. Return None where the target would change a value. Raises MySQLdb.Error."""
    sql = one.statement.encode()
    try:
        return query(connection, sql)
    except MySQLdb.Error as error:
        if error.args[0] != CUT or not one.error_values:
            raise
    answer = query_with_error_values(connection, sql, one.error_values)
    return answer._replace(warnings=0) if answer is not None else None


def _text(place: LogPlace | None) -> str:
    return str(place.position) if place is not None else ""
