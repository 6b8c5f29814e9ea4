"""Pieces into the target: the session, one transaction a piece, the server's answers turned into our errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import MySQLdb

from unshard.crash_point import reach
from unshard.errors import LoadError, UnshardError, Where
from unshard.load.checkpoint import FileState, LoadTables
from unshard.load.pieces import Piece
from unshard.model.table import Table, TableName
from unshard.mysql.connection import ROWS_SECONDS, Endpoint, connect, rows, server_error
from unshard.retry import retrying

Result = TypeVar("Result")
OnDuplicate = Literal["error", "replace", "ignore"]
VERBS: dict[OnDuplicate, str] = {"error": "INSERT", "replace": "REPLACE", "ignore": "INSERT IGNORE"}

SESSION = {
    "sql_mode": "'IGNORE_SPACE,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "time_zone": "'+00:00'",
    "foreign_key_checks": "0",
    "unique_checks": "1",
    "max_error_count": "65535",
}
"""DM's lenient mode, so that what an old source holds (zero dates, a broken ENUM) can be written; `_judge` stops
the load where leniency would change a value."""

_DUPLICATE, _CUT = 1062, 1265
_RECORDS = re.compile(rb"Records: (\d+)")
_COLUMN = re.compile(r"for column (?:`[^`]*`\.`[^`]*`\.)?[`']([^`']+)[`']")


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one file's rows go. `source` is the structure they have upstream."""

    target: TableName
    source: Table
    file: str
    settings: tuple[bytes, ...]
    where: Where


class Writer:
    """A target connection for one task; opened again after it is lost. Not for two threads."""

    def __init__(self, endpoint: Endpoint, tables: LoadTables, epoch: int, on_duplicate: OnDuplicate) -> None:
        self._endpoint = endpoint
        self._tables = tables
        self._epoch = epoch
        self._on_duplicate = on_duplicate
        self._open: Any = None
        self._prepared_for: tuple[str, tuple[bytes, ...]] | None = None
        self._packet = 0

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back. Idempotent."""
        if self._open is not None:
            self._open.close()
        self._open, self._prepared_for = None, None

    def state(self, destination: Destination) -> FileState:
        """The file's checkpoint. Raises LoadError LOAD-007 when this attempt is a zombie."""
        return retrying(lambda: self._guarded(destination, lambda: self._state(destination)))

    def apply(self, piece: Piece, destination: Destination) -> None:
        """Load one piece and its checkpoint in one transaction, unless an earlier attempt has.

        Raises LoadError: LOAD-005 duplicate key, LOAD-006 a value that would change, LOAD-007 zombie, LOAD-009 a
        statement too large; TargetError when the target stays out of reach.
        """
        retrying(lambda: self._guarded(destination, lambda: self._attempt(piece, destination)))

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
        if state is None or state.epoch != self._epoch:
            raise LoadError("LOAD-007", destination.where)
        return state

    def _attempt(self, piece: Piece, destination: Destination) -> None:
        connection = self._connection(destination)
        reach("load-piece-before")
        connection.query(b"BEGIN")
        if not self._tables.advance(
            connection, destination.file, self._epoch, piece.number, piece.offset, finished=piece.last
        ):
            connection.query(b"ROLLBACK")
            if self._state(destination).piece < piece.number:
                raise LoadError("LOAD-007", destination.where)
            return
        count = sum(self._insert(connection, statement, destination) for statement in piece.statements)
        self._tables.count_rows(connection, destination.file, count)
        reach("load-piece-commit")
        connection.query(b"COMMIT")
        reach("load-piece-after")

    def _insert(self, connection: Any, statement: bytes, destination: Destination) -> int:
        """Run one INSERT; the number of rows that it listed."""
        if len(statement) + 64 > self._packet:
            values = {"size": len(statement), "limit": self._packet}
            raise LoadError("LOAD-009", destination.where, values=values)
        connection.query(statement)
        info = connection.info() or b""  # before SHOW WARNINGS, which would replace it
        if connection.warning_count():
            _judge(connection, destination, self._on_duplicate)
        found = _RECORDS.search(info if isinstance(info, bytes) else info.encode())
        return int(found[1]) if found else 1

    def _connection(self, destination: Destination) -> Any:
        if self._open is None:
            self._open = connect(self._endpoint, "target", patience_seconds=ROWS_SECONDS)
            rows(self._open, "SET " + ", ".join(f"@@session.{name} = {value}" for name, value in SESSION.items()))
            rows(self._open, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
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


def _judge(connection: Any, destination: Destination, on_duplicate: OnDuplicate) -> None:
    """Stop where a warning tells of a changed value. Two are harmless: a row that `ignore` left out, and the
    empty member of an ENUM, which the server stores as it was but complains of."""
    found = rows(connection, "SHOW WARNINGS")
    members = {column.name.lower() for column in destination.source.columns if column.type == "enum"}
    for _, number, text in found:
        if int(number) == _DUPLICATE and on_duplicate == "ignore":
            continue
        column = _COLUMN.search(text)
        if int(number) == _CUT and column and column[1].lower() in members:
            continue
        values = {"target": str(destination.target)}
        raise LoadError("LOAD-006", destination.where, cause=f"{number}: {text}", values=values)


def _translated(error: MySQLdb.Error, endpoint: Endpoint, destination: Destination) -> UnshardError:
    number = error.args[0] if error.args else 0
    cause = f"{number}: {error.args[-1]}" if error.args else str(error)
    values = {"target": str(destination.target)}
    if number == _DUPLICATE:
        return LoadError("LOAD-005", destination.where, cause=cause, values=values)
    return server_error(error, endpoint, "target", f"INSERT INTO {destination.target}").at(
        source=destination.where.source, table=destination.where.table, file=destination.where.file
    )
