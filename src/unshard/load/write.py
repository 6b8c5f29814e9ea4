"""Writes the pieces of a file into the target, in one transaction each, and translates the server's errors.

It opens the session and converts the server's errors to errors of the catalogue. A piece that the target refuses as too
large is written in parts: a transaction and a checkpoint each, in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import MySQLdb
from MySQLdb import _mysql

from unshard.crash_point import reach
from unshard.errors import LoadError, SyncError, TargetError, UnshardError, Where
from unshard.load.checkpoint import FileState, LoadTables
from unshard.load.parts import behind, smaller, too_large
from unshard.load.pieces import LoadPiece
from unshard.model.change import ValuesList
from unshard.model.table import Table, TableName
from unshard.mysql.connection import ROWS_SECONDS, Endpoint, connect, rows, server_error
from unshard.retry import retrying
from unshard.target.bulk_insert import insert
from unshard.target.clamped_values import note_clamped
from unshard.target.rate_limiter import RateLimiter
from unshard.target.receipts import OLDER
from unshard.target.transactions import TOO_LARGE, in_transaction, may_pass_smaller
from unshard.target.writer import list_all_warnings, query

Result = TypeVar("Result")
OnDuplicate = Literal["error", "replace", "ignore"]
VERBS: dict[OnDuplicate, str] = {"error": "INSERT", "replace": "REPLACE", "ignore": "INSERT IGNORE"}

SESSION = {
    "sql_mode": "'IGNORE_SPACE,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "time_zone": "'+00:00'",
    "foreign_key_checks": "0",
    "unique_checks": "1",
    "sql_notes": "1",
}
"""DM's lenient mode, so that values of an old source (zero dates, a broken ENUM) can be written.

`_judge` stops the load where leniency would change a value.
"""

_DUPLICATE, _CUT = 1062, 1265
_RECORDS = re.compile(rb"Records: (\d+)")
_COLUMN = re.compile(r"for column (?:`[^`]*`\.`[^`]*`\.)?[`']([^`']+)[`']")


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination of one file's rows. `source` is the structure of the source table.

    `settings` are the SET statements that the values of an SQL file need.
    """

    target: TableName
    source: Table
    file: str
    settings: tuple[bytes, ...]
    where: Where


class Writer:
    """A target connection for one Spark task, which is opened again after it is lost. Not for two threads."""

    def __init__(
        self,
        endpoint: Endpoint,
        tables: LoadTables,
        epoch: int,
        on_duplicate: OnDuplicate,
        gate: RateLimiter | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._tables = tables
        self._epoch = epoch
        self._on_duplicate = on_duplicate
        self._gate = gate or RateLimiter(tables.schema)
        self._open: Any = None
        self._prepared_for: tuple[str, tuple[bytes, ...]] | None = None
        self._packet = 0

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back. Idempotent."""
        if self._open is not None:
            self._open.close()
        self._open, self._prepared_for = None, None

    def state(self, destination: Destination) -> FileState:
        """Return the file's checkpoint. Raises LoadError LOAD-007 for a zombie, SyncError SYNC-079 for a lost claim."""
        return retrying(lambda: self._guarded(destination, lambda: self._state(destination)))

    def apply(self, piece: LoadPiece, destination: Destination) -> None:
        """Load one piece and its checkpoint in one transaction, unless an earlier attempt has.

        A piece that is too large for the target in one transaction or statement is written in smaller ones, down to one
        row.

        Raises LoadError: LOAD-005 duplicate key, LOAD-006 a value that would change, LOAD-007 zombie, LOAD-009 a
        row too large; SyncError SYNC-079 where the target has lost a piece; TargetError when it stays out of reach.
        """
        waiting = [piece]
        while waiting:
            part = waiting.pop()
            attempt = partial(self._guarded, destination, partial(self._gated, part, destination))
            try:
                rest = retrying(attempt)
            except UnshardError as error:
                if not may_pass_smaller(error):
                    raise
                parts = smaller(part, destination.where)
                if not parts and error.code == TOO_LARGE:
                    raise too_large(part, destination.where, error.cause) from error
                if not parts:
                    raise
                waiting.extend(reversed(parts))
                continue
            waiting.extend([rest] if rest is not None else [])

    def _guarded(self, destination: Destination, work: Callable[[], Result]) -> Result:
        """Run `work`; after any failure the connection is in doubt and is closed."""
        try:
            return work()
        except MySQLdb.Error as error:
            self.close()
            raise _translated(error, self._endpoint, destination) from error
        except UnshardError:
            self.close()
            raise

    def _state(self, destination: Destination) -> FileState:
        state = self._tables.state(self._connection(destination), destination.file)
        if state is None or state.epoch > self._epoch:
            raise LoadError("LOAD-007", destination.where)
        if state.epoch < self._epoch:
            raise SyncError(OLDER, destination.where, cause=f"the load's epoch there is {state.epoch}")
        return state

    def _gated(self, part: LoadPiece, destination: Destination) -> LoadPiece | None:
        """Run `_transaction` within the target's limits; return the part that is left to do."""
        connection = self._connection(destination)

        def attempt(connection: Any) -> tuple[LoadPiece | None, int]:
            self._check_packets(part, destination)
            return in_transaction(connection, partial(self._transaction, connection, part, destination))

        return self._gate.through(connection, attempt, lambda found: found[1])[0]

    def _transaction(
        self, connection: Any, part: LoadPiece, destination: Destination, begin: bytes
    ) -> tuple[LoadPiece | None, int]:
        """Commit the part; where an earlier attempt was here, commit nothing and return what is still to do of it.

        Returned with the number of rows that were written.
        """
        reach("load-piece-before")
        connection.query(begin)
        before = (part.number - 1, part.start)
        after: tuple[int, int, int | None] = (part.number, 0, part.offset)
        if part.end is not None:
            after = (part.number - 1, part.end, None)
        done = part.last and part.end is None
        if not self._tables.advance(connection, destination.file, self._epoch, before, after, done=done):
            connection.query(b"ROLLBACK")
            state = self._state(destination)
            if (state.piece, state.step) < before:
                raise SyncError(OLDER, destination.where, cause=f"the file's piece there is {state.piece}")
            return behind(part, state.step, destination.where) if state.piece == before[0] else None, 0
        count = sum(self._insert(connection, statement, part, destination) for statement in part.statements)
        self._tables.count_rows(connection, destination.file, count)
        if part.clamped:
            with connection.cursor() as cursor:
                note_clamped(cursor, self._tables.meta, self._tables.source, part.clamped, destination.file)
        reach("load-piece-commit")
        connection.query(b"COMMIT")
        reach("load-piece-after")
        return None, count

    def _check_packets(self, part: LoadPiece, destination: Destination) -> None:
        """Raise TargetError TARGET-007 for a statement at which the server would cut the connection."""
        longest = max((len(statement) for statement in part.statements), default=0)
        if longest + 64 > self._packet:
            cause = f"a statement of {longest} bytes; max_allowed_packet takes {self._packet}"
            raise TargetError(TOO_LARGE, destination.where, cause)

    def _insert(self, connection: Any, statement: bytes, part: LoadPiece, destination: Destination) -> int:
        """Run one INSERT; return the number of rows that it listed."""
        if part.columns:
            values = ValuesList(part.head, len(statement), part.columns)
            answer = insert(connection, statement, values, self._packet - 64)
        else:
            answer = query(connection, statement)
        if answer.warnings:
            _judge(connection, answer.warnings, destination, self._on_duplicate)
        found = _RECORDS.search(answer.info)
        return int(found[1]) if found else 1

    def _connection(self, destination: Destination) -> Any:
        if self._open is None:
            self._open = connect(self._endpoint, "target", patience_seconds=ROWS_SECONDS)
            rows(self._open, "SET " + ", ".join(f"@@session.{name} = {value}" for name, value in SESSION.items()))
            rows(self._open, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            with self._open.cursor() as cursor:
                list_all_warnings(cursor)
            ((packet,),) = rows(self._open, "SELECT @@max_allowed_packet")
            self._packet = int(packet)
        wanted = (destination.file, destination.settings)
        if self._prepared_for != wanted:
            rows(self._open, "SET NAMES utf8mb4")
            rows(self._open, "SET time_zone = '+00:00'")
            for setting in destination.settings:
                self._open.query(setting)
            self._prepared_for = wanted
        return self._open


def _judge(connection: Any, count: int, destination: Destination, on_duplicate: OnDuplicate) -> None:
    """Raise LoadError LOAD-006 where a warning reports a changed value, LOAD-021 where fewer than `count` are listed.

    Two warnings are harmless: a row that `ignore` left out, and the empty member of an ENUM, which the server stores
    unchanged although it warns.
    """
    found = _listed(connection)
    members = {column.name.lower() for column in destination.source.columns if column.type == "enum"}
    for number, text in found:
        if number == _DUPLICATE and on_duplicate == "ignore":
            continue
        column = _COLUMN.search(text)
        if number == _CUT and column and column[1].lower() in members:
            continue
        values = {"target": str(destination.target)}
        raise LoadError("LOAD-006", destination.where, cause=f"{number}: {text}", values=values)
    if count > len(found):
        raise LoadError("LOAD-021", destination.where, values={"count": count, "listed": len(found)})


def _listed(connection: Any) -> list[tuple[int, str]]:
    """Return number and text of each warning, read as bytes: under `SET NAMES binary` the driver decodes no text."""
    connection.query(b"SHOW WARNINGS")
    found = _mysql.result(connection, 0, {}).fetch_row(0, 0)
    return [(int(number), text.decode(errors="replace")) for _, number, text in found]


def _translated(error: MySQLdb.Error, endpoint: Endpoint, destination: Destination) -> UnshardError:
    number = error.args[0] if error.args else 0
    cause = f"{number}: {error.args[-1]}" if error.args else str(error)
    values = {"target": str(destination.target)}
    if number == _DUPLICATE:
        return LoadError("LOAD-005", destination.where, cause=cause, values=values)
    return server_error(error, endpoint, "target", f"INSERT INTO {destination.target}").at(
        source=destination.where.source, table=destination.where.table, file=destination.where.file
    )
