# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
"""Readers of MariaDB's UUID, INET4 and INET6: each becomes the text that the server prints.

In a row image all three are BINARY(16) or BINARY(4): a length byte, then the bytes without their trailing zeros. A
UUID's bytes stand in the order of its text: the server swaps them only inside its own records. All follow the
contract of `Reader` in columns.pxd.
"""

from __future__ import annotations

import cython
from cython.cimports.libc.stdint import uint32_t
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.unshard.kernels.columns import INVALID, TRUNCATED, Bytes, Sink, room, u8

_WIDEST = cython.declare(cython.int, 48)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _unpack(column: Sink, at: Bytes, end: Bytes, value: cython.pointer[u8], size: cython.int) -> cython.bint:
    """The value's `size` bytes, the zeros that the image leaves out in their place."""
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
    """0 to 255 in decimal."""
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
    """Groups of hex digits; the first of the longest runs of zero groups is `::`.

    As the server prints it: a run of one group counts as well, and an address that begins with six zero groups, or
    five and ffff, ends in decimal like an INET4 (with six only where the seventh group is not zero).
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
