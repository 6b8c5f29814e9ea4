"""Connections that write rows: one a worker process and partition, kept while they work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import MySQLdb

from unshard.mysql.connection import ROWS_SECONDS, Endpoint, connect

WRITE_SESSION = {
    "sql_mode": "STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO",
    "unique_checks": "1",
    "sql_notes": "1",
}
"""What is written must arrive as it was or not at all, whatever the user's session says: strict, yet zero dates,
invalid dates and id 0 pass; and a digit that is cut off is told (it is no more than a note)."""


_PACKET_HEAD = 64
_NO_PRIVILEGE = 1227
_packets: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def writer(endpoint: Endpoint, patience_seconds: int = ROWS_SECONDS) -> Any:
    """A new connection that writes rows under WRITE_SESSION and READ COMMITTED. Raises TargetError."""
    session = {"foreign_key_checks": "0", **dict(endpoint.session), **WRITE_SESSION}
    ours = replace(endpoint, session=tuple(session.items()))
    connection = connect(ours, "target", patience_seconds=patience_seconds)
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        list_all_warnings(cursor)
        cursor.execute("SELECT @@max_allowed_packet")
        ((_packets[connection],),) = cursor.fetchall()
    return connection


def list_all_warnings(cursor: Any) -> None:
    """Have SHOW WARNINGS list all that a statement may have. MySQL asks for SESSION_VARIABLES_ADMIN: without it the
    session stays as it is, and the reader has to compare the list with the count."""
    try:
        cursor.execute("SET @@session.max_error_count = 65535")
    except MySQLdb.Error as error:
        if error.args[0] != _NO_PRIVILEGE:
            raise


def packet_limit(connection: Any) -> int:
    """The bytes from which on the server of a `writer` takes no statement, with its head."""
    return int(_packets[connection]) - _PACKET_HEAD


@dataclass(frozen=True, slots=True)
class KeptWriter:
    """The process's connection for a slot. Not for use by two threads at once."""

    endpoint: Endpoint
    slot: int

    def get(self) -> Any:
        """The connection, opened when there is none. Raises TargetError."""
        if self not in _kept:
            _kept[self] = writer(self.endpoint)
        return _kept[self]

    def drop(self) -> None:
        """Close and forget a connection in doubt; its open transaction is rolled back by the server."""
        connection = _kept.pop(self, None)
        if connection is not None:
            connection.close()


_kept: dict[KeptWriter, Any] = {}
