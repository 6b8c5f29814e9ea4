"""One transaction of a repair on the target: it waits for nobody for long, and leaves a receipt."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import MySQLdb

from unshard.compare.executor.keys import Key
from unshard.compare.executor.repair import RowRepair
from unshard.compare.executor.rows import SideConnections
from unshard.compare.places import LogPlace, SourceWatch
from unshard.compare.repair_steps import MENDED
from unshard.compare.result import RowClass
from unshard.crash_point import reach
from unshard.mysql.failures import ends_connection, is_transient
from unshard.target.error_values import changed_value, query_with_error_values
from unshard.target.meta import MetaTables
from unshard.target.repairs import NoTurn, RepairReceipt, receipt_of, take_turn, write_receipt
from unshard.target.transactions import BEGIN
from unshard.target.writer import CUT, ServerAnswer, query

LOCK_WAIT_SECONDS = 2
"""Seconds that a statement waits for a lock of another session, while the rows of the sources are locked."""


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """The rows written, by class. `earlier`: an earlier attempt has written them, as its receipt tells."""

    counts: Counter[RowClass]
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row whose statement the target refuses, with the target's answer."""

    key: Key
    answer: str


@dataclass(frozen=True, slots=True)
class RepairTransaction:
    """One transaction of a repair. It may run twice: its receipt shows whether it was committed.

    `held` are the connections that hold the locks in the sources, until the time `until`. `checks` is the value of
    `foreign_key_checks` in the task's sessions; a row that is deleted to be inserted again is not checked, so that its
    DELETE takes no rows of other tables with it.
    """

    meta: MetaTables
    identity: str
    number: int
    table: str
    repairs: Sequence[RowRepair]
    places: Mapping[str, LogPlace | None]
    watches: tuple[SourceWatch, ...]
    held: SideConnections
    until: float
    checks: str = "0"

    def run(self, connection: Any) -> WrittenRows | NoTurn | RefusedRow:
        """Run the transaction. Return the rows written, by class, or why nothing was. Raises MySQLdb.Error."""
        checks = "0" if any(one.delete for one in self.repairs) else self.checks
        session = f"innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}, foreign_key_checks = {checks}"
        connection.query(f"SET SESSION {session}".encode())
        connection.query(BEGIN)
        with connection.cursor() as cursor:
            done = self._within(cursor)
        if not isinstance(done, WrittenRows):
            connection.query(b"ROLLBACK")
            return done
        reach("repair-commit-before")
        connection.query(b"COMMIT")
        reach("repair-commit-after")
        return done

    def _within(self, cursor: Any) -> WrittenRows | NoTurn | RefusedRow:
        turn = self._turn(cursor)
        if turn is not None:
            return turn
        earlier = receipt_of(cursor, self.meta, self.identity, self.number)
        if earlier is not None:
            counts = (earlier.deleted, earlier.updated, earlier.inserted)
            return WrittenRows(Counter(dict(zip(MENDED, counts, strict=True))), earlier=True)
        written: Counter[RowClass] = Counter()
        for one in (*(_deleted(one) for one in self.repairs if one.delete), *self.repairs):
            if time.monotonic() >= self.until:
                return NoTurn("target", "the rows were not written in time")
            answer = _run(cursor.connection, one)
            if answer:
                return RefusedRow(one.key, answer)
        for one in self.repairs:
            written[one.kind] += one.rows
        places = {source: place_text(place) for source, place in self.places.items()}
        deleted, updated, inserted = (written[kind] for kind in MENDED)
        receipt = RepairReceipt(self.identity, self.number, self.table, places, inserted, updated, deleted)
        write_receipt(cursor, self.meta, receipt)
        return WrittenRows(written)

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


def _deleted(one: RowRepair) -> RowRepair:
    return replace(one, statement=one.delete, error_values=frozenset())


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


def place_text(place: LogPlace | None) -> str:
    """Return the position, for messages and receipts; "" for none."""
    return str(place.position) if place is not None else ""
