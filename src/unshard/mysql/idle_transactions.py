"""The target is asked to end a session of ours that falls silent in the middle of a transaction.

A process that is frozen there, or cut off without a word, keeps its rows locked until the server ends its session, and
whoever has its source by then waits for them (TARGET-005). MariaDB and TiDB (7.6) end it in time where the session asks
for that. MySQL has nothing of the kind.
"""

from __future__ import annotations

from typing import Any

import MySQLdb

from unshard.log import logger
from unshard.mysql.failures import ends_connection

SECONDS = 30
"""How long a transaction of ours may be silent between two of its statements.

Much longer than any step of ours is: what is written is made before the transaction begins, so that between its
statements lie milliseconds, and neither Spark nor its JVM is ever waited for. Shorter than an heir waits for a row by
the one retry policy (`retry.ATTEMPTS`): that many lock waits, of `innodb_lock_wait_timeout` each (50 s, at least 1 s),
and some 36 s of pauses between them; auto-resume comes behind that. Who is silent for longer all the same meets a lost
connection and a transaction that was rolled back: it is done again, once by its receipt.
"""

_VARIABLES = (("mariadb", "idle_transaction_timeout"), ("tidb", "tidb_idle_transaction_timeout"))
"""In seconds, 0 for never; by a word of the version that a server greets with."""


def end_idle_transactions(connection: Any, given: tuple[tuple[str, str], ...]) -> None:
    """Called once for a new session, of any server. What the user has `given`, and a server's own shorter time, stays.

    A server that refuses is worked with. Raises MySQLdb.Error where the connection is lost.
    """
    greeting = connection.get_server_info().lower()
    name = next((name for word, name in _VARIABLES if word in greeting), None)
    if name is None or name in (known.lower() for known, _ in given):
        return
    own = f"@@session.{name}"
    try:
        connection.query(f"SET SESSION {name} = IF({own} BETWEEN 1 AND {SECONDS}, {own}, {SECONDS})")
    except MySQLdb.Error as error:
        if ends_connection(error):
            raise
        logger("target").info("the target does not end idle transactions", error=str(error), sampled=True)
