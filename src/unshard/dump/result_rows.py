"""Reads the rows of a large result as Arrow columns, off the socket of the driver's connection.

The driver would make a Python object of each value. It sends the query here, and `kernels.result_rows` reads the whole
answer (`mysql.plain_socket`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from unshard.mysql.plain_socket import LOST, LOST_TEXT, MALFORMED, plain_socket, told


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
    number, text = LOST, LOST_TEXT
    if reason == ERROR:
        number, text = told(reader.error())
    elif reason == BROKEN:
        number, text = MALFORMED, "Malformed packet in the rows of a result"
    elif reason == SILENT:
        text = f"{text}: the server was silent for {seconds} s"
    error: Exception = MySQLdb.OperationalError(number, text)
    return error
