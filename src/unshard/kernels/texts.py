# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="attr-defined, no-any-return"
"""Converts text of every character set to UTF-8, appended to a column.

The functions `put_*` follow the contract of `Put` in columns.pxd. The tables are those of `unshard.mysql.charsets`. A
character without an entry, one that the end cuts off, and a lone surrogate make the value fail.
"""

from __future__ import annotations

import cython
from cython.cimports.libc.stdint import uint32_t
from cython.cimports.unshard.kernels.columns import INVALID, Bytes, Put, Sink, room, u8

_SINGLES = cython.declare(cython.int, 4 * 256)  # bytes of a table that tells characters of one byte
_PAIRS = cython.declare(cython.int, 4 * 257 * 256)  # … and of two
_LINEAR = cython.declare(cython.int, 12600)  # four-byte characters of gb18030 under one first byte

_BYTES_OF_TABLE = {
    "singles": 4 * 256,
    "pairs": 4 * 257 * 256,
    "triples": 4 * 513 * 256,
    "quads": 4 * (257 * 256 + 4 * 12600),
}


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _invalid(column: Sink) -> cython.bint:
    column.failure = INVALID
    return False


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_entry(out: cython.pointer[u8], entry: Bytes) -> cython.int:
    """Copy an entry's UTF-8 form. Always writes three bytes, the longest form; returns the form's length."""
    out[0] = entry[1]
    out[1] = entry[2]
    out[2] = entry[3]
    return entry[0]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_code(out: cython.pointer[u8], code: uint32_t) -> cython.int:
    """Write the UTF-8 form of a code point up to U+10FFFF. Returns the number of bytes written, four at most."""
    if code < 0x80:
        out[0] = cython.cast(u8, code)
        return 1
    if code < 0x800:
        out[0] = cython.cast(u8, 0xC0 | code >> 6)
        out[1] = cython.cast(u8, 0x80 | code & 0x3F)
        return 2
    if code < 0x10000:
        out[0] = cython.cast(u8, 0xE0 | code >> 12)
        out[1] = cython.cast(u8, 0x80 | code >> 6 & 0x3F)
        out[2] = cython.cast(u8, 0x80 | code & 0x3F)
        return 3
    out[0] = cython.cast(u8, 0xF0 | code >> 18)
    out[1] = cython.cast(u8, 0x80 | code >> 12 & 0x3F)
    out[2] = cython.cast(u8, 0x80 | code >> 6 & 0x3F)
    out[3] = cython.cast(u8, 0x80 | code & 0x3F)
    return 4


@cython.cfunc
@cython.exceptval(check=False)
def _put_singles(column: Sink, at: Bytes, length: cython.Py_ssize_t) -> cython.bint:
    out: cython.pointer[u8] = room(column, 3 * length + 4)
    if out == cython.NULL:
        return False
    start: cython.pointer[u8] = out
    entry: Bytes
    i: cython.Py_ssize_t
    for i in range(length):
        entry = column.table + 4 * at[i]
        if entry[0] == 0:
            return _invalid(column)
        out += _put_entry(out, entry)
    column.length += out - start
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_quad(out: cython.pointer[u8], at: Bytes, table: Bytes) -> cython.int:
    """Write a character of gb18030's four-byte codes. Returns 0 if there is no such character."""
    if not (0x81 <= at[0] <= 0xFE and 0x30 <= at[1] <= 0x39 and 0x81 <= at[2] <= 0xFE and 0x30 <= at[3] <= 0x39):
        return 0
    number: cython.int = ((at[0] - 0x81) * 10 + at[1] - 0x30) * 1260 + (at[2] - 0x81) * 10 + at[3] - 0x30
    if number < 4 * _LINEAR:
        return _put_entry(out, table + _PAIRS + 4 * number)
    number += 0x10000 - 15 * _LINEAR
    if number < 0x10000 or number > 0x10FFFF:
        return 0
    return _put_code(out, number)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_multi(column: Sink, at: Bytes, length: cython.Py_ssize_t, longest: cython.int) -> cython.bint:
    """Convert characters of one and two bytes, of three bytes after 0x8F (`longest` 3), of four bytes (`longest` 4)."""
    out: cython.pointer[u8] = room(column, 3 * length + 4)
    if out == cython.NULL:
        return False
    start: cython.pointer[u8] = out
    end: Bytes = at + length
    table: Bytes = column.table
    entry: Bytes
    size: cython.int
    while at < end:
        size = 1
        entry = table + 4 * at[0]
        if entry[0] == 0:
            if end - at < 2:
                return _invalid(column)
            size = 2
            entry = table + _SINGLES + 4 * (at[0] << 8 | at[1])
            if entry[0] == 0:
                if longest == 4 and end - at > 3:
                    size = _put_quad(out, at, table)
                    if size == 0:
                        return _invalid(column)
                    out += size
                    at += 4
                    continue
                if longest != 3 or at[0] != 0x8F or end - at < 3:
                    return _invalid(column)
                size = 3
                entry = table + _PAIRS + 4 * (at[1] << 8 | at[2])
                if entry[0] == 0:
                    return _invalid(column)
        out += _put_entry(out, entry)
        at += size
    column.length += out - start
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _put_pairs(column: Sink, at: Bytes, length: cython.Py_ssize_t) -> cython.bint:
    return _put_multi(column, at, length, 2)


@cython.cfunc
@cython.exceptval(check=False)
def _put_triples(column: Sink, at: Bytes, length: cython.Py_ssize_t) -> cython.bint:
    return _put_multi(column, at, length, 3)


@cython.cfunc
@cython.exceptval(check=False)
def _put_quads(column: Sink, at: Bytes, length: cython.Py_ssize_t) -> cython.bint:
    return _put_multi(column, at, length, 4)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_units(
    column: Sink, at: Bytes, length: cython.Py_ssize_t, high: cython.int, paired: cython.bint
) -> cython.bint:
    """Convert units of two bytes, with the high byte at `high`. `paired`: two surrogates may form one character."""
    if length & 1:
        return _invalid(column)
    out: cython.pointer[u8] = room(column, length + (length >> 1) + 4)
    if out == cython.NULL:
        return False
    start: cython.pointer[u8] = out
    end: Bytes = at + length
    code: uint32_t
    second: uint32_t
    while at < end:
        code = at[high] << 8 | at[1 - high]
        at += 2
        if 0xD800 <= code <= 0xDFFF:
            if not paired or code > 0xDBFF or at == end:
                return _invalid(column)
            second = at[high] << 8 | at[1 - high]
            if not 0xDC00 <= second <= 0xDFFF:
                return _invalid(column)
            code = 0x10000 + ((code - 0xD800) << 10) + second - 0xDC00
            at += 2
        out += _put_code(out, code)
    column.length += out - start
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _put_ucs2(column: Sink, at: Bytes, length: cython.Py_ssize_t) -> cython.bint:
    return _put_units(column, at, length, 0, False)


@cython.cfunc
@cython.exceptval(check=False)
def _put_utf16(column: Sink, at: Bytes, length: cython.Py_ssize_t) -> cython.bint:
    return _put_units(column, at, length, 0, True)


@cython.cfunc
@cython.exceptval(check=False)
def _put_utf16le(column: Sink, at: Bytes, length: cython.Py_ssize_t) -> cython.bint:
    return _put_units(column, at, length, 1, True)


@cython.cfunc
@cython.exceptval(check=False)
def _put_utf32(column: Sink, at: Bytes, length: cython.Py_ssize_t) -> cython.bint:
    if length & 3:
        return _invalid(column)
    out: cython.pointer[u8] = room(column, length + 4)
    if out == cython.NULL:
        return False
    start: cython.pointer[u8] = out
    end: Bytes = at + length
    code: uint32_t
    while at < end:
        code = cython.cast(uint32_t, at[0]) << 24 | at[1] << 16 | at[2] << 8 | at[3]
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            return _invalid(column)
        out += _put_code(out, code)
        at += 4
    column.length += out - start
    return True


@cython.cfunc
def put_of(kind: str, table: bytes) -> Put:
    """Return the `Put` for a name of `mysql.charsets.decoding`, NULL for any other.

    Raises ValueError for a table of the wrong size.
    """
    if kind in _BYTES_OF_TABLE and (table is None or len(table) != _BYTES_OF_TABLE[kind]):
        raise ValueError(f"no table of {kind}")
    if kind == "singles":
        return _put_singles
    if kind == "pairs":
        return _put_pairs
    if kind == "triples":
        return _put_triples
    if kind == "quads":
        return _put_quads
    if kind == "ucs2":
        return _put_ucs2
    if kind == "utf16":
        return _put_utf16
    if kind == "utf16le":
        return _put_utf16le
    if kind == "utf32":
        return _put_utf32
    return cython.NULL
