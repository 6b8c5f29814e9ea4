# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False, disable-error-code="valid-type,no-any-return,attr-defined"
"""Converts the VALUES list of an INSERT to the rows of a MariaDB bulk statement, which the server need not parse.

A value of a row is a byte, 0 or 1 for NULL, and where it is not NULL the value in the binary protocol. All values of a
column have one type, which is chosen so that the server converts them as it converts the literals:

| literals of the column | type |
|---|---|
| integers | LONGLONG, unsigned where one is above 2^63 - 1; NEWDECIMAL where a third one is negative |
| integers and decimals | NEWDECIMAL |
| any of these, and some with an exponent | DOUBLE |
| `'…'` | VAR_STRING |
| `x'…'` | BLOB |

Format: "COM_STMT_BULK_EXECUTE" and "Result set row, binary" in MariaDB's knowledge base.
"""

from __future__ import annotations

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import uint64_t
from cython.cimports.libc.stdlib import calloc, free, strtod
from cython.cimports.libc.string import memchr, memcpy
from cython.cimports.unshard.kernels.bulk_rows import Column, Token
from cython.cimports.unshard.kernels.columns import Bytes, u8

# Forms of a literal, each a bit.
_NULL = cython.declare(cython.int, 0)
_INTEGER = cython.declare(cython.int, 1)
_DECIMAL = cython.declare(cython.int, 2)
_DOUBLE = cython.declare(cython.int, 4)
_TEXT = cython.declare(cython.int, 8)
_BYTES = cython.declare(cython.int, 16)

_LONGLONG = cython.declare(cython.int, 8)
_AS_DOUBLE = cython.declare(cython.int, 5)
_NEWDECIMAL = cython.declare(cython.int, 246)
_BLOB = cython.declare(cython.int, 252)
_VAR_STRING = cython.declare(cython.int, 253)
_UNSIGNED = cython.declare(cython.int, 0x8000)

_LONGEST_NUMBER = cython.declare(cython.Py_ssize_t, 60)
_HIGHEST_BIT = cython.declare(uint64_t, 0x8000000000000000)
_TENTH = cython.declare(uint64_t, 0x1999999999999999)  # of 2^64 - 1, whose last digit is 5


def bulk_rows(text: bytes, begin: int, end: int, columns: int) -> tuple[bytes, bytes, int] | None:
    """Return the types of the columns, the rows, and their number; None for a list that must go as text.

    `text[begin:end]` is `(…),(…)` as `kernels.literals` writes it: rows of so many `columns`, without spaces. Such a
    list must go as text if a column has literals of forms that no type stands for, or other expressions.
    """
    found: object = None
    types: bytes
    rows: bytes
    start: Bytes = cython.cast(Bytes, PyBytes_AS_STRING(text)) + cython.cast(cython.Py_ssize_t, begin)
    stop: Bytes = cython.cast(Bytes, PyBytes_AS_STRING(text)) + cython.cast(cython.Py_ssize_t, end)
    count: cython.Py_ssize_t = columns
    number: cython.Py_ssize_t
    size: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    kind: cython.int
    out: cython.pointer[u8]
    plan: cython.pointer[Column] = cython.cast(cython.pointer[Column], calloc(count, cython.sizeof(Column)))
    if plan == cython.NULL:
        raise MemoryError
    try:
        with cython.nogil:
            number = _survey(start, stop, plan, count)
        if number <= 0:
            return None
        types = PyBytes_FromStringAndSize(cython.NULL, 2 * count)
        for index in range(count):
            kind = _type(cython.address(plan[index]))
            if kind < 0:
                return None
            plan[index].kind = kind & 0xFF
            cython.cast(cython.pointer[u8], PyBytes_AS_STRING(types))[2 * index] = kind & 0xFF
            cython.cast(cython.pointer[u8], PyBytes_AS_STRING(types))[2 * index + 1] = kind >> 8
            size += number + (plan[index].size if plan[index].kind > _LONGLONG else 8 * plan[index].values)
        rows = PyBytes_FromStringAndSize(cython.NULL, size)
        out = cython.cast(cython.pointer[u8], PyBytes_AS_STRING(rows))
        with cython.nogil:
            _write(start, stop, plan, count, out)
        found = (types, rows, number)
    finally:
        free(plan)
    return found


@cython.cfunc
@cython.exceptval(check=False)
def _type(column: cython.pointer[Column]) -> cython.int:
    """Return the type for a column, with 0x8000 for an unsigned one; -1 where there is none."""
    if column.forms == _TEXT or column.forms == 0:
        return _VAR_STRING
    if column.forms == _BYTES:
        return _BLOB
    if column.forms >= _TEXT:
        return -1
    if column.forms & _DOUBLE:
        return _AS_DOUBLE
    if column.forms & _DECIMAL or (column.negative and column.large):
        return _NEWDECIMAL
    return _LONGLONG | _UNSIGNED if column.large else _LONGLONG


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _survey(at: Bytes, end: Bytes, plan: cython.pointer[Column], count: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Note the forms and sizes of each column. Return the number of rows; -1 where the text is no list of them."""
    rows: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    token = cython.declare(Token)
    column: cython.pointer[Column]
    while at < end:
        if rows:
            if at[0] != 44:  # ,
                return -1
            at += 1
        for index in range(count):
            if at >= end or at[0] != (44 if index else 40):  # , (
                return -1
            at = _scan(at + 1, end, cython.address(token))
            if at == cython.NULL:
                return -1
            if token.form != _NULL:
                column = cython.address(plan[index])
                column.forms |= token.form
                column.negative |= token.negative
                column.large |= token.large
                column.values += 1
                column.size += token.size + _prefix(token.size)
        if at >= end or at[0] != 41:  # )
            return -1
        at += 1
        rows += 1
    return rows


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scan(at: Bytes, end: Bytes, token: cython.pointer[Token]) -> Bytes:
    """Read the literal at `at`. Return the address after it; NULL where there is none.

    Every literal is followed by a comma or a bracket, so `end` lies after it.
    """
    token.begin = at
    token.negative = False
    token.large = False
    token.escaped = False
    if at >= end:
        return cython.NULL
    if at[0] == 39:  # '
        token.form = _TEXT
        return _scan_text(at + 1, end, token)
    if at[0] == 120:  # x
        token.form = _BYTES
        at += 1
        if at >= end or at[0] != 39:
            return cython.NULL
        token.begin = at + 1
        at = cython.cast(Bytes, memchr(at + 1, 39, end - at - 1))
        if at == cython.NULL or (at - token.begin) & 1:
            return cython.NULL
        token.size = (at - token.begin) >> 1
        return at + 1
    if at[0] == 78:  # N
        if end - at < 4 or at[1] != 85 or at[2] != 76 or at[3] != 76:
            return cython.NULL
        token.form = _NULL
        return at + 4
    return _scan_number(at, end, token)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scan_text(at: Bytes, end: Bytes, token: cython.pointer[Token]) -> Bytes:
    quote: Bytes
    escape: Bytes
    token.begin = at
    token.size = 0
    while True:
        quote = cython.cast(Bytes, memchr(at, 39, end - at))
        if quote == cython.NULL:
            return cython.NULL
        escape = cython.cast(Bytes, memchr(at, 92, quote - at))
        if escape == cython.NULL:
            token.size += quote - at
            return quote + 1
        if end - escape < 2:
            return cython.NULL
        token.escaped = True
        token.size += escape - at + 1
        at = escape + 2


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scan_number(at: Bytes, end: Bytes, token: cython.pointer[Token]) -> Bytes:
    value: uint64_t = 0
    digit: uint64_t
    digits: cython.Py_ssize_t = 0
    whole: cython.bint = True
    if at[0] == 45:  # -
        token.negative = True
        at += 1
    token.form = _INTEGER
    while at < end and at[0] != 44 and at[0] != 41:
        if 48 <= at[0] <= 57:
            digit = at[0] - 48
            if token.form == _INTEGER and (value > _TENTH or (value == _TENTH and digit > 5)):
                whole = False
            value = value * 10 + digit
            digits += 1
        elif at[0] == 46 and token.form == _INTEGER:  # .
            token.form = _DECIMAL
        elif (at[0] == 101 or at[0] == 69) and token.form != _DOUBLE and digits:  # e E
            token.form = _DOUBLE
            if end - at > 1 and (at[1] == 45 or at[1] == 43):
                at += 1
        else:
            return cython.NULL
        at += 1
    token.size = at - token.begin
    if not digits or (at - 1)[0] > 57 or (at - 1)[0] < 48 or token.size > _LONGEST_NUMBER:
        return cython.NULL
    if token.form == _INTEGER:
        if not whole or (token.negative and value > _HIGHEST_BIT):
            token.form = _DECIMAL
        else:
            token.large = not token.negative and value >= _HIGHEST_BIT
            token.value = value
            if token.negative:
                token.value = 0 - value
    return at


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _prefix(size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return how many bytes the length of a value takes."""
    return 1 if size < 251 else 3 if size < 65536 else 4 if size < 16777216 else 9


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write(
    at: Bytes, end: Bytes, plan: cython.pointer[Column], count: cython.Py_ssize_t, out: cython.pointer[u8]
) -> cython.void:
    """Write the rows of a list that `_survey` has read; `out` has room for them."""
    index: cython.Py_ssize_t
    width: cython.Py_ssize_t
    number: cython.double
    token = cython.declare(Token)
    token.value = 0
    while at < end:
        for index in range(count):
            if at[0] == 44 and not index:  # between two rows
                at += 1
            at = _scan(at + 1, end, cython.address(token))
            if token.form == _NULL:
                out[0] = 1
                out += 1
                continue
            out[0] = 0
            out += 1
            if plan[index].kind == _LONGLONG:
                memcpy(out, cython.address(token.value), 8)
                out += 8
                continue
            if plan[index].kind == _AS_DOUBLE:
                number = strtod(cython.cast(cython.p_char, token.begin), cython.NULL)
                memcpy(out, cython.address(number), 8)
                out += 8
                continue
            width = _prefix(token.size)
            if width > 1:
                out[0] = 0xFE
                if width < 9:
                    out[0] = 0xFC if width == 3 else 0xFD
                memcpy(out + 1, cython.address(token.size), width - 1)
            else:
                out[0] = cython.cast(u8, token.size)
            out = _write_bytes(out + width, cython.address(token))
        at += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write_bytes(out: cython.pointer[u8], token: cython.pointer[Token]) -> cython.pointer[u8]:
    """Write the bytes that a literal stands for. Return the address after them."""
    at: Bytes = token.begin
    left: cython.Py_ssize_t
    if token.form == _BYTES:
        for left in range(token.size):
            out[left] = (_nibble(at[2 * left]) << 4) | _nibble(at[2 * left + 1])
        return out + token.size
    if not token.escaped:
        memcpy(out, at, token.size)
        return out + token.size
    for left in range(token.size):
        if at[0] == 92:
            at += 1
            out[left] = _unescaped(at[0])
        else:
            out[left] = at[0]
        at += 1
    return out + token.size


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _nibble(digit: u8) -> u8:
    return digit - 48 if digit < 58 else (digit | 32) - 87


@cython.cfunc
@cython.nogil
@cython.inline
@cython.exceptval(check=False)
def _unescaped(letter: u8) -> u8:
    """Return the byte that a letter after a backslash stands for: those that `kernels.text` writes."""
    if letter == 48:  # 0
        return 0
    if letter == 110:  # n
        return 10
    if letter == 114:  # r
        return 13
    if letter == 90:  # Z
        return 26
    return letter
