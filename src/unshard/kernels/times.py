# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
"""Readers of temporal column values. Each value becomes the text that the server itself prints.

Zero dates and partial dates stay; TIMESTAMP is printed in UTC. Every number is checked against the range that the
server can store, so that flipped bits are an error and not a strange date. All follow the contract of `Reader` in
columns.pxd; `scale` is the number of fraction digits, 0 to 6.

The formats from before MySQL 5.6 (`old`, `hires`) are found in tables that were created then, and in those created in
MariaDB under `mysql56_temporal_format=OFF`. Without a fraction they are decimal numbers, little-endian; with one
(MariaDB 5.3, `hires`) they count the smallest unit, big-endian. The binlog itself doesn't contain their `scale`.
Lengths and counts are those of MariaDB's Field_time_hires, Field_datetime_hires, Field_timestamp_hires.
"""

from __future__ import annotations

import cython
from cython.cimports.libc.stdint import int64_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy
from cython.cimports.unshard.kernels.columns import INVALID, TRUNCATED, Bytes, Sink, fail, put_digits, room, u8

_WIDEST = cython.declare(cython.int, 32)
# Beyond 32 bits, so a C variable: as a literal it would be a Python number.
_DATETIME_ZERO = cython.declare(int64_t, 0x8000000000)


@cython.cfunc
@cython.exceptval(check=False)
def put_date(out: cython.pointer[u8], year: uint32_t, month: uint32_t, day: uint32_t) -> cython.pointer[u8]:
    """Write `YYYY-MM-DD`; return the address after it."""
    out = put_digits(out, year, 4)
    out[0] = 45  # -
    out = put_digits(out + 1, month, 2)
    out[0] = 45
    return put_digits(out + 1, day, 2)


@cython.cfunc
@cython.exceptval(check=False)
def put_clock(out: cython.pointer[u8], hour: uint32_t, minute: uint32_t, second: uint32_t) -> cython.pointer[u8]:
    """Write `hh:mm:ss`, or `hhh:mm:ss` beyond 99 hours; return the address after it."""
    out = put_digits(out, hour, 3 if hour > 99 else 2)
    out[0] = 58  # :
    out = put_digits(out + 1, minute, 2)
    out[0] = 58
    return put_digits(out + 1, second, 2)


@cython.cfunc
@cython.exceptval(check=False)
def put_fraction(out: cython.pointer[u8], micros: uint32_t, digits: cython.int) -> cython.pointer[u8]:
    """Write the point and the first `digits` of six digits; nothing if `digits` is 0."""
    if digits == 0:
        return out
    _i: cython.int
    for _i in range(6 - digits):
        micros //= 10
    out[0] = 46  # .
    return put_digits(out + 1, micros, digits)


@cython.cfunc
@cython.exceptval(check=False)
def big_endian(at: Bytes, size: cython.int) -> int64_t:
    """Return the big-endian unsigned integer in `size` bytes, at most 7."""
    value: int64_t = 0
    i: cython.int
    for i in range(size):
        value = (value << 8) | at[i]
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _micros(at: Bytes, digits: cython.int) -> int64_t:
    """Return a fraction of 0 to 6 digits in microseconds.

    It is stored in one byte of hundredths, two of 1/10000, or three of 1/1000000.
    """
    if digits == 0:
        return 0
    if digits <= 2:
        return at[0] * 10000
    if digits <= 4:
        return big_endian(at, 2) * 100
    return big_endian(at, 3)


@cython.cfunc
@cython.exceptval(check=False)
def read_date(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read three bytes, little-endian: year 15 bits, month 4, day 5."""
    if end - at < 3:
        return fail(column, TRUNCATED)
    value: uint32_t = at[0] | (at[1] << 8) | (at[2] << 16)
    if (value >> 9) > 9999 or ((value >> 5) & 15) > 12:
        return fail(column, INVALID)
    out: cython.pointer[u8] = room(column, _WIDEST)
    if out == cython.NULL:
        return cython.NULL
    put_date(out, value >> 9, (value >> 5) & 15, value & 31)
    column.length += 10
    return at + 3


@cython.cfunc
@cython.exceptval(check=False)
def put_timestamp(column: Sink, seconds: uint32_t, micros: uint32_t) -> cython.bint:
    """Append seconds since 1970 as UTC date and time. The value 0 is the server's zero timestamp, not 1970."""
    out: cython.pointer[u8] = room(column, _WIDEST)
    if out == cython.NULL:
        return False
    start: cython.pointer[u8] = out
    days: uint32_t = seconds // 86400
    clock: uint32_t = seconds % 86400
    year: uint32_t = 0
    month: uint32_t = 0
    day: uint32_t = 0
    if seconds or micros:
        # Days since 1 March of the year 0, in eras of 400 years; the year begins in March, so February is last.
        days += 719468
        era: uint32_t = days // 146097
        in_era: uint32_t = days % 146097
        of_era: uint32_t = (in_era - in_era // 1460 + in_era // 36524 - in_era // 146096) // 365
        in_year: uint32_t = in_era - (365 * of_era + of_era // 4 - of_era // 100)
        month = (5 * in_year + 2) // 153
        day = in_year - (153 * month + 2) // 5 + 1
        month = month + 3 if month < 10 else month - 9
        year = era * 400 + of_era + (1 if month <= 2 else 0)
    out = put_date(out, year, month, day)
    out[0] = 32
    out = put_clock(out + 1, clock // 3600, clock // 60 % 60, clock % 60)
    out = put_fraction(out, micros, column.scale)
    column.length += out - start
    return True


@cython.cfunc
@cython.exceptval(check=False)
def read_timestamp(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a TIMESTAMP since 5.6: four bytes and the fraction, both big-endian."""
    size: cython.int = 4 + ((column.scale + 1) >> 1)
    if end - at < size:
        return fail(column, TRUNCATED)
    micros: int64_t = _micros(at + 4, column.scale)
    if micros > 999999:
        return fail(column, INVALID)
    seconds: uint32_t = cython.cast(uint32_t, big_endian(at, 4))
    return at + size if put_timestamp(column, seconds, cython.cast(uint32_t, micros)) else cython.NULL


@cython.cfunc
@cython.exceptval(check=False)
def read_datetime(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a DATETIME since 5.6: 40 bits big-endian, then the fraction.

    The bits: one that is always 1, year * 13 + month 17 bits, day 5, hour 5, minute 6, second 6.
    """
    size: cython.int = 5 + ((column.scale + 1) >> 1)
    if end - at < size:
        return fail(column, TRUNCATED)
    packed: int64_t = big_endian(at, 5) - _DATETIME_ZERO
    micros: int64_t = _micros(at + 5, column.scale)
    if packed < 0 or micros > 999999:
        return fail(column, INVALID)
    months: uint32_t = cython.cast(uint32_t, packed >> 22)
    clock: uint32_t = cython.cast(uint32_t, packed & 0x1FFFF)
    if months // 13 > 9999 or (clock >> 12) > 23 or ((clock >> 6) & 63) > 59 or (clock & 63) > 59:
        return fail(column, INVALID)
    out: cython.pointer[u8] = room(column, _WIDEST)
    if out == cython.NULL:
        return cython.NULL
    start: cython.pointer[u8] = out
    out = put_date(out, months // 13, months % 13, cython.cast(uint32_t, (packed >> 17) & 31))
    out[0] = 32
    out = put_clock(out + 1, clock >> 12, (clock >> 6) & 63, clock & 63)
    out = put_fraction(out, cython.cast(uint32_t, micros), column.scale)
    column.length += out - start
    return at + size


@cython.cfunc
@cython.exceptval(check=False)
def read_time(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a TIME since 5.6: 24 bits big-endian, then the fraction.

    The bits: a sign (1 is positive), one unused, hour 10 bits, minute 6, second 6. Negative values are the two's
    complement over time and fraction TOGETHER, so that the bytes sort; therefore both are read as one number.
    """
    size: cython.int = 3 + ((column.scale + 1) >> 1)
    if end - at < size:
        return fail(column, TRUNCATED)
    below: cython.int = 8 * (size - 3)
    packed: int64_t = big_endian(at, size) - (cython.cast(int64_t, 0x800000) << below)
    out: cython.pointer[u8] = room(column, _WIDEST)
    if out == cython.NULL:
        return cython.NULL
    start: cython.pointer[u8] = out
    if packed < 0:
        out[0] = 45
        out += 1
        packed = -packed
    micros: int64_t = packed & ((cython.cast(int64_t, 1) << below) - 1)
    if size == 4:
        micros *= 10000
    elif size == 5:
        micros *= 100
    clock: uint32_t = cython.cast(uint32_t, packed >> below)
    if micros > 999999 or (clock >> 12) > 838 or ((clock >> 6) & 63) > 59 or (clock & 63) > 59:
        return fail(column, INVALID)
    out = put_clock(out, clock >> 12, (clock >> 6) & 63, clock & 63)
    out = put_fraction(out, cython.cast(uint32_t, micros), column.scale)
    column.length += out - start
    return at + size


# Beyond 32 bits, so a C variable: as a literal it would be a Python number.
_LAST_SECOND = cython.declare(uint64_t, 99991231235959)
_TIME_ZERO = cython.declare(int64_t, 3020400)  # seconds: one more than the largest TIME, added to keep it positive


@cython.cfunc
@cython.exceptval(check=False)
def read_time_old(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read three bytes, little-endian and signed: the decimal number HHMMSS. Tables from before 5.6 have it."""
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
    """Read eight bytes, little-endian: the decimal number YYYYMMDDHHMMSS. Tables from before 5.6 have it."""
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
    """Read four bytes, little-endian. Tables from before 5.6 have it."""
    if end - at < 4:
        return fail(column, TRUNCATED)
    seconds: uint32_t = 0
    memcpy(cython.address(seconds), at, 4)
    return at + 4 if put_timestamp(column, seconds, 0) else cython.NULL


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _units(digits: cython.int) -> int64_t:
    """Return how many of the smallest units a second has."""
    units: int64_t = 1
    _i: cython.int
    for _i in range(digits):
        units *= 10
    return units


@cython.cfunc
@cython.exceptval(check=False)
def read_time_hires(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read four bytes for 1 and 2 digits, five for 3 to 5, six for 6: fraction units, counted from `_TIME_ZERO`."""
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
    """Read six bytes for 1 and 2 digits, seven for 3 to 5, eight for 6.

    They are one number of mixed base: year, month of 13, day of 32, hour of 24, minute, second, fraction.
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
    """Read seconds in four bytes, then the fraction in units of its own.

    The fraction has one byte for 1 and 2 digits, two for 3 and 4, three for 5 and 6.
    """
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
