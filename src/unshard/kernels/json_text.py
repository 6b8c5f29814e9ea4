# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="no-any-return"
"""Writers of JSON text as MySQL prints it: strings, whole numbers, doubles.

Each appends to the column's data. On an error it returns False, with the column's `failure` set.
"""

from __future__ import annotations

import cython
from cython.cimports.cpython.conversion import PyOS_double_to_string
from cython.cimports.cpython.exc import PyErr_Clear
from cython.cimports.cpython.mem import PyMem_Free
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.unshard.kernels.columns import INVALID, NO_MEMORY, Bytes, Sink, put_digits, room, u8

# By byte: 0 where it stands for itself, `u` where it is written as a number, else the letter behind the backslash.
_escape = cython.declare(u8[256])
_hex = cython.declare(u8[16])


def _fill() -> None:
    index: cython.int
    for index in range(256):
        _escape[index] = 117 if index < 32 else 0
    for byte, letter in ((8, 98), (9, 116), (10, 110), (12, 102), (13, 114), (34, 34), (92, 92)):
        index = byte
        _escape[index] = letter  # \b \t \n \f \r \" \\
    for index in range(16):
        _hex[index] = 48 + index if index < 10 else 87 + index


_fill()


@cython.cfunc
@cython.exceptval(check=False)
def put_raw(column: Sink, text: Bytes, size: cython.Py_ssize_t) -> cython.bint:
    """Append the bytes unchanged."""
    out: cython.pointer[u8] = room(column, size)
    if out == cython.NULL:
        return False
    memcpy(out, text, size)
    column.length += size
    return True


@cython.cfunc
@cython.exceptval(check=False)
def put_quoted(column: Sink, text: Bytes, size: cython.Py_ssize_t) -> cython.bint:
    """Append a string in quotes, escaped as the server does it: only where JSON requires it."""
    escaped: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    letter: u8
    for index in range(size):
        letter = _escape[text[index]]
        if letter:
            escaped += 5 if letter == 117 else 1
    out: cython.pointer[u8] = room(column, size + escaped + 2)
    if out == cython.NULL:
        return False
    column.length += size + escaped + 2
    out[0] = 34  # "
    out += 1
    if escaped == 0:
        memcpy(out, text, size)
        out[size] = 34
        return True
    for index in range(size):
        letter = _escape[text[index]]
        if letter == 0:
            out[0] = text[index]
            out += 1
            continue
        out[0] = 92  # \
        out[1] = letter
        out += 2
        if letter == 117:  # u
            out[0] = out[1] = 48
            out[2] = _hex[text[index] >> 4]
            out[3] = _hex[text[index] & 15]
            out += 4
    out[0] = 34
    return True


@cython.cfunc
@cython.exceptval(check=False)
def put_number(column: Sink, value: uint64_t, negative: cython.bint) -> cython.bint:
    """Append the digits of a number, after a minus sign if it is `negative`."""
    digits = cython.declare(u8[24])
    at: cython.int = 24
    while True:
        at -= 1
        digits[at] = cython.cast(u8, 48 + value % 10)
        value //= 10
        if value == 0:
            break
    if negative:
        at -= 1
        digits[at] = 45  # -
    return put_raw(column, cython.address(digits[at]), 24 - at)


@cython.cfunc
@cython.exceptval(check=False)
def put_signed(column: Sink, value: int64_t) -> cython.bint:
    """Append a signed number."""
    if value < 0:
        return put_number(column, 0 - cython.cast(uint64_t, value), True)
    return put_number(column, cython.cast(uint64_t, value), False)


@cython.cfunc
@cython.exceptval(check=False)
def put_double(column: Sink, value: cython.double) -> cython.bint:
    """Append the shortest digits that read back as the same number, in the server's layout.

    No exponent from 1e-15 on and below 1e15, nor if there are digits after the point; `.0` marks a whole number as a
    double.
    """
    if value - value != 0:  # neither NaN nor infinity is JSON
        column.failure = INVALID
        return False
    shortest: cython.p_char = PyOS_double_to_string(value, 114, 0, 0, cython.NULL)  # r
    if shortest == cython.NULL:
        PyErr_Clear()
        column.failure = NO_MEMORY
        return False
    digits = cython.declare(u8[32])
    count: cython.int = 0
    point: cython.int = 0  # how many digits stand before the point; below 0, how many zeros behind it
    exponent: cython.int = 0
    seen_point: cython.bint = False
    at: cython.p_char = shortest
    negative: cython.bint = at[0] == 45
    if negative:
        at += 1
    while at[0] == 46 or 48 <= at[0] <= 57:
        if at[0] == 46:
            seen_point = True
        else:
            if count or at[0] != 48:
                digits[count] = at[0]
                count += 1
                point += not seen_point
            elif seen_point:
                point -= 1
        at += 1
    if at[0] == 101:  # e
        at += 2
        while at[0]:
            exponent = exponent * 10 + at[0] - 48
            at += 1
        at = shortest + negative
        while at[0] != 101:
            at += 1
        point += -exponent if at[1] == 45 else exponent
    PyMem_Free(shortest)
    while count and digits[count - 1] == 48:
        count -= 1
    if count == 0:
        digits[0] = 48
        count = point = 1
    return _put_digits(column, digits, count, point, negative)


@cython.cfunc
@cython.exceptval(check=False)
def _put_digits(
    column: Sink, digits: Bytes, count: cython.int, point: cython.int, negative: cython.bint
) -> cython.bint:
    """Append the number 0.`digits` times ten to the power of `point`."""
    out: cython.pointer[u8] = room(column, 48)
    if out == cython.NULL:
        return False
    start: cython.pointer[u8] = out
    if negative:
        out[0] = 45
        out += 1
    if -15 < point <= 0:
        out[0] = 48
        out[1] = 46
        memset(out + 2, 48, -point)
        memcpy(out + 2 - point, digits, count)
        out += 2 - point + count
    elif 0 < point < count:
        memcpy(out, digits, point)
        out[point] = 46
        memcpy(out + point + 1, digits + point, count - point)
        out += count + 1
    elif count <= point <= 15:
        memcpy(out, digits, count)
        memset(out + count, 48, point - count)
        out[point] = 46
        out[point + 1] = 48
        out += point + 2
    else:
        out[0] = digits[0]
        out += 1
        if count > 1:
            out[0] = 46
            memcpy(out + 1, digits + 1, count - 1)
            out += count
        out[0] = 101  # e
        out += 1
        point -= 1
        if point < 0:
            out[0] = 45
            out += 1
            point = -point
        out = put_digits(out, point, 1 if point < 10 else 2 if point < 100 else 3)
    column.length += out - start
    return True
