"""A server's error numbers, sorted by what to do about them: the one place that knows which are worth another try.

Numbers are MySQL's and MariaDB's own, those of the client library (2000 to 2061) and TiDB's (8000 and up). Where they
differ by version, the text that comes with them decides.
"""

from __future__ import annotations

from enum import Enum

import MySQLdb

UNREACHABLE = frozenset({1040, 1129, 1135, 1203, 1226, 2002, 2003, 2005, 2012})
"""No connection now: the server is away, its own or the account's connections are used up, no thread to be had."""

REFUSED = frozenset({1044, 1045, 1698, 1130})
LOST = frozenset(
    {1053, 1152, 1158, 1159, 1160, 1161, 1184, 1317, 1835, 1927, 2006, 2013, 2014, 2027, 2055, 3168, 3169, 4031}
)
"""The connection is gone or in doubt: cut, killed, garbled, or the server is shutting down."""

BUSY = frozenset({1020, 1037, 1041, 1205, 1213, 1614, 1637, 1969, 3024, 3101})
"""Deadlocks, lock waits, conflicts and statements cut short by a limit of time or memory; the work was undone."""

TIDB_BUSY = frozenset(
    {8002, 8005, 8020, 8022, 8024, 8027, 8028, 8120, 8229, 8245, 8252, *range(9001, 9009), 9010, 9011, 9012, 9013}
)
"""TiDB's, with the same outcome: write conflicts, a schema that is just changing, PD, TiKV or TiFlash busy or away."""

SHORT_OF_MEMORY = frozenset({8176, 8180})
"""TiDB as a whole has no memory left, and ended the statement that used most of it, or has none to give. It may have
some again in a while; a smaller transaction needs less of it."""

READ_ONLY = frozenset({1792, 1836})
TOO_LARGE = frozenset({1153, 1197, 1206, 2020, 8001, 8004, 8025, 8175})
"""A transaction or a statement beyond a limit of the server. Smaller ones may pass, the same one never will."""

TLS = frozenset({2026, 3159})
"""No encrypted connection comes about, or the server takes no other."""

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
"""How servers tell it that have no number for it yet, those of 7.5 among them."""


class Failure(Enum):
    """What a driver error means for the operation that met it."""

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
"""The operation is tried again as it is; any other failure stops it at once."""

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
    """The kind of a driver error. Pure."""
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
    return failure_of(error) in TRANSIENT


def ends_connection(error: MySQLdb.Error) -> bool:
    """Whether the connection is gone or in doubt, and its session with it."""
    return failure_of(error) in (Failure.UNREACHABLE, Failure.LOST) or error.args[:1] in ((1153,), (2020,))
