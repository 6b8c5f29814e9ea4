# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
"""Readers of TIME, DATETIME and TIMESTAMP in the formats of before MySQL 5.6.

Tables made back then have them, and those made in MariaDB under `mysql56_temporal_format=OFF`. Without a fraction
they are decimal numbers, little-endian; with one (MariaDB 5.3, `hires`) a count of the smallest unit, big-endian. All
follow the contract of `Reader` in columns.pxd; `scale` is the number of fraction digits, which the binlog itself
doesn't tell. Lengths and counts are those of MariaDB's Field_time_hires, Field_datetime_hires, Field_timestamp_hires.
"""

from __future__ import annotations

import cython
from cython.cimports.libc.stdint import int64_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy
from cython.cimports.unshard.kernels.columns import INVALID, TRUNCATED, Bytes, Sink, fail, room, u8
from cython.cimports.unshard.kernels.times import big_endian, put_clock, put_date, put_fraction, put_timestamp

_WIDEST = cython.declare(cython.int, 32)
# Beyond 32 bits, so a C variable: as a literal it would be a Python number.
_LAST_SECOND = cython.declare(uint64_t, 99991231235959)
_TIME_ZERO = cython.declare(int64_t, 3020400)  # seconds: one more than the largest TIME, added to keep it positive


@cython.cfunc
@cython.exceptval(check=False)
def read_time_old(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Three bytes, little-endian and signed: the decimal number HHMMSS. Tables made before 5.6 have it."""
    if end - at < 3:
        return fail(column, TRUNCATED)
    value: cython.int = at[0] | (at[1] << 8) | (at[2] << 16)
    if value & 0x800000:
        value -= 0x1000000
    out: cython.pointer[u8] = room(column, _WIDEST)
    if out == cython.NULL:
        return cython.NULL
    start: cython.pointer[u8] = out
    if value < 0:
        out[0] = 45
        out += 1
        value = -value
    if value // 10000 > 838 or value // 100 % 100 > 59 or value % 100 > 59:
        return fail(column, INVALID)
    out = put_clock(out, value // 10000, value // 100 % 100, value % 100)
    column.length += out - start
    return at + 3


@cython.cfunc
@cython.exceptval(check=False)
def read_datetime_old(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Eight bytes, little-endian: the decimal number YYYYMMDDHHMMSS. Tables made before 5.6 have it."""
    if end - at < 8:
        return fail(column, TRUNCATED)
    value: uint64_t = 0
    memcpy(cython.address(value), at, 8)
    day: uint64_t = value // 1000000
    clock: uint32_t = cython.cast(uint32_t, value % 1000000)
    if value > _LAST_SECOND or day // 100 % 100 > 12 or day % 100 > 31:
        return fail(column, INVALID)
    if clock // 10000 > 23 or clock // 100 % 100 > 59 or clock % 100 > 59:
        return fail(column, INVALID)
    out: cython.pointer[u8] = room(column, _WIDEST)
    if out == cython.NULL:
        return cython.NULL
    out = put_date(
        out,
        cython.cast(uint32_t, day // 10000),
        cython.cast(uint32_t, day // 100 % 100),
        cython.cast(uint32_t, day % 100),
    )
    out[0] = 32
    put_clock(out + 1, clock // 10000, clock // 100 % 100, clock % 100)
    column.length += 19
    return at + 8


@cython.cfunc
@cython.exceptval(check=False)
def read_timestamp_old(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Four bytes, little-endian. Tables made before 5.6 have it."""
    if end - at < 4:
        return fail(column, TRUNCATED)
    seconds: uint32_t = 0
    memcpy(cython.address(seconds), at, 4)
    return at + 4 if put_timestamp(column, seconds, 0) else cython.NULL


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _units(digits: cython.int) -> int64_t:
    """How many of the smallest unit a second has."""
    units: int64_t = 1
    _i: cython.int
    for _i in range(digits):
        units *= 10
    return units


@cython.cfunc
@cython.exceptval(check=False)
def read_time_hires(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Four bytes for 1 and 2 digits, five for 3 to 5, six for 6: units of the fraction, counted from `_TIME_ZERO`."""
    size: cython.int = 4 if column.scale < 3 else 5 if column.scale < 6 else 6
    if end - at < size:
        return fail(column, TRUNCATED)
    units: int64_t = _units(column.scale)
    value: int64_t = big_endian(at, size) - _TIME_ZERO * units
    out: cython.pointer[u8] = room(column, _WIDEST)
    if out == cython.NULL:
        return cython.NULL
    start: cython.pointer[u8] = out
    if value < 0:
        out[0] = 45
        out += 1
        value = -value
    if value >= _TIME_ZERO * units:
        return fail(column, INVALID)
    clock: uint32_t = cython.cast(uint32_t, value // units)
    out = put_clock(out, clock // 3600, clock // 60 % 60, clock % 60)
    out = put_fraction(out, cython.cast(uint32_t, value % units * (1000000 // units)), column.scale)
    column.length += out - start
    return at + size


@cython.cfunc
@cython.exceptval(check=False)
def read_datetime_hires(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Six bytes for 1 and 2 digits, seven for 3 to 5, eight for 6.

    One number of mixed base: year, month of 13, day of 32, hour of 24, minute, second, fraction.
    """
    size: cython.int = 6 if column.scale < 3 else 7 if column.scale < 6 else 8
    if end - at < size:
        return fail(column, TRUNCATED)
    units: int64_t = _units(column.scale)
    value: int64_t = big_endian(at, size)
    if value < 0:
        return fail(column, INVALID)
    micros: uint32_t = cython.cast(uint32_t, value % units * (1000000 // units))
    value //= units
    clock: uint32_t = cython.cast(uint32_t, value % 86400)
    value //= 86400
    if value // 416 > 9999:  # 32 days, 13 months
        return fail(column, INVALID)
    day: uint32_t = cython.cast(uint32_t, value)
    out: cython.pointer[u8] = room(column, _WIDEST)
    if out == cython.NULL:
        return cython.NULL
    start: cython.pointer[u8] = out
    out = put_date(out, day // 416, day // 32 % 13, day % 32)
    out[0] = 32
    out = put_clock(out + 1, clock // 3600, clock // 60 % 60, clock % 60)
    out = put_fraction(out, micros, column.scale)
    column.length += out - start
    return at + size


@cython.cfunc
@cython.exceptval(check=False)
def read_timestamp_hires(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Seconds in four bytes, then the fraction in its own units: one byte for 1 and 2 digits, two, three."""
    below: cython.int = (column.scale + 1) >> 1
    if end - at < 4 + below:
        return fail(column, TRUNCATED)
    units: int64_t = _units(column.scale)
    fraction: int64_t = big_endian(at + 4, below)
    if fraction >= units:
        return fail(column, INVALID)
    seconds: uint32_t = cython.cast(uint32_t, big_endian(at, 4))
    micros: uint32_t = cython.cast(uint32_t, fraction * (1000000 // units))
    return at + 4 + below if put_timestamp(column, seconds, micros) else cython.NULL
