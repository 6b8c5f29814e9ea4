"""Statements that a server runs for too long to answer: they are ended there, and not sent again.

A server does not learn that the reader has gone away, and would run the statement to its end. So each further attempt
would let one more of them run.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import MySQLdb

from unshard.errors import CompareError, SourceError, UnshardError
from unshard.mysql.connection import Endpoint, Side, rows, session, traits_of
from unshard.mysql.failures import Failure, failure_of

SILENT = "COMPARE-027"
_ALMOST = 0.9
_STILL_RUNS = (
    "SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = %s AND COMMAND <> 'Sleep' AND TIME >= %s"
    " AND USER = SUBSTRING_INDEX(USER(), '@', 1)"
)
"""A server that restarted meanwhile may have given the connection's number to another one."""


def silent_error(
    error: UnshardError, connections: list[tuple[Side, Endpoint, Any]], begun: float
) -> UnshardError | None:
    """Return the error to raise where a statement failed by the server's silence, once it is ended there; else None.

    `connections` are those that the attempt used, which began at `begun` (monotonic).
    """
    met = error.__cause__
    if not isinstance(met, MySQLdb.Error) or failure_of(met) is not Failure.LOST:
        return None
    traits = [found for *_, connection in connections if (found := traits_of(connection)) is not None]
    seconds = min((one.patience_seconds for one in traits), default=0)
    if not seconds or time.monotonic() - begun < seconds * _ALMOST:
        return None
    for side, endpoint, connection in connections:
        _end(side, endpoint, connection, seconds)
    values = {
        "end": "source" if isinstance(error, SourceError) else "target",
        "server": f"{error.values.get('host', '')}:{error.values.get('port', '')}",
        "table": error.where.table or "a table",
        "seconds": seconds,
    }
    return CompareError(SILENT, error.where, error.cause, values)


def _end(side: Side, endpoint: Endpoint, connection: Any, seconds: int) -> None:
    """End a connection at its server if its statement still runs. One that can't be ended is left."""
    with suppress(UnshardError, MySQLdb.Error), session(endpoint, side) as other:
        number = int(connection.thread_id())
        if rows(other, _STILL_RUNS, (number, seconds // 2)):
            rows(other, f"KILL {number}")
