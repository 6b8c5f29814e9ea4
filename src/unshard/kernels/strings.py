# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
"""Readers of character and byte strings, and of types that are stored as one: BLOB, TEXT, GEOMETRY, BIT, addresses.

All follow the contract of `Reader` in columns.pxd. A string follows its length, which has `size` bytes, little-endian.

MariaDB's UUID, INET4 and INET6 become the text that the server prints. In a row image all three are BINARY(16) or
BINARY(4): a length byte, then the bytes without their trailing zeros. A UUID's bytes are in the order of its text, as
the server swaps them only in its own records.
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
    """Return the string's length, or -1 if prefix or string go beyond the end."""
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
    """Read bytes after their length, unchanged."""
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
    """Read a BINARY(n). Row events omit the trailing zeros, which are part of the value; `scale` is n."""
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
    """Read a BIT(n): `size` bytes unchanged, big-endian. Bits above n (`scale` of the first byte) must be 0."""
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
    """Read text that is not UTF-8 already: `put` of its character set appends it."""
    length: cython.Py_ssize_t = _length(column, at, end)
    if length < 0:
        return fail(column, TRUNCATED)
    if not column.put(column, at + column.size, length):
        return cython.NULL
    return at + column.size + length


_WIDEST = cython.declare(cython.int, 48)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _unpack(column: Sink, at: Bytes, end: Bytes, value: cython.pointer[u8], size: cython.int) -> cython.bint:
    """Unpack the value's `size` bytes, with the trailing zeros that the image omits."""
    if end - at < 1 or end - at - 1 < at[0]:
        column.failure = TRUNCATED
        return False
    if at[0] > size:
        column.failure = INVALID
        return False
    memcpy(value, at + 1, at[0])
    memset(value + at[0], 0, size - at[0])
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_hex(out: cython.pointer[u8], digit: cython.int) -> cython.pointer[u8]:
    out[0] = cython.cast(u8, digit + (48 if digit < 10 else 87))
    return out + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_number(out: cython.pointer[u8], value: cython.int) -> cython.pointer[u8]:
    """Write a number from 0 to 255 in decimal."""
    if value > 99:
        out[0] = cython.cast(u8, 48 + value // 100)
        out += 1
    if value > 9:
        out[0] = cython.cast(u8, 48 + value // 10 % 10)
        out += 1
    out[0] = cython.cast(u8, 48 + value % 10)
    return out + 1


@cython.cfunc
@cython.exceptval(check=False)
def _put_inet4(out: cython.pointer[u8], value: cython.pointer[u8]) -> cython.pointer[u8]:
    i: cython.int
    for i in range(4):
        if i:
            out[0] = 46  # .
            out += 1
        out = _put_number(out, value[i])
    return out


@cython.cfunc
@cython.exceptval(check=False)
def read_uuid(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a UUID, 16 bytes."""
    value = cython.declare(u8[16])
    if not _unpack(column, at, end, value, 16):
        return cython.NULL
    out: cython.pointer[u8] = room(column, _WIDEST)
    if out == cython.NULL:
        return cython.NULL
    i: cython.int
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            out[0] = 45  # -
            out += 1
        out = _put_hex(out, value[i] >> 4)
        out = _put_hex(out, value[i] & 15)
    column.length += 36
    return at + 1 + at[0]


@cython.cfunc
@cython.exceptval(check=False)
def read_inet4(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read an INET4, 4 bytes."""
    value = cython.declare(u8[4])
    if not _unpack(column, at, end, value, 4):
        return cython.NULL
    out: cython.pointer[u8] = room(column, _WIDEST)
    if out == cython.NULL:
        return cython.NULL
    column.length += _put_inet4(out, value) - out
    return at + 1 + at[0]


@cython.cfunc
@cython.exceptval(check=False)
def read_inet6(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read groups of hex digits; the first of the longest runs of zero groups becomes `::`.

    The text is that of the server: a run of one group counts too. An address that begins with six zero groups, or with
    five and ffff, ends in decimal like an INET4 (with six zero groups only if the seventh group is not zero).
    """
    value = cython.declare(u8[16])
    if not _unpack(column, at, end, value, 16):
        return cython.NULL
    start: cython.pointer[u8] = room(column, _WIDEST)
    if start == cython.NULL:
        return cython.NULL
    out: cython.pointer[u8] = start
    groups = cython.declare(uint32_t[8])
    gap: cython.int = -1
    longest: cython.int = 0
    run: cython.int = 0
    i: cython.int
    for i in range(8):
        groups[i] = (value[2 * i] << 8) | value[2 * i + 1]
        run = run + 1 if groups[i] == 0 else 0
        if run > longest:
            longest = run
            gap = i - run + 1
    i = 0
    while i < 8:
        if i == gap:
            if i == 0:
                out[0] = 58  # :
                out += 1
            out[0] = 58
            out += 1
            i += longest
            continue
        if i == 6 and gap == 0 and (longest == 6 or (longest == 5 and groups[5] == 0xFFFF)):
            out = _put_inet4(out, value + 12)
            break
        out = _put_group(out, groups[i])
        if i < 7:
            out[0] = 58
            out += 1
        i += 1
    column.length += out - start
    return at + 1 + at[0]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_group(out: cython.pointer[u8], value: uint32_t) -> cython.pointer[u8]:
    if value > 0xFFF:
        out = _put_hex(out, value >> 12)
    if value > 0xFF:
        out = _put_hex(out, (value >> 8) & 15)
    if value > 0xF:
        out = _put_hex(out, (value >> 4) & 15)
    return _put_hex(out, value & 15)
