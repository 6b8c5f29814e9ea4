"""Rows of either side as batches in one form: columns of the target, in its order, with canonical values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import MySQLdb
import numpy as np
import pyarrow as pa

from unshard.compare.executor.canonical import canonical
from unshard.compare.executor.silent import silent_error
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.dump.read import read_rows
from unshard.errors import CompareError, SourceError, TargetError, UnshardError, Where, is_retryable
from unshard.kernels.literals import hash_of, render
from unshard.mysql.connection import READ_SECONDS, Endpoint, Side, connect, server_error
from unshard.retry import rest, retrying
from unshard.source.snapshot import ask, open_reader, start_snapshot
from unshard.transform.column_mapping import apply_mapping
from unshard.transform.extract import append_constants

PATIENCE_SECONDS = 20
"""The seconds for which a server that is away is asked again: it may restart, or be replaced by another one."""

LONGEST_SECONDS = 300
"""The seconds after the first failure in which attempts begin, where each takes long: a host that does not answer."""

_PAUSE_SECONDS = 0.5
T = TypeVar("T")

LOCK_WAIT_SECONDS = 3
"""Time limit of a locking read that waits for a writer; it may have locked other rows already."""

TABLE_LOCK_SECONDS = 3
"""Time limit of a statement that waits for a lock on its table: LOCK TABLES, or an ALTER TABLE."""

LOCKED = "COMPARE-026"
_LOCK_WAIT_OVER = frozenset({1205, 8020})

_TIMES = (
    "max_statement_time",
    "max_execution_time",
    "idle_transaction_timeout",
    "tidb_idle_transaction_timeout",
)
"""Limits that would end a reader, by server: for long statements, and for a snapshot that is idle meanwhile."""

_UNKNOWN_VARIABLE = 1193
_CLOSED = "SET @@session.sql_mode = '', @@session.time_zone = '+00:00'"


def asked_again(operation: Callable[[], T]) -> T:
    """Return the operation's result. It is tried again where a server is out of reach or busy.

    That lasts for PATIENCE_SECONDS, and where attempts take long, for no more than LONGEST_SECONDS after the first
    failure. Raises what the last attempt raised, and CompareError COMPARE-026 at once where a table is locked.
    """
    attempts = int(PATIENCE_SECONDS / _PAUSE_SECONDS)
    failed: list[float] = []

    def again(error: Exception) -> bool:
        failed.append(time.monotonic())
        return _again(error) and failed[-1] - failed[0] < LONGEST_SECONDS

    return retrying(partial(_unless_locked, operation), again, attempts, lambda _: rest(_PAUSE_SECONDS))


def _again(error: Exception) -> bool:
    return is_retryable(error) and not (isinstance(error, UnshardError) and error.code == LOCKED)


def _unless_locked(operation: Callable[[], T]) -> T:
    try:
        return operation()
    except (SourceError, TargetError) as error:
        met = error.__cause__
        if not isinstance(met, MySQLdb.Error) or met.args[0] not in _LOCK_WAIT_OVER:
            raise
        end: Side = "source" if isinstance(error, SourceError) else "target"
        server = f"{error.values['host']}:{error.values['port']}"
        raise locked_error(end, server, error.where, error.cause) from error


def locked_error(end: Side, server: str, where: Where, cause: str) -> CompareError:
    """Return the error of a table that is locked for longer than a statement waits."""
    values = {"end": end, "server": server, "table": where.table or "a table", "seconds": TABLE_LOCK_SECONDS}
    return CompareError(LOCKED, where, cause, values)


def limit_lock_waits(connection: Any) -> None:
    """Let statements of a connection wait for the lock of a table for no longer than TABLE_LOCK_SECONDS."""
    try:
        ask(connection, f"SET SESSION lock_wait_timeout = {TABLE_LOCK_SECONDS}")
    except MySQLdb.Error as error:
        if error.args[0] != _UNKNOWN_VARIABLE:
            raise


@dataclass(slots=True)
class SideConnections:
    """The connections of one Spark task, one to each server, each with one snapshot of the rows until the task ends.

    With `snapshot=False` each has an open transaction instead, for reads that lock.
    """

    snapshot: bool = True
    _begun: float = field(default_factory=time.monotonic)
    _open: dict[tuple[Side, Endpoint], Any] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def get(self, endpoint: Endpoint, side: Side) -> Any:
        """Return a connection that returns bytes, opened at its first use. Raises SourceError, TargetError."""
        found = self._open.get((side, endpoint))
        if found is None:
            try:
                found = open_reader(endpoint, text=False) if side == "source" else open_target_reader(endpoint)
                self._stack.callback(found.close)
                limit_lock_waits(found)
                if self.snapshot:
                    start_snapshot(found)
                else:
                    ask(found, f"SET SESSION innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}")
                    ask(found, "START TRANSACTION")
            except MySQLdb.Error as error:
                raise server_error(error, endpoint, side, "opening a snapshot") from error
            self._open[side, endpoint] = found
        return found

    def lost(self) -> dict[Endpoint, str]:
        """Return the sources whose transaction has ended, and its locks with it, each with the server's answer."""
        found = {}
        for (side, endpoint), connection in self._open.items():
            try:
                if side == "source":
                    ask(connection, "SELECT 1")
            except MySQLdb.Error as error:
                found[endpoint] = str(error.args[-1] if error.args else error)
        return found

    def __enter__(self) -> SideConnections:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Close all. Raises CompareError COMPARE-027 for a statement that failed by its server's silence."""
        try:
            if isinstance(error, UnshardError):
                used = [(side, endpoint, connection) for (side, endpoint), connection in self._open.items()]
                found = silent_error(error, used, self._begun)
                if found is not None:
                    raise found from error
        finally:
            self.close()

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self._open.clear()
        self._stack.close()


def open_target_reader(endpoint: Endpoint) -> Any:
    """Return a connection to the target that reads rows as a source's reader does.

    Its settings are UTC, no padding, repeatable reads.
    """
    connection = connect(endpoint, "target", text=False, patience_seconds=READ_SECONDS)
    ask(connection, _CLOSED)
    ask(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    for name in _TIMES:
        try:
            ask(connection, f"SET @@session.{name} = 0")
        except MySQLdb.Error as error:
            if error.args[0] != _UNKNOWN_VARIABLE:
                raise
    return connection


def reading_shard(shard: ComparedShard) -> AbstractContextManager[None]:
    """Give the errors of a block that reads a source table their place, the driver's as SourceError."""
    return _reading(shard.endpoint, "source", source=shard.source, table=str(shard.table.name))


def reading_target(table: ComparedTable) -> AbstractContextManager[None]:
    """Give the errors of a block that reads the target's table their place, the driver's as TargetError."""
    return _reading(table.endpoint, "target", table=str(table.name))


@contextmanager
def _reading(endpoint: Endpoint, side: Side, **place: str) -> Iterator[None]:
    try:
        yield
    except MySQLdb.Error as error:
        raise server_error(error, endpoint, side, "reading a table").at(**place) from error
    except UnshardError as error:
        raise error.at(**place) from None


def shard_batches(
    connections: SideConnections, table: ComparedTable, shard: ComparedShard, conditions: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a source table in the form that the target should have.

    Raises the errors of mapping and reading.
    """
    connection = connections.get(shard.endpoint, "source")
    with reading_shard(shard):
        for batch in read_rows(connection, shard.read, conditions):
            yield as_target(batch, table, shard)


def as_target(batch: pa.RecordBatch, table: ComparedTable, shard: ComparedShard) -> pa.RecordBatch:
    """Return rows of a source table, with at least its `read` columns, in the form that the target should have."""
    if shard.mapping is not None:
        batch = apply_mapping(batch, shard.mapping)
    return in_form(append_constants(batch, shard.constants), table)


def target_batches(
    connections: SideConnections, table: ComparedTable, conditions: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the target. Raises TargetError, DumpError."""
    connection = connections.get(table.endpoint, "target")
    with reading_target(table):
        for batch in read_rows(connection, table.read, conditions):
            yield in_form(batch, table)


def in_form(batch: pa.RecordBatch, table: ComparedTable) -> pa.RecordBatch:
    """Return rows with at least the columns of the table, in the compared form."""
    names = [name.lower() for name in batch.schema.names]
    arrays = [canonical(batch.column(names.index(c.name.lower())), c.form) for c in table.columns]
    return pa.RecordBatch.from_arrays(arrays, [column.name for column in table.columns])


def row_hashes(batch: pa.RecordBatch, names: Sequence[str] | None = None) -> np.ndarray:
    """Return a 64-bit hash of each row, or of these columns of it. Quotes and escapes keep values and NULL apart."""
    arrays = batch.columns if names is None else [batch.column(name) for name in names]
    if not arrays:
        return np.zeros(len(batch), dtype=np.uint64)
    found: np.ndarray = hash_of(render(list(arrays), [b"("] + [b","] * (len(arrays) - 1), b")"))
    return found


def key_literals(batch: pa.RecordBatch, table: ComparedTable) -> list[tuple[str, ...]]:
    """Return the key of each row as SQL literals. Each is a Python object: use it for rows that differ."""
    columns = []
    for name in table.key:
        bare = [table.read.column(name).type == "decimal"]
        columns.append([text.decode() for text in render([batch.column(name)], [b""], b"", bare).to_pylist()])
    return list(zip(*columns, strict=True))
