"""What every session with the target is told once, by the server that greets it.

Of MariaDB and TiDB (7.6) it asks to be ended where it falls silent in the middle of a transaction. A process that is
frozen there, or cut off without a word, keeps its rows locked until then, and whoever has its source by then waits for
them (TARGET-005). Older TiDB has nothing of the kind: `target.silent` ends such a session there. Nor has MySQL.

To TiDB it says what receipts and counts of rows rest on, whatever the cluster's global variables are: transactions
lock what they change and meet another's change or a duplicate at the statement and not at COMMIT, a statement reads
what is committed by then, and TiDB runs none of them a second time by itself. Transactions of rows begin otherwise
(`target.transactions`). And an AUTO_RANDOM column takes the source's values.
"""

from __future__ import annotations

from typing import Any

import MySQLdb

from unshard.log import logger
from unshard.mysql.failures import ends_connection
from unshard.mysql.tidb_version import tidb_version

IDLE_SECONDS = 30
"""How long a transaction of ours may be silent between two of its statements.

Much longer than any step of ours is: what is written is made before the transaction begins, so that between its
statements lie milliseconds, and neither Spark nor its JVM is ever waited for. Shorter than an heir waits for a row by
the one retry policy (`retry.ATTEMPTS`): that many lock waits, of `innodb_lock_wait_timeout` each (50 s, at least 1 s),
and some 36 s of pauses between them; auto-resume comes behind that. Who is silent for longer all the same meets a lost
connection and a transaction that was rolled back: it is done again, once by its receipt.
"""

_UNKNOWN_VARIABLE = 1193
_RETRIES = "tidb_retry_limit"
_TIDB = {
    "tidb_txn_mode": "'pessimistic'",
    "transaction_isolation": "'READ-COMMITTED'",
    "tidb_constraint_check_in_place_pessimistic": "1",
    _RETRIES: "0",
    "allow_auto_random_explicit_insert": "1",
}
_IDLE_MARIADB, _IDLE_TIDB = "idle_transaction_timeout", "tidb_idle_transaction_timeout"
"""In seconds, 0 for never."""
_TIDB_ENDS_IDLE = (7, 6, 0)


def begin_session(connection: Any, given: tuple[tuple[str, str], ...]) -> None:
    """Called once for a new session, of any server. What the user has `given` stays, but for what TiDB is told.

    Raises MySQLdb.Error.
    """
    greeting = connection.get_server_info()
    names = {name.lower() for name, _ in given}
    if version := tidb_version(greeting):
        variables = dict(_TIDB)
        if "foreign_key_checks" not in names:
            variables["foreign_key_checks"] = "0"
        if version >= _TIDB_ENDS_IDLE and _IDLE_TIDB not in names:
            variables[_IDLE_TIDB] = _shorter(_IDLE_TIDB)
        _set(connection, variables)
    elif "mariadb" in greeting.lower() and _IDLE_MARIADB not in names:
        try:
            connection.query(f"SET SESSION {_IDLE_MARIADB} = {_shorter(_IDLE_MARIADB)}")
        except MySQLdb.Error as error:
            if ends_connection(error):
                raise
            logger("target").info("the target does not end idle transactions", error=str(error), sampled=True)


def _set(connection: Any, variables: dict[str, str]) -> None:
    """Say it in one statement; without what a later TiDB no longer has, for it does not do it any more."""
    try:
        connection.query("SET " + ", ".join(f"@@session.{name} = {value}" for name, value in variables.items()))
    except MySQLdb.Error as error:
        left = {name: value for name, value in variables.items() if name != _RETRIES}
        if error.args[0] != _UNKNOWN_VARIABLE or left == variables:
            raise
        _set(connection, left)


def _shorter(name: str) -> str:
    """Our time, or the server's own where that is shorter."""
    own = f"@@session.{name}"
    return f"IF({own} BETWEEN 1 AND {IDLE_SECONDS}, {own}, {IDLE_SECONDS})"
