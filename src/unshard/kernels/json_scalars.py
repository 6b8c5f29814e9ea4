# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="no-any-return"
"""Reads the scalars of MySQL's binary JSON. Values of types that JSON lacks are stored in it as opaque values."""

from __future__ import annotations

import cython
from cython.cimports.libc.stdint import int64_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy
from cython.cimports.unshard.kernels.columns import INVALID, TRUNCATED, Bytes, Sink, fail, put_digits, room, u8
from cython.cimports.unshard.kernels.json_text import put_double, put_number, put_quoted, put_raw, put_signed
from cython.cimports.unshard.kernels.numbers import put_decimal

# Types of opaque values, by the server's numbers, that have a printed form of their own.
_TIMESTAMP = cython.declare(cython.int, 7)
_DATE = cython.declare(cython.int, 10)
_TIME = cython.declare(cython.int, 11)
_DATETIME = cython.declare(cython.int, 12)
_DECIMAL = cython.declare(cython.int, 246)
_VAR_STRING = cython.declare(cython.int, 253)

_LINE = cython.declare(cython.Py_ssize_t, 57)  # bytes in one line of the server's base64, 76 letters

_base64 = cython.declare(u8[64])


def _fill() -> None:
    letters: bytes = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    index: cython.int
    for index in range(64):
        _base64[index] = letters[index]


_fill()


@cython.cfunc
@cython.exceptval(check=False)
def _put_moment(column: Sink, kind: cython.int, packed: int64_t) -> cython.bint:
    """Append a temporal value in quotes, from the server's packed form, with six fraction digits (DATE: no time).

    From the right: microseconds 24 bits, second 6, minute 6, hour 5, day 5, year * 13 + month. TIME has an hour of 10
    bits and may be negative.
    """
    out: cython.pointer[u8] = room(column, 40)
    if out == cython.NULL:
        return False
    start: cython.pointer[u8] = out
    out[0] = 34  # "
    out += 1
    is_time: cython.bint = kind == _TIME
    if packed < 0:
        if not is_time or -packed < 0:
            column.failure = INVALID
            return False
        packed = -packed
        out[0] = 45
        out += 1
    micros: uint32_t = cython.cast(uint32_t, packed & 0xFFFFFF)
    clock: uint64_t = cython.cast(uint64_t, packed >> 24)
    date: uint64_t = 0 if is_time else clock >> 17
    hour: uint64_t = clock >> 12 if is_time else (clock >> 12) & 31
    minute: uint32_t = cython.cast(uint32_t, (clock >> 6) & 63)
    second: uint32_t = cython.cast(uint32_t, clock & 63)
    if (
        micros > 999999
        or second > 59
        or minute > 59
        or hour > cython.cast(uint64_t, 838 if is_time else 23)
        or (date >> 5) // 13 > 9999
    ):
        column.failure = INVALID
        return False
    if not is_time:
        out = put_digits(out, cython.cast(uint32_t, (date >> 5) // 13), 4)
        out[0] = 45
        out = put_digits(out + 1, cython.cast(uint32_t, (date >> 5) % 13), 2)
        out[0] = 45
        out = put_digits(out + 1, cython.cast(uint32_t, date & 31), 2)
    if kind != _DATE:
        if not is_time:
            out[0] = 32
            out += 1
        out = put_digits(out, cython.cast(uint32_t, hour), 3 if hour > 99 else 2)
        out[0] = 58  # :
        out = put_digits(out + 1, minute, 2)
        out[0] = 58
        out = put_digits(out + 1, second, 2)
        out[0] = 46  # .
        out = put_digits(out + 1, micros, 6)
    out[0] = 34
    column.length += out + 1 - start
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _put_base64(column: Sink, kind: cython.int, at: Bytes, size: cython.Py_ssize_t) -> cython.bint:
    """Append `"base64:type15:…"`, in lines of 76 letters, with escaped line breaks."""
    head: cython.p_const_char = b'"base64:type'
    if not put_raw(column, cython.cast(Bytes, head), 12) or not put_number(column, kind, False):
        return False
    out: cython.pointer[u8] = room(column, 2 + 4 * ((size + 2) // 3) + 2 * (size // _LINE))
    if out == cython.NULL:
        return False
    start: cython.pointer[u8] = out
    out[0] = 58  # :
    out += 1
    done: cython.Py_ssize_t = 0
    group: uint32_t
    left: cython.Py_ssize_t
    while done < size:
        if done and done % _LINE == 0:
            out[0] = 92  # \n
            out[1] = 110
            out += 2
        left = size - done
        group = cython.cast(uint32_t, at[done]) << 16
        if left > 1:
            group |= at[done + 1] << 8
        if left > 2:
            group |= at[done + 2]
        out[0] = _base64[group >> 18]
        out[1] = _base64[(group >> 12) & 63]
        out[2] = _base64[(group >> 6) & 63] if left > 1 else 61  # =
        out[3] = _base64[group & 63] if left > 2 else 61
        out += 4
        done += 3
    out[0] = 34
    column.length += out + 1 - start
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _put_opaque(column: Sink, kind: cython.int, at: Bytes, size: cython.Py_ssize_t) -> cython.bint:
    """Append a value of a type that JSON lacks, by the server's number for the type.

    Sets the column's `opaque`, except for a VAR_STRING, which a JSON string equals. A column with a `scale` of 1 gets
    NaN for the value, which no document has otherwise.
    """
    packed: int64_t = 0
    nan: cython.p_const_char = b"NaN"
    if kind == _VAR_STRING:
        return put_quoted(column, at, size)
    column.opaque = True
    if column.scale == 1:
        return put_raw(column, cython.cast(Bytes, nan), 3)
    if kind == _DECIMAL:  # precision and scale, then as in a row; up to nine groups of nine digits
        if size < 2 or not 0 < at[0] <= 81 or at[1] > at[0]:
            column.failure = INVALID
            return False
        return put_decimal(column, at + 2, at + size, at[0] - at[1], at[1]) != cython.NULL
    if kind in (_DATE, _TIME, _DATETIME, _TIMESTAMP):
        if size != 8:
            column.failure = INVALID
            return False
        memcpy(cython.address(packed), at, 8)
        return _put_moment(column, kind, packed)
    return _put_base64(column, kind, at, size)


@cython.cfunc
@cython.exceptval(check=False)
def _sized(at: Bytes, end: Bytes, size: cython.pointer[cython.Py_ssize_t]) -> Bytes:
    """Return the address after a length of one to five bytes, seven bits each, lowest first; NULL if it is invalid."""
    value: uint64_t = 0
    shift: cython.int = 0
    while shift < 35 and at < end:
        byte: cython.uchar = at[0]
        value |= cython.cast(uint64_t, byte & 0x7F) << shift
        shift += 7
        at += 1
        if not byte & 0x80:
            if value > cython.cast(uint64_t, end - at):
                return cython.NULL
            size[0] = cython.cast(cython.Py_ssize_t, value)
            return at
    return cython.NULL


@cython.cfunc
@cython.exceptval(check=False)
def put_scalar(column: Sink, kind: cython.int, at: Bytes, end: Bytes) -> cython.Py_ssize_t:
    """Append the scalar of type byte `kind` at `at`.

    Returns the number of bytes that it takes there, or -1 on an error.
    """
    literals: cython.p_const_char = b"nulltruefalse"
    value: int64_t = 0
    real: cython.double = 0
    size: cython.Py_ssize_t = 0
    width: cython.Py_ssize_t = 1
    opaque: cython.int = -1
    done: cython.bint
    start: Bytes = at
    if kind == 0x0C or kind == 0x0F:
        if kind == 0x0F and at < end:
            opaque = at[0]
            at += 1
        at = _sized(at, end, cython.address(size))
        if at == cython.NULL:
            fail(column, INVALID)
            return -1
        done = put_quoted(column, at, size) if kind == 0x0C else _put_opaque(column, opaque, at, size)
        return at + size - start if done else -1
    if 0x05 <= kind <= 0x0B:
        width = 2 if kind < 0x07 else 4 if kind < 0x09 else 8
    if end - at < width:
        fail(column, TRUNCATED)
        return -1
    if kind == 0x0B:
        memcpy(cython.address(real), at, 8)
        done = put_double(column, real)
    elif 0x05 <= kind <= 0x0A:
        memcpy(cython.address(value), at, width)
        if kind == 0x05:
            value = cython.cast(cython.short, value)
        elif kind == 0x07:
            value = cython.cast(cython.int, value)
        done = put_number(column, cython.cast(uint64_t, value), False) if kind == 0x0A else put_signed(column, value)
    elif kind == 0x04 and at[0] < 3:
        done = put_raw(column, cython.cast(Bytes, literals) + 4 * at[0], 5 if at[0] == 2 else 4)
    else:
        fail(column, INVALID)
        return -1
    return width if done else -1
