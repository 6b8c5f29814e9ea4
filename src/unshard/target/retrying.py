"""An operation on the target, tried again under the one policy (`unshard.retry`, `mysql.failures`)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import MySQLdb

from unshard.errors import SyncError, UnshardError, Where
from unshard.mysql.connection import Endpoint, server_error
from unshard.mysql.failures import ends_connection
from unshard.retry import ATTEMPTS, retrying
from unshard.target.silent import LOCK_WAIT, end_silent

GIVEN_UP = "SYNC-005"
TOO_LARGE = "TARGET-007"
SHORT_OF_MEMORY = "TARGET-009"
T = TypeVar("T")


class Connection(Protocol):
    """A place for one connection of one thread."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it leads."""

    def get(self) -> Any:
        """The connection, opened where there is none. Raises TargetError."""

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

    A transaction that the server gave up is rolled back on its connection, which stays; one whose connection is in
    doubt goes with it. `tell` hears in words of each failure that is followed by another try. Behind a lock wait,
    sessions that are silent in a transaction on tables of our `schema` are ended (`target.silent`).

    Raises the UnshardError of what isn't transient at once, SyncError SYNC-005 after `attempts`, or once the caller is
    told to give up.
    """
    made, since = 0, ""

    def attempt() -> T:
        nonlocal made
        made += 1
        try:
            return operation(kept.get())
        except MySQLdb.Error as error:
            _undo(kept, error)
            if schema and error.args[:1] == (LOCK_WAIT,):
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
    """Whether a transaction that has failed so may pass in smaller ones: it was too large, or the target had no memory
    for it in any attempt."""
    last = error.__cause__ if error.code == GIVEN_UP and isinstance(error.__cause__, UnshardError) else error
    return last.code in (TOO_LARGE, SHORT_OF_MEMORY)


def _again(error: Exception) -> bool:
    """An operation inside another has had its attempts: they are not multiplied."""
    return isinstance(error, UnshardError) and error.retryable and error.code != GIVEN_UP


def _undo(kept: Connection, error: MySQLdb.Error) -> None:
    if not ends_connection(error):
        with suppress(MySQLdb.Error):
            kept.get().query(b"ROLLBACK")
            return
    kept.drop()
