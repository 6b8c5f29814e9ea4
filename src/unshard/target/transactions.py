"""Transactions on the target: their begin and their retries.

An operation is tried again under the one policy (`unshard.retry`, `mysql.failures`).

On TiDB the first attempt is optimistic.

| transaction | its rows | another session's change, a duplicate |
|---|---|---|
| optimistic | are not locked before COMMIT | make COMMIT fail (9007, 1062): nothing of it is written |
| pessimistic | are locked by each statement | are waited for, or reported by the statement |

Locks cost TiDB a third of the time of a large INSERT, and one more round trip to its store for each statement. Other
sessions seldom write our rows meanwhile. Where an optimistic transaction fails, its work is done again at once in a
pessimistic one, whose result counts: it waits for locks that it meets, and an error names the statement. Other servers
always lock.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import MySQLdb

from unshard.errors import SyncError, UnshardError, Where
from unshard.mysql.connection import Endpoint, server_error
from unshard.mysql.failures import Failure, ends_connection, failure_of
from unshard.mysql.tidb import is_tidb
from unshard.retry import ATTEMPTS, retrying

GIVEN_UP = "SYNC-005"
TOO_LARGE = "TARGET-007"
SHORT_OF_MEMORY = "TARGET-009"
_LOCK_WAIT = 1205
T = TypeVar("T")


class Connection(Protocol):
    """The holder of one connection, which is opened on demand and used by one thread."""

    @property
    def endpoint(self) -> Endpoint:
        """The server that it connects to."""

    def get(self) -> Any:
        """Return the connection, opened where there is none. Raises TargetError."""

    def drop(self) -> None:
        """Close and forget it, if there is one."""


def on_target(
    kept: Connection,
    operation: Callable[[Any], T],
    where: Where,
    attempts: int = ATTEMPTS,
    tell: Callable[[str], None] = lambda words: None,
    schema: str = "",
) -> T:
    """Run `operation(connection)`, again while its failure is transient; it must be one that may run twice.

    A transaction that the server gave up is rolled back and its connection stays; a connection in doubt is dropped, and
    one to a server that has become read-only: another server may have taken over its address.
    `tell` is called with a text for each failure that is followed by another attempt. After a lock wait, sessions that
    are silent in a transaction on tables of our `schema` are ended.

    Raises the UnshardError of a failure that isn't transient at once, SyncError SYNC-005 after `attempts`, or once the
    thread has to give up (`retry.given_up`).
    """
    made, since = 0, ""

    def attempt() -> T:
        nonlocal made
        made += 1
        try:
            return operation(kept.get())
        except MySQLdb.Error as error:
            _undo(kept, error)
            if schema and error.args[:1] == (_LOCK_WAIT,):
                from unshard.target.silent_sessions import end_silent

                with suppress(MySQLdb.Error, UnshardError):  # the next attempt meets the same trouble
                    end_silent(kept.get(), schema)
            raise server_error(error, kept.endpoint, "target") from error

    def again(error: Exception) -> bool:
        nonlocal since
        worth = _again(error)
        if worth and isinstance(error, UnshardError):
            since = since or f"{datetime.now(UTC):%H:%M:%S} UTC"
            tell(f"tried again since {since}, attempt {made + 1}, the last error: {error.cause or error.message}")
        return worth

    try:
        return retrying(attempt, again, attempts)
    except UnshardError as failure:
        found = failure.at(source=where.source, position=where.position)
        if not _again(found):
            raise found from failure
        raise SyncError(GIVEN_UP, where, cause=str(found), values={"attempts": made}) from failure


def may_pass_smaller(error: UnshardError) -> bool:
    """Return whether a failed transaction may succeed in smaller parts.

    It may where it was too large, or where the target had no memory for it in any attempt.
    """
    last = error.__cause__ if error.code == GIVEN_UP and isinstance(error.__cause__, UnshardError) else error
    return last.code in (TOO_LARGE, SHORT_OF_MEMORY)


def _again(error: Exception) -> bool:
    """Return whether to try again.

    Not for an operation that has used its attempts inside another: they are not multiplied.
    """
    return isinstance(error, UnshardError) and error.retryable and error.code != GIVEN_UP


def _undo(kept: Connection, error: MySQLdb.Error) -> None:
    if not ends_connection(error) and failure_of(error) is not Failure.READ_ONLY:
        with suppress(MySQLdb.Error):
            kept.get().query(b"ROLLBACK")
            return
    kept.drop()


BEGIN, _OPTIMISTIC = b"BEGIN", b"BEGIN OPTIMISTIC"
_NOT_FOR_LOCKS = frozenset(
    {Failure.UNREACHABLE, Failure.LOST, Failure.READ_ONLY, Failure.TOO_LARGE, Failure.SHORT_OF_MEMORY}
)
"""Failures that a transaction with locks would meet too, or that leave the connection, and the result, in doubt."""


def in_transaction(connection: Any, transaction: Callable[[bytes], T], *, may_be_optimistic: bool = True) -> T:
    """Call `transaction` with the statement that begins it; return its result. It commits by itself.

    It must be one that may run twice: a receipt in it shows an attempt that has been committed. Raises what it raises.
    """
    if not may_be_optimistic or not is_tidb(connection):
        return transaction(BEGIN)
    try:
        return transaction(_OPTIMISTIC)
    except MySQLdb.Error as error:
        if failure_of(error) in _NOT_FOR_LOCKS:
            raise
    except UnshardError as error:
        if error.code == TOO_LARGE:
            raise
    connection.query(b"ROLLBACK")
    return transaction(BEGIN)


_DUPLICATE = 1062
_ATTEMPTS = 5


def upsert(cursor: Any, statement: str, values: Any) -> None:
    """Run an INSERT … ON DUPLICATE KEY UPDATE in the caller's transaction, which must be a pessimistic one on TiDB.

    Where two transactions insert the same row at once, TiDB may report a duplicate to one of them in place of updating
    the row. That statement is undone and the transaction goes on. Then the row exists, and the statement is run again.
    Raises MySQLdb.Error.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            cursor.execute(statement, values)
            return
        except MySQLdb.IntegrityError as error:
            if error.args[0] != _DUPLICATE or attempt == _ATTEMPTS:
                raise
