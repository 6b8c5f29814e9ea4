"""Connections that write rows: one for each worker process and partition, open while they work."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import MySQLdb

from unshard.mysql.connection import ROWS_SECONDS, Endpoint, connect

WRITE_SESSION = {
    "sql_mode": "STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO",
    "unique_checks": "1",
    "sql_notes": "1",
}
"""Settings under which a value is written unchanged or not at all, whatever the user's session has.

Strict, yet zero dates, invalid dates and id 0 are accepted; a digit that is cut off is reported (only as a note).
"""

CUT = 1265
"""`Data truncated for column`: the error with which a strict session refuses the error value."""

FEWEST_IN_BULK = 20
"""The fewest rows for a bulk statement, which has to be prepared once for each connection."""

_PACKET_HEAD = 64
_NO_PRIVILEGE = 1227
_packets: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def writer(endpoint: Endpoint, patience_seconds: int = ROWS_SECONDS) -> Any:
    """Return a new connection that writes rows under WRITE_SESSION and READ COMMITTED. Raises TargetError."""
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
    """Make SHOW WARNINGS list all that a statement may have.

    MySQL requires SESSION_VARIABLES_ADMIN: without it the session stays as it is, and the reader has to compare the
    list with the count.
    """
    try:
        cursor.execute("SET @@session.max_error_count = 65535")
    except MySQLdb.Error as error:
        if error.args[0] != _NO_PRIVILEGE:
            raise


def packet_limit(connection: Any) -> int:
    """Return the limit in bytes of a statement for the server of a `writer`; the packet's head is subtracted."""
    return int(_packets[connection]) - _PACKET_HEAD


class ServerAnswer(NamedTuple):
    """The server's answer to a text of one or more statements.

    `found` rows and `warnings` are counted over all statements; `info` (mysql_info) is of the last one.
    """

    found: int
    info: bytes
    warnings: int


def query(connection: Any, sql: bytes) -> ServerAnswer:
    """Run one text of one or more statements."""
    connection.query(sql)
    found, warnings = int(connection.affected_rows()), int(connection.warning_count())
    while connection.next_result() == 0:
        found += int(connection.affected_rows())
        warnings += int(connection.warning_count())
    info = connection.info() or b""
    return ServerAnswer(found, info if isinstance(info, bytes) else info.encode(), warnings)


@dataclass(frozen=True, slots=True)
class KeptWriter:
    """A slot's connection for writing rows, which a process keeps open. Not for use by two threads at once.

    `owner` distinguishes the threads of a process that write at the same time; a worker process has one such thread.
    """

    endpoint: Endpoint
    slot: int
    owner: str = ""

    def get(self) -> Any:
        """Return the connection, opened when there is none. Raises TargetError."""
        if self not in _kept:
            _kept[self] = connection = writer(self.endpoint)
            if self.owner:
                _channels[self] = socket.socket(fileno=os.dup(connection.fileno()))
        return _kept[self]

    def drop(self) -> None:
        """Close and forget a connection in doubt; the server rolls its open transaction back."""
        connection, channel = _kept.pop(self, None), _channels.pop(self, None)
        if connection is not None:
            connection.close()
        if channel is not None:
            channel.close()


_kept: dict[KeptWriter, Any] = {}
_channels: dict[KeptWriter, socket.socket] = {}
"""The sockets of the connections that have an owner, duplicated: only its thread may ask a connection for its own."""


def drop_writers(owner: str) -> None:
    """Close the process's connections of an owner."""
    for kept in tuple(_channels):
        if kept.owner == owner:
            kept.drop()


def break_off(owner: str) -> None:
    """End the statements that an owner's connections are executing; any thread may call it.

    The thread that waits for such a statement gets the error of a lost connection.
    """
    for kept, channel in tuple(_channels.items()):
        if kept.owner == owner:
            with suppress(OSError):  # its thread has just closed it, or the connection is lost
                channel.shutdown(socket.SHUT_RDWR)
