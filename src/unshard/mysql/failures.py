"""A server's error numbers, sorted by how to react. The only place that knows which errors are worth another attempt.

Numbers are MySQL's and MariaDB's own, those of the client library (2000 to 2061) and TiDB's (8000 and up). Where
versions differ in the number, the error's text decides.
"""

from __future__ import annotations

from enum import Enum

import MySQLdb

UNREACHABLE = frozenset({1040, 1129, 1135, 1203, 1226, 2002, 2003, 2005, 2012})
"""No connection can be made now: the server is down, it has no thread left, or its or the account's limit of
connections is reached.
"""

REFUSED = frozenset({1044, 1045, 1698, 1130})
LOST = frozenset(
    {1053, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1835, 1927, 2006, 2013, 2014, 2027, 2055, 3168, 3169, 4031}
)
"""The connection is lost or in doubt: cut, killed, garbled, or the server is shutting down."""

BUSY = frozenset({1020, 1037, 1041, 1205, 1213, 1614, 1637, 1969, 3024, 3101})
"""Deadlocks, lock waits, conflicts, and statements that a limit of time or memory ended.

The server has rolled back the work.
"""

TIDB_BUSY = frozenset(
    {8002, 8005, 8020, 8022, 8024, 8027, 8028, 8120, 8229, 8245, 8252, *range(9001, 9009), 9010, 9011, 9012, 9013}
)
"""The same for TiDB: write conflicts, a schema that is being changed, PD, TiKV or TiFlash busy or unreachable."""

SHORT_OF_MEMORY = frozenset({8176, 8180})
"""The TiDB server has no memory left: it ended the statement that used most of it, or has none to give.

It may have memory again later; a smaller transaction needs less of it.
"""

READ_ONLY = frozenset({1792, 1836})
TOO_LARGE = frozenset({1153, 1197, 1206, 2020, 8001, 8004, 8025, 8175})
"""A transaction or a statement exceeds a limit of the server. A smaller one may succeed, the same one never will."""

TLS = frozenset({2026, 3159})
"""No encrypted connection can be made, or the server accepts only encrypted ones."""

_NO_USER_LOCKS = frozenset({1235, 1305})
"""Errors of GET_LOCK where there is none: TiDB before 6.1, some versions of MariaDB's Galera."""

_OPTION_PREVENTS = 1290
_UNKNOWN = 1105
_READ_ONLY_WORDS = ("read-only", "read_only")
_TIDB_BUSY_WORDS = ("write conflict", "try again later", "schema is out of date", "tikv aborts txn")
_TIDB_TOO_LARGE_WORDS = (
    "out of memory quota",
    "memory limit for a single sql query",
    "transaction is too large",
    "entry too large",
)
_TIDB_MEMORY_WORDS = ("memory limit for the tidb-server instance",)
"""Texts of servers that have no number for the error yet, TiDB 7.5 among them."""


class Failure(Enum):
    """The kind of a driver error, by what it means for the operation that met it."""

    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    LOST = "lost"
    BUSY = "busy"
    READ_ONLY = "read only"
    TOO_LARGE = "too large"
    SHORT_OF_MEMORY = "short of memory"
    TLS = "tls"
    OTHER = "other"


TRANSIENT = frozenset({Failure.UNREACHABLE, Failure.LOST, Failure.BUSY, Failure.READ_ONLY, Failure.SHORT_OF_MEMORY})
"""Failures after which the operation is tried again unchanged. Any other failure stops it at once."""

_KINDS = {
    number: kind
    for kind, numbers in (
        (Failure.UNREACHABLE, UNREACHABLE),
        (Failure.REFUSED, REFUSED),
        (Failure.LOST, LOST),
        (Failure.BUSY, BUSY | TIDB_BUSY),
        (Failure.READ_ONLY, READ_ONLY),
        (Failure.TOO_LARGE, TOO_LARGE),
        (Failure.SHORT_OF_MEMORY, SHORT_OF_MEMORY),
        (Failure.TLS, TLS),
    )
    for number in numbers
}


def failure_of(error: MySQLdb.Error) -> Failure:
    """Return the kind of a driver error. Pure."""
    number = error.args[0] if error.args else 0
    text = str(error.args[-1]).lower() if error.args else ""
    if number == _OPTION_PREVENTS and any(words in text for words in _READ_ONLY_WORDS):
        return Failure.READ_ONLY
    if number == _UNKNOWN:
        if any(words in text for words in _TIDB_TOO_LARGE_WORDS):
            return Failure.TOO_LARGE
        if any(words in text for words in _TIDB_MEMORY_WORDS):
            return Failure.SHORT_OF_MEMORY
        return Failure.BUSY if any(words in text for words in _TIDB_BUSY_WORDS) else Failure.OTHER
    return _KINDS.get(number, Failure.OTHER)


def is_transient(error: MySQLdb.Error) -> bool:
    """Return whether the same statement may succeed later, with nothing changed."""
    return failure_of(error) in TRANSIENT


def ends_connection(error: MySQLdb.Error) -> bool:
    """Return whether the error means that the connection, and its session, is lost or in doubt."""
    return failure_of(error) in (Failure.UNREACHABLE, Failure.LOST) or error.args[:1] in ((1153,), (2020,))


def lacks_user_locks(error: MySQLdb.Error) -> bool:
    """Return whether a GET_LOCK failed because the server has none. A strict PXC names it in an error of any number."""
    return error.args[0] in _NO_USER_LOCKS or "GET_LOCK" in str(error)
