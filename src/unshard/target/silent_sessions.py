"""The end of sessions that an earlier process has left silent in a transaction.

A process that is frozen between two statements, or cut off without notice, keeps the row of its receipt locked, and
TiDB before 7.6 does not end its session. Its successor waits for that row first (`target.receipts`, `load.checkpoint`):
it looks for such sessions before that, and after each lock wait, and ends them. Their changes are rolled back; TiDB
releases their locks when these expire, 20 s later at most. This only shortens the wait. What a frozen process sends
when it wakes is refused by the receipts alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import MySQLdb

from unshard.mysql.connection import rows
from unshard.mysql.failures import ends_connection
from unshard.mysql.target_session import IDLE_SECONDS
from unshard.mysql.tidb import is_tidb, of_all_servers

CLAIM_WAIT_SECONDS = 5
"""How long a claim waits for a row at a time on TiDB; the whole wait lasts until the silent session is ended."""


def end_silent(connection: Any, schema: str) -> None:
    """End the sessions that have been silent for IDLE_SECONDS in a transaction on tables of our `schema`.

    Those are the sessions of the same account, or of all accounts where this one may see and end them. Does nothing on
    another server than TiDB. Raises MySQLdb.Error where the connection is lost.
    """
    if not is_tidb(connection):
        return
    from unshard.log import logger  # not above: Spark worker processes rarely log

    try:
        tables = rows(
            connection, "SELECT TIDB_TABLE_ID FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", (schema,)
        )
        ours = {str(number) for (number,) in tables}
        found = rows(
            connection,
            f"SELECT t.SESSION_ID, t.RELATED_TABLE_IDS, p.TIME FROM {of_all_servers(connection, 'TIDB_TRX')} t"
            f" JOIN {of_all_servers(connection, 'PROCESSLIST')} p ON p.ID = t.SESSION_ID"
            " WHERE t.STATE = 'Idle' AND p.COMMAND = 'Sleep' AND p.TIME >= %s",
            (IDLE_SECONDS,),
        )
        for session, touched, seconds in found:
            if ours.intersection(str(touched).split(",")):
                logger("target").warning(
                    "ends a session that is silent in a transaction on our tables", connection=session, seconds=seconds
                )
                rows(connection, f"KILL {int(session)}")
    except MySQLdb.Error as error:
        if ends_connection(error):
            raise
        logger("target").warning("silent sessions can't be looked for or ended", error=str(error), sampled=True)


@contextmanager
def claiming(connection: Any, schema: str) -> Iterator[None]:
    """Shorten the lock wait for a claim, which waits for transactions of earlier processes and is tried again.

    Raises MySQLdb.Error where the connection is lost.
    """
    if not is_tidb(connection):
        yield
        return
    end_silent(connection, schema)
    ((seconds,),) = rows(connection, "SELECT @@session.innodb_lock_wait_timeout")
    rows(connection, f"SET SESSION innodb_lock_wait_timeout = {min(int(seconds), CLAIM_WAIT_SECONDS)}")
    try:
        yield
    finally:
        with suppress(MySQLdb.Error):  # a lost connection has lost its session too
            rows(connection, f"SET SESSION innodb_lock_wait_timeout = {int(seconds)}")
