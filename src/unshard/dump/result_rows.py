"""Reads the rows of a large result as Arrow columns, off the socket of the driver's connection.

The driver would make a Python object of each value. It sends the query here, and `kernels.result_rows` reads the whole
answer, so that the driver finds its connection as it left it. That is done with MariaDB's client library and without
encryption only; other connections have no such socket.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import MySQLdb
import pyarrow as pa

from unshard.kernels.result_rows import (
    BROKEN,
    END,
    ERROR,
    INTERRUPTED,
    NO_MEMORY,
    ROWS,
    SILENT,
    ResultRows,
)
from unshard.mysql.connection import traits_of

_sockets: WeakKeyDictionary[Any, int | None] = WeakKeyDictionary()
_LOST, _MALFORMED = 2013, 2027  # the C driver's own numbers
_STATE = b"#"
_STATE_LENGTH = 6


def plain_socket(connection: Any) -> int | None:
    """Return the descriptor of a connection's socket; None where its bytes can't be read, or `connect` did not make it.

    Asks the server at the first call for a connection, as a client library may encrypt what it was not told to. Raises
    MySQLdb.Error.
    """
    if connection not in _sockets:
        _sockets[connection] = connection.fileno() if _is_readable(connection) else None
    return _sockets[connection]


def _is_readable(connection: Any) -> bool:
    traits = traits_of(connection)
    if traits is None or traits.encrypted or not MySQLdb.get_client_info().startswith("3."):
        return False
    with connection.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        found = cursor.fetchall()
    return all(not value for _, value in found)


def column_batches(
    connection: Any, statement: bytes, columns: int, *, rows: int, size: int
) -> Iterator[list[pa.Array]]:
    """Yield the rows of a statement's only result, of so many columns, as columns of bytes.

    A batch has `rows` rows, or fewer that have `size` bytes. Raises MySQLdb.Error. A caller that stops early must close
    the connection.
    """
    descriptor, traits = plain_socket(connection), traits_of(connection)
    assert descriptor is not None, "asked of an encrypted connection"
    assert traits is not None, "asked of a connection that is not ours"
    seconds = traits.patience_seconds
    connection.send_query(statement)
    reader = ResultRows(descriptor, columns, seconds * 1000)
    ended = False
    while not ended:
        while (reason := reader.read(rows, size)) == INTERRUPTED:
            pass  # a signal's handler has run, and raised nothing
        if reason not in (END, ROWS):
            raise _failure(reason, reader, seconds)
        ended = reason == END
        count, found = reader.take()
        if count:
            yield [
                pa.Array.from_buffers(pa.binary(), count, [validity, offsets, data], nulls)
                for data, offsets, validity, nulls in found
            ]


def _failure(reason: int, reader: ResultRows, seconds: int) -> Exception:
    if reason == NO_MEMORY:
        return MemoryError("for the rows of a result")
    number, text = _LOST, "Lost connection to server during query"
    if reason == ERROR:
        number, text = _told(reader.error())
    elif reason == BROKEN:
        number, text = _MALFORMED, "Malformed packet in the rows of a result"
    elif reason == SILENT:
        text = f"{text}: the server was silent for {seconds} s"
    error: Exception = MySQLdb.OperationalError(number, text)
    return error


def _told(payload: bytes) -> tuple[int, str]:
    """Return the number and the text of an ERR packet: a byte, the number, maybe a state, the text."""
    number, text = int.from_bytes(payload[1:3], "little"), payload[3:]
    if text.startswith(_STATE):
        text = text[_STATE_LENGTH:]
    return number, text.decode("utf-8", "replace")
