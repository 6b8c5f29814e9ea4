# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="no-any-return"
"""Writers of SQL literals: integers bare, floats in their shortest exact text, strings escaped, bytes in hex.

Each follows the contract of `Writer` in text.pxd.
"""

from __future__ import annotations

import cython
from cython.cimports.cpython.conversion import PyOS_double_to_string, PyOS_string_to_double
from cython.cimports.cpython.mem import PyMem_Free
from cython.cimports.libc.stdint import int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from cython.cimports.libc.string import memchr, memcpy, strlen
from cython.cimports.unshard.kernels.columns import Bytes, reserve, u8
from cython.cimports.unshard.kernels.text import Piece, Text

# The letter behind the backslash by byte, 0 for bytes that stand for themselves.
_escape = cython.declare(u8[256])
_hex = cython.declare(u8[16])


def _fill() -> None:
    index: cython.int
    for index in range(256):
        _escape[index] = 0
    for byte, letter in ((0, 48), (10, 110), (13, 114), (26, 90), (34, 34), (39, 39), (92, 92)):
        index = byte
        _escape[index] = letter  # \0 \n \r \Z \" \' \\
    for index in range(16):
        _hex[index] = 48 + index if index < 10 else 87 + index


_fill()


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _room(text: cython.pointer[Text], size: cython.Py_ssize_t) -> cython.pointer[u8]:
    """Return the address for `size` more bytes, which may be 0; NULL if memory is short."""
    if text.length + size >= text.capacity and not reserve(
        cython.address(text.data), cython.address(text.capacity), text.length + size + 1
    ):
        return cython.NULL
    return text.data + text.length


@cython.cfunc
@cython.exceptval(check=False)
def append(text: cython.pointer[Text], data: Bytes, size: cython.Py_ssize_t) -> cython.bint:
    """Append the bytes; return False if memory is short."""
    out: cython.pointer[u8] = _room(text, size)
    if out == cython.NULL:
        return False
    memcpy(out, data, size)
    text.length += size
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _put_number(text: cython.pointer[Text], value: uint64_t, negative: cython.bint) -> cython.bint:
    out: cython.pointer[u8] = _room(text, 24)
    if out == cython.NULL:
        return False
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
    memcpy(out, cython.address(digits[at]), 24 - at)
    text.length += 24 - at
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_signed(text: cython.pointer[Text], value: int64_t) -> cython.bint:
    if value < 0:
        return _put_number(text, 0 - cython.cast(uint64_t, value), True)
    return _put_number(text, cython.cast(uint64_t, value), False)


@cython.cfunc
@cython.exceptval(check=False)
def write_int8(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write an int8."""
    return _put_signed(text, cython.cast(cython.pointer[int8_t], piece.values)[index])


@cython.cfunc
@cython.exceptval(check=False)
def write_int16(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write an int16."""
    return _put_signed(text, cython.cast(cython.pointer[int16_t], piece.values)[index])


@cython.cfunc
@cython.exceptval(check=False)
def write_int32(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write an int32."""
    return _put_signed(text, cython.cast(cython.pointer[int32_t], piece.values)[index])


@cython.cfunc
@cython.exceptval(check=False)
def write_int64(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write an int64."""
    return _put_signed(text, cython.cast(cython.pointer[int64_t], piece.values)[index])


@cython.cfunc
@cython.exceptval(check=False)
def write_uint8(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write a uint8."""
    return _put_number(text, cython.cast(cython.pointer[uint8_t], piece.values)[index], False)


@cython.cfunc
@cython.exceptval(check=False)
def write_uint16(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write a uint16."""
    return _put_number(text, cython.cast(cython.pointer[uint16_t], piece.values)[index], False)


@cython.cfunc
@cython.exceptval(check=False)
def write_uint32(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write a uint32."""
    return _put_number(text, cython.cast(cython.pointer[uint32_t], piece.values)[index], False)


@cython.cfunc
@cython.exceptval(check=False)
def write_uint64(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write a uint64."""
    return _put_number(text, cython.cast(cython.pointer[uint64_t], piece.values)[index], False)


@cython.cfunc
@cython.exceptval(check=False)
def _put_real(text: cython.pointer[Text], found: cython.p_char) -> cython.bint:
    """Append a text of PyOS_double_to_string and free it.

    An exponent is added if the text has none, because the server reads a number without one as a DECIMAL, which has no
    -0.
    """
    size: cython.Py_ssize_t = strlen(found)
    done: cython.bint = append(text, cython.cast(Bytes, found), size)
    if done and memchr(found, 101, size) == cython.NULL:  # e
        done = append(text, cython.cast(Bytes, cython.cast(cython.p_const_char, b"e0")), 2)
    PyMem_Free(found)
    return done


_ROUNDS_UP = cython.declare(cython.double, 3.4028234e38)


@cython.cfunc
@cython.exceptval(check=False)
def write_float(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write the fewest digits, 6 to 9, that the server, which reads them as a double first, converts to the same FLOAT.

    The largest FLOAT gets all of its digits: rounded up, it would be beyond the range, which the server refuses.
    """
    value: cython.float = cython.cast(cython.pointer[cython.float], piece.values)[index]
    if value - value != 0:
        return False
    found: cython.p_char
    if value > _ROUNDS_UP or value < -_ROUNDS_UP:
        found = PyOS_double_to_string(value, 114, 0, 0, cython.NULL)  # r
        return found != cython.NULL and _put_real(text, found)
    precision: cython.int
    for precision in range(6, 10):
        found = PyOS_double_to_string(value, 103, precision, 0, cython.NULL)  # g
        if found == cython.NULL:
            return False
        if precision == 9 or cython.cast(cython.float, PyOS_string_to_double(found, cython.NULL, cython.NULL)) == value:
            return _put_real(text, found)
        PyMem_Free(found)
    return False


@cython.cfunc
@cython.exceptval(check=False)
def write_double(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write a DOUBLE in the shortest text that reads back as the same number; False for NaN and infinity."""
    value: cython.double = cython.cast(cython.pointer[cython.double], piece.values)[index]
    if value - value != 0:
        return False
    found: cython.p_char = PyOS_double_to_string(value, 114, 0, 0, cython.NULL)  # r
    if found == cython.NULL:
        return False
    return _put_real(text, found)


@cython.cfunc
@cython.exceptval(check=False)
def write_bare(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write text that is a literal already: DECIMAL."""
    start: int32_t = piece.offsets[index]
    return append(text, piece.values + start, piece.offsets[index + 1] - start)


@cython.cfunc
@cython.exceptval(check=False)
def write_quoted(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write a string in quotes; eight bytes at a time as long as none of them needs a backslash."""
    source: Bytes = piece.values + piece.offsets[index]
    left: cython.Py_ssize_t = piece.offsets[index + 1] - piece.offsets[index]
    out: cython.pointer[u8] = _room(text, 2 * left + 2)
    if out == cython.NULL:
        return False
    start: cython.pointer[u8] = out
    e: cython.pointer[u8] = _escape
    run: cython.int
    _i: cython.int
    out[0] = 39  # '
    out += 1
    while left > 0:
        if left >= 8 and not (
            e[source[0]]
            | e[source[1]]
            | e[source[2]]
            | e[source[3]]
            | e[source[4]]
            | e[source[5]]
            | e[source[6]]
            | e[source[7]]
        ):
            memcpy(out, source, 8)
            out += 8
            source += 8
            left -= 8
            continue
        run = 8 if left >= 8 else cython.cast(cython.int, left)
        left -= run
        for _i in range(run):
            if e[source[0]]:
                out[0] = 92
                out[1] = e[source[0]]
                out += 2
            else:
                out[0] = source[0]
                out += 1
            source += 1
    out[0] = 39
    text.length += out + 1 - start
    return True


@cython.cfunc
@cython.exceptval(check=False)
def write_binary(piece: cython.pointer[Piece], index: cython.Py_ssize_t, text: cython.pointer[Text]) -> cython.bint:
    """Write x'..'. It works for empty values too, for which 0x would be no literal."""
    source: Bytes = piece.values + piece.offsets[index]
    size: cython.Py_ssize_t = piece.offsets[index + 1] - piece.offsets[index]
    out: cython.pointer[u8] = _room(text, 2 * size + 3)
    if out == cython.NULL:
        return False
    out[0] = 120  # x
    out[1] = 39
    out += 2
    i: cython.Py_ssize_t
    for i in range(size):
        out[0] = _hex[source[i] >> 4]
        out[1] = _hex[source[i] & 15]
        out += 2
    out[0] = 39
    text.length += 2 * size + 3
    return True
