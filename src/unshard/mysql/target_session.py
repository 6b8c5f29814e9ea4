"""Sets up each new session with the target, according to the server's greeting.

MariaDB and TiDB (7.6) are asked to end the session if it is silent within a transaction. Otherwise the rows of a
process that is frozen there, or cut off without notice, stay locked, and the next process of its source waits for them
(TARGET-005). Older TiDB has no such setting; `target.transactions` ends such a session there. MySQL has none either.

On TiDB, whose own version is parsed from the greeting, the session also gets the settings that receipts and row counts
depend on, whatever the cluster's global variables are. Transactions lock the rows that they change, and find another
transaction's change or a duplicate at the statement and not at COMMIT. A statement reads what is committed at that
time. TiDB never repeats a transaction by itself. An AUTO_RANDOM column accepts the source's values. Transactions that
write rows begin differently (`target.transactions`).
"""

from __future__ import annotations

import re
from typing import Any

import MySQLdb

from unshard.mysql.failures import ends_connection

IDLE_SECONDS = 30
"""How long one of our transactions may be silent between two statements, in seconds.

Much longer than any step within a transaction: all that is written is prepared before the transaction begins, so
milliseconds pass between its statements, and they never wait for Spark or its JVM. Shorter than the time that the next
process waits for a row under the one retry policy (`retry.ATTEMPTS`): that many lock waits of
`innodb_lock_wait_timeout` each (50 s, at least 1 s), some 36 s of pauses between them, and auto-resume after that. A
process that is silent for longer finds its connection lost and its transaction rolled back; the work is then repeated,
and its receipt ensures that it is applied once.
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
"""The variables that limit an idle transaction, in seconds; 0 means no limit."""
_TIDB_ENDS_IDLE = (7, 6, 0)


def begin_session(connection: Any, given: tuple[tuple[str, str], ...]) -> None:
    """Set up a new session of any server. Called once for each.

    The variables that the user has set, `given`, are kept, except for those in `_TIDB`. Raises MySQLdb.Error.
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
            from unshard.log import logger  # not above: Spark worker processes rarely log

            logger("target").info("the target does not end idle transactions", error=str(error), sampled=True)


def _set(connection: Any, variables: dict[str, str]) -> None:
    """Set the variables in one statement.

    Leaves out `tidb_retry_limit` if a later TiDB no longer has it, as it no longer retries either.
    """
    try:
        connection.query("SET " + ", ".join(f"@@session.{name} = {value}" for name, value in variables.items()))
    except MySQLdb.Error as error:
        left = {name: value for name, value in variables.items() if name != _RETRIES}
        if error.args[0] != _UNKNOWN_VARIABLE or left == variables:
            raise
        _set(connection, left)


def _shorter(name: str) -> str:
    """Return SQL for our limit, or for the server's own if that is shorter."""
    own = f"@@session.{name}"
    return f"IF({own} BETWEEN 1 AND {IDLE_SECONDS}, {own}, {IDLE_SECONDS})"


_VERSION = re.compile(r"-TiDB-v?(\d+)\.(\d+)\.(\d+)", re.IGNORECASE)


def tidb_version(version_text: str) -> tuple[int, int, int] | None:
    """Return TiDB's own version in the text of `VERSION()` (`8.0.11-TiDB-v7.5.4`); None for a text without one."""
    found = _VERSION.search(version_text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None
