# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False, disable-error-code="valid-type,no-any-return,attr-defined"
"""Rows of a result set, read off the socket as Arrow buffers: the text protocol, without a Python object for a value.

The server's answer to a query is packets: a number of columns, a definition of each, in most sessions an EOF, a packet
for each row, and an EOF or OK. An ERR may take the place of any of them. A value of a row is a length and as many
bytes, or one byte for NULL. A packet of 2^24 - 1 bytes is continued by the next one. Format: "Text Resultset" in
https://dev.mysql.com/doc/dev/mysql-server/latest/ and in MariaDB's knowledge base.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.libc.errno import EAGAIN, EINTR, errno
from cython.cimports.libc.stdint import int32_t
from cython.cimports.libc.stdlib import calloc, free, malloc, realloc
from cython.cimports.libc.string import memcpy, memmove
from cython.cimports.unshard.kernels.columns import Bytes, ColumnSink, Sink, grow_rows, put_null, room, u8
from cython.cimports.unshard.kernels.sink import hand_over
from cython.cimports.unshard.kernels.sockets import MSG_DONTWAIT, POLLIN, poll, pollfd, recv

ROWS, END, ERROR, LOST, SILENT, BROKEN, NO_MEMORY, INTERRUPTED = range(8)
"""Why `read` returns: there are rows and more may come, the last row was read, the server reports an error, it closed
the connection, it was silent for too long, it sent something else than a result set, memory is short, a signal came."""

_ROWS = cython.declare(cython.int, 0)
_END = cython.declare(cython.int, 1)
_ERROR = cython.declare(cython.int, 2)
_LOST = cython.declare(cython.int, 3)
_SILENT = cython.declare(cython.int, 4)
_BROKEN = cython.declare(cython.int, 5)
_NO_MEMORY = cython.declare(cython.int, 6)
_INTERRUPTED = cython.declare(cython.int, 7)

_CHUNK = cython.declare(cython.Py_ssize_t, 1 << 18)
_CONTINUED = cython.declare(cython.Py_ssize_t, 0xFFFFFF)
_ERR = cython.declare(cython.int, 0xFF)
_EOF = cython.declare(cython.int, 0xFE)
_NULL = cython.declare(cython.int, 0xFB)
_EOF_LENGTH = cython.declare(cython.int, 5)


@cython.final
@cython.cclass
class ResultRows:
    """The rows of one answer of `columns` columns, read from `descriptor`, a socket without encryption.

    The query has been sent, and nothing of the answer has been read. `milliseconds` is the longest silence of the
    server. After the end, or an error that the server reports, the connection may be used again; after any other end
    of `read` it must be closed.
    """

    _descriptor: cython.int
    _milliseconds: cython.int
    _count: cython.Py_ssize_t
    _expected: cython.Py_ssize_t
    _columns: cython.pointer[ColumnSink]
    _capacity: cython.Py_ssize_t
    _buffer: cython.pointer[u8]
    _size: cython.Py_ssize_t
    _at: cython.Py_ssize_t
    _filled: cython.Py_ssize_t
    _payload: cython.Py_ssize_t
    _length: cython.Py_ssize_t
    _state: cython.int
    _joined: cython.Py_ssize_t
    _last: cython.Py_ssize_t
    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")

    def __init__(self, descriptor: cython.int, columns: cython.Py_ssize_t, milliseconds: cython.int) -> None:
        self._descriptor = descriptor
        self._milliseconds = milliseconds
        self._count = columns
        self._expected = -1
        self._columns = cython.cast(cython.pointer[ColumnSink], calloc(columns, cython.sizeof(ColumnSink)))
        self._buffer = cython.cast(cython.pointer[u8], malloc(_CHUNK))
        if self._columns == cython.NULL or self._buffer == cython.NULL:
            raise MemoryError
        self._size = _CHUNK

    def __dealloc__(self) -> None:
        index: cython.Py_ssize_t
        if self._columns != cython.NULL:
            for index in range(self._count):
                free(self._columns[index].data)
                free(self._columns[index].offsets)
                free(self._columns[index].validity)
            free(self._columns)
        free(self._buffer)

    def read(self, rows: cython.Py_ssize_t, size: cython.Py_ssize_t) -> int:
        """Read up to `rows` rows, or until they have `size` bytes; return why it ends. `take` gives the rows.

        After INTERRUPTED it is called again with the same arguments.
        """
        index: cython.Py_ssize_t
        found: cython.int
        if self._capacity < rows:
            for index in range(self._count):
                if not grow_rows(cython.address(self._columns[index]), self.rows, rows):
                    return _NO_MEMORY
            self._capacity = rows
        with cython.nogil:
            found = self._read(rows, size)
        return found

    def error(self) -> bytes:
        """Return the payload of the ERR packet at which `read` ended."""
        return self._buffer[self._payload : self._payload + self._length]

    def take(self) -> tuple[int, list[tuple[Any, Any, Any, int]]]:
        """Return the rows read since the last call: their number, and by column data, offsets, validity or None, NULLs.

        The buffers take over the memory.
        """
        index: cython.Py_ssize_t
        column: Sink
        found: list[tuple[Any, Any, Any, int]] = []
        rows: cython.Py_ssize_t = self.rows
        for index in range(self._count):
            column = cython.address(self._columns[index])
            validity = None
            if column.validity != cython.NULL:
                validity = hand_over(column.validity, (rows + 7) >> 3)
                column.validity = cython.NULL
            data = hand_over(column.data, column.length)
            column.data = cython.NULL
            offsets = hand_over(column.offsets, 4 * (rows + 1))
            column.offsets = cython.NULL
            found.append((data, offsets, validity, column.nulls))
            column.length = column.capacity = column.nulls = 0
        self._capacity = self.rows = 0
        return rows, found

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _read(self, rows: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
        taken: cython.Py_ssize_t = 0
        first: cython.int
        while self.rows < rows and taken < size:
            if not self._packet():
                return self._state
            first = self._buffer[self._payload] if self._length else 0
            if first == _ERR:
                return _ERROR
            if self._expected < 0:
                if self._number() != self._count:
                    return _BROKEN
                self._expected = self._count + 1
            elif self._expected > 1:
                self._expected -= 1
            elif self._expected == 1 and first == _EOF and self._length == _EOF_LENGTH:
                self._expected = 0
            elif first == _EOF and self._length < _CONTINUED:
                return _END
            else:
                self._expected = 0
                if not self._row():
                    return self._state
                taken += self._length
        return _ROWS

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _number(self) -> cython.Py_ssize_t:
        """Return the number of columns in the first packet; -1 for another packet.

        MariaDB adds a byte where the client may know the definitions already, which it never says of a query.
        """
        at: Bytes = self._buffer + self._payload
        width: cython.Py_ssize_t = 3 if at[0] == 0xFC else 1
        if self._length < width or self._length > width + 1 or (self._length > width and at[width] != 1):
            return -1
        return at[0] if width == 1 else at[1] | (cython.cast(cython.Py_ssize_t, at[2]) << 8)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _row(self) -> cython.bint:
        """Append the row in the packet."""
        at: Bytes = self._buffer + self._payload
        end: Bytes = at + self._length
        index: cython.Py_ssize_t
        length: cython.Py_ssize_t
        width: cython.Py_ssize_t
        first: cython.int
        column: Sink
        place: cython.pointer[u8]
        for index in range(self._count):
            column = cython.address(self._columns[index])
            if at == end:
                self._state = _BROKEN
                return False
            first = at[0]
            at += 1
            if first == _NULL:
                if not put_null(column, self.rows, self._capacity):
                    self._state = _NO_MEMORY
                    return False
            else:
                length = first
                if first > _NULL:
                    width = 2 if first == 0xFC else 3 if first == 0xFD else 8
                    if first == _ERR or end - at < width:
                        self._state = _BROKEN
                        return False
                    length = 0
                    memcpy(cython.address(length), at, width)
                    at += width
                if length < 0 or end - at < length:
                    self._state = _BROKEN
                    return False
                place = room(column, length)
                if place == cython.NULL:
                    self._state = _NO_MEMORY
                    return False
                memcpy(place, at, length)
                column.length += length
                at += length
            column.offsets[self.rows + 1] = cython.cast(int32_t, column.length)
        if at != end:
            self._state = _BROKEN
            return False
        self.rows += 1
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _packet(self) -> cython.bint:
        """Make the next packet whole: `_payload` and `_length` are its place in the buffer. May be called again.

        `_joined` is how much of it stands in the buffer in one piece, with one header; the last part of that was
        `_last` bytes long.
        """
        part: cython.Py_ssize_t
        if self._joined == 0:
            if not self._have(4):
                return False
            part = self._part(0)
            if not self._have(4 + part):
                return False
            self._joined = 4 + part
            self._last = part
        while self._last == _CONTINUED:
            if not self._have(self._joined + 4):
                return False
            part = self._part(self._joined)
            if not self._have(self._joined + 4 + part):
                return False
            memmove(
                self._buffer + self._at + self._joined,
                self._buffer + self._at + self._joined + 4,
                self._filled - self._at - self._joined - 4,
            )
            self._filled -= 4
            self._joined += part
            self._last = part
        self._payload = self._at + 4
        self._length = self._joined - 4
        self._at += self._joined
        self._joined = 0
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _part(self, after: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return the length in the packet header that lies so many bytes after the packet's own."""
        at: Bytes = self._buffer + self._at + after
        return at[0] | (at[1] << 8) | (cython.cast(cython.Py_ssize_t, at[2]) << 16)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _have(self, wanted: cython.Py_ssize_t) -> cython.bint:
        """Read until so many bytes are in the buffer from `_at` on. False with `_state` set where that can't be."""
        got: cython.Py_ssize_t
        size: cython.Py_ssize_t
        grown: cython.pointer[u8]
        waiting = cython.declare(pollfd)
        ready: cython.int
        while self._filled - self._at < wanted:
            if self._at + wanted > self._size or self._filled == self._size:
                memmove(self._buffer, self._buffer + self._at, self._filled - self._at)
                self._filled -= self._at
                self._at = 0
                if wanted > self._size:
                    size = wanted + _CHUNK
                    grown = cython.cast(cython.pointer[u8], realloc(self._buffer, size))
                    if grown == cython.NULL:
                        self._state = _NO_MEMORY
                        return False
                    self._buffer = grown
                    self._size = size
            got = recv(self._descriptor, self._buffer + self._filled, self._size - self._filled, MSG_DONTWAIT)
            if got > 0:
                self._filled += got
                continue
            if got == 0 or (errno != EAGAIN and errno != EINTR):
                self._state = _LOST
                return False
            waiting.fd = self._descriptor
            waiting.events = POLLIN
            ready = poll(cython.address(waiting), 1, self._milliseconds)
            if ready <= 0:
                self._state = _SILENT if ready == 0 else _INTERRUPTED if errno == EINTR else _LOST
                return False
        return True
