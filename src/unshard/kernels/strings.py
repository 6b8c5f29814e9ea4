# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
"""Readers of character and byte strings, and of what is stored as one: BLOB, TEXT, GEOMETRY, BIT.

All follow the contract of `Reader` in columns.pxd. A string stands behind its length, `size` bytes
little-endian.
"""

from __future__ import annotations

import cython
from cython.cimports.libc.stdint import uint32_t
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.unshard.kernels.columns import INVALID, TRUNCATED, Bytes, Sink, fail, room, u8


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _length(column: Sink, at: Bytes, end: Bytes) -> cython.Py_ssize_t:
    """The string's length, or -1 where prefix or string goes beyond the end."""
    size: cython.int = column.size
    if end - at < size:
        return -1
    length: uint32_t = at[0]
    if size > 1:
        length |= at[1] << 8
        if size > 2:
            length |= at[2] << 16
            if size > 3:
                length |= cython.cast(uint32_t, at[3]) << 24
    if end - at - size < length:
        return -1
    return length


@cython.cfunc
@cython.exceptval(check=False)
def read_bytes(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    length: cython.Py_ssize_t = _length(column, at, end)
    if length < 0:
        return fail(column, TRUNCATED)
    out: cython.pointer[u8] = room(column, length)
    if out == cython.NULL:
        return cython.NULL
    memcpy(out, at + column.size, length)
    column.length += length
    return at + column.size + length


@cython.cfunc
@cython.exceptval(check=False)
def read_padded(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """BINARY(n): row events leave out the trailing zeros, which are part of the value; `scale` is n."""
    length: cython.Py_ssize_t = _length(column, at, end)
    if length < 0:
        return fail(column, TRUNCATED)
    if length > column.scale:
        return fail(column, INVALID)
    out: cython.pointer[u8] = room(column, column.scale)
    if out == cython.NULL:
        return cython.NULL
    memcpy(out, at + column.size, length)
    memset(out + length, 0, column.scale - length)
    column.length += column.scale
    return at + column.size + length


@cython.cfunc
@cython.exceptval(check=False)
def read_fixed(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """BIT(n): `size` bytes as they stand, big-endian; bits above n (`scale` of the first byte) must be 0."""
    if end - at < column.size:
        return fail(column, TRUNCATED)
    if column.scale and at[0] >> column.scale:
        return fail(column, INVALID)
    out: cython.pointer[u8] = room(column, column.size)
    if out == cython.NULL:
        return cython.NULL
    memcpy(out, at, column.size)
    column.length += column.size
    return at + column.size


@cython.cfunc
@cython.exceptval(check=False)
def read_text(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Text that is not UTF-8 already: `put` of its charset appends it."""
    length: cython.Py_ssize_t = _length(column, at, end)
    if length < 0:
        return fail(column, TRUNCATED)
    if not column.put(column, at + column.size, length):
        return cython.NULL
    return at + column.size + length
