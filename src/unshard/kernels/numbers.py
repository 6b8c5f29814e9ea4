# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
"""Readers of numeric column values: integers, FLOAT, DOUBLE, YEAR, DECIMAL, and the integers in ENUM and SET.

Each follows the contract of `Reader` in columns.pxd. Integers are little-endian in the binlog and become eight bytes in
Arrow; DECIMAL becomes its exact text.
"""

from __future__ import annotations

import cython
from cython.cimports.libc.stdint import int64_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy
from cython.cimports.unshard.kernels.columns import INVALID, TRUNCATED, Bytes, Sink, fail, put_digits, room, u8


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put(column: Sink, value: int64_t) -> cython.void:
    memcpy(column.data + column.length, cython.address(value), 8)
    column.length += 8


@cython.cfunc
@cython.exceptval(check=False)
def read_int8(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a TINYINT."""
    if end - at < 1:
        return fail(column, TRUNCATED)
    _put(column, cython.cast(cython.schar, at[0]))
    return at + 1


@cython.cfunc
@cython.exceptval(check=False)
def read_uint8(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a TINYINT UNSIGNED."""
    if end - at < 1:
        return fail(column, TRUNCATED)
    _put(column, at[0])
    return at + 1


@cython.cfunc
@cython.exceptval(check=False)
def read_int16(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a SMALLINT."""
    if end - at < 2:
        return fail(column, TRUNCATED)
    _put(column, cython.cast(cython.short, at[0] | (at[1] << 8)))
    return at + 2


@cython.cfunc
@cython.exceptval(check=False)
def read_uint16(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a SMALLINT UNSIGNED."""
    if end - at < 2:
        return fail(column, TRUNCATED)
    _put(column, at[0] | (at[1] << 8))
    return at + 2


@cython.cfunc
@cython.exceptval(check=False)
def read_int24(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a MEDIUMINT: three bytes, whose highest bit is the sign."""
    if end - at < 3:
        return fail(column, TRUNCATED)
    value: cython.int = at[0] | (at[1] << 8) | (at[2] << 16)
    _put(column, value - 0x1000000 if value & 0x800000 else value)
    return at + 3


@cython.cfunc
@cython.exceptval(check=False)
def read_uint24(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a MEDIUMINT UNSIGNED: three bytes."""
    if end - at < 3:
        return fail(column, TRUNCATED)
    _put(column, at[0] | (at[1] << 8) | (at[2] << 16))
    return at + 3


@cython.cfunc
@cython.exceptval(check=False)
def read_int32(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read an INT."""
    if end - at < 4:
        return fail(column, TRUNCATED)
    value: cython.int = 0
    memcpy(cython.address(value), at, 4)
    _put(column, value)
    return at + 4


@cython.cfunc
@cython.exceptval(check=False)
def read_uint32(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read an INT UNSIGNED."""
    if end - at < 4:
        return fail(column, TRUNCATED)
    value: uint32_t = 0
    memcpy(cython.address(value), at, 4)
    _put(column, value)
    return at + 4


@cython.cfunc
@cython.exceptval(check=False)
def read_int64(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read eight bytes unchanged: BIGINT, signed or not, and DOUBLE."""
    if end - at < 8:
        return fail(column, TRUNCATED)
    memcpy(column.data + column.length, at, 8)
    column.length += 8
    return at + 8


@cython.cfunc
@cython.exceptval(check=False)
def read_float(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a FLOAT: four bytes, unchanged."""
    if end - at < 4:
        return fail(column, TRUNCATED)
    memcpy(column.data + column.length, at, 4)
    column.length += 4
    return at + 4


@cython.cfunc
@cython.exceptval(check=False)
def read_year(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read one byte that counts from 1900; 0 is the year 0000."""
    if end - at < 1:
        return fail(column, TRUNCATED)
    _put(column, at[0] + 1900 if at[0] else 0)
    return at + 1


@cython.cfunc
@cython.exceptval(check=False)
def read_little_endian(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read an unsigned integer of `size` bytes, 1 to 8: the number of an ENUM's member, or the bits of a SET."""
    if end - at < column.size:
        return fail(column, TRUNCATED)
    value: uint64_t = 0
    i: cython.int
    for i in range(column.size):
        value |= cython.cast(uint64_t, at[i]) << (8 * i)
    _put(column, cython.cast(int64_t, value))
    return at + column.size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _group(at: Bytes, size: cython.int, mask: u8) -> uint32_t:
    """Return the value of a big-endian group of digits. In a negative number every byte is inverted (`mask` 0xff)."""
    value: uint32_t = 0
    i: cython.int
    for i in range(size):
        value = (value << 8) | cython.cast(u8, at[i] ^ mask)
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _bytes_of(digits: cython.int) -> cython.int:
    """Return the number of bytes into which 0 to 9 decimal digits are packed."""
    return (digits + 1) >> 1 if digits < 7 else 4


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _limit(digits: cython.int) -> uint32_t:
    value: uint32_t = 1
    _i: cython.int
    for _i in range(digits):
        value *= 10
    return value


@cython.cfunc
@cython.exceptval(check=False)
def put_decimal(column: Sink, at: Bytes, end: Bytes, whole: cython.int, scale: cython.int) -> Bytes:
    """Append a DECIMAL: nine digits in four bytes, big-endian; the shorter groups are the outermost, at either end.

    The first bit is the inverted sign, so that the bytes sort: 1 for positive. `whole` is the number of digits before
    the point, `scale` of those after it; 1 to 81 in all.
    """
    first: cython.int = whole % 9
    last: cython.int = scale % 9
    packed: cython.int = _bytes_of(first) + 4 * (whole // 9) + 4 * (scale // 9) + _bytes_of(last)
    if end - at < packed:
        return fail(column, TRUNCATED)
    place: cython.pointer[u8] = room(column, whole + scale + 3)
    if place == cython.NULL:
        return cython.NULL
    digits = cython.declare(u8[96])
    out: cython.pointer[u8] = digits
    mask: u8 = 0 if at[0] & 0x80 else 0xFF
    # The sign bit is part of the first group, wherever that is. It is removed in a copy.
    head = cython.declare(u8[4])
    size: cython.int
    count: cython.int
    value: uint32_t
    bits: uint32_t = 0
    groups: cython.int = whole // 9 + scale // 9 + (1 if first else 0) + (1 if last else 0)
    i: cython.int
    for i in range(groups):
        if i == 0 and first:
            count = first
        elif i == groups - 1 and last:
            count = last
        else:
            count = 9
        size = _bytes_of(count)
        if i == 0:
            memcpy(head, at, size)
            head[0] ^= 0x80
            value = _group(head, size, mask)
        else:
            value = _group(at, size, mask)
        if value >= _limit(count):
            return fail(column, INVALID)
        bits |= value
        out = put_digits(out, value, count)
        at += size
    start: cython.pointer[u8] = place
    if mask and bits:  # an UNSIGNED column takes no zero with a sign, and no column keeps the sign
        place[0] = 45  # -
        place += 1
    skip: cython.int = 0
    while skip < whole and digits[skip] == 48:
        skip += 1
    if skip == whole:
        place[0] = 48  # 0
        place += 1
    else:
        memcpy(place, cython.address(digits[skip]), whole - skip)
        place += whole - skip
    if scale:
        place[0] = 46  # .
        memcpy(place + 1, cython.address(digits[whole]), scale)
        place += scale + 1
    column.length += place - start
    return at


@cython.cfunc
@cython.exceptval(check=False)
def read_decimal(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a DECIMAL with `size` digits before the point and `scale` after it."""
    return put_decimal(column, at, end, column.size, column.scale)
