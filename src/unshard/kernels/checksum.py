# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""CRC-32 of binlog events, by the processor's carry-less multiplication if it has one, otherwise by tables."""

from __future__ import annotations

import cython
from cython.cimports.libc.string import memcpy
from cython.cimports.unshard.kernels.fold import can_fold, fold
from cython.cimports.unshard.kernels.wire import Bytes, u32, u64

_HEADER = cython.declare(cython.int, 19)
_CHECKSUM = cython.declare(cython.int, 4)
_FORMAT_DESCRIPTION = cython.declare(cython.int, 15)
_IN_USE = cython.declare(cython.int, 0x01)
_WORTH_FOLDING = cython.declare(cython.int, 64)
_tables = cython.declare(cython.uint[4096])
_keys = cython.declare(cython.ulonglong[4])
_folds = cython.declare(cython.bint, can_fold())


@cython.cfunc
def _fill_tables() -> cython.void:
    """Compute the tables of CRC-32 (reflected polynomial EDB88320) for sixteen bytes at a time."""
    byte: cython.uint
    step: cython.int
    _: cython.int
    value: cython.uint
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (cython.cast(cython.uint, 0xEDB88320) if value & 1 else 0)
        _tables[byte] = value
    for byte in range(256):
        for step in range(1, 16):
            value = _tables[(step - 1) * 256 + byte]
            _tables[step * 256 + byte] = (value >> 8) ^ _tables[value & 255]


@cython.cfunc
def _power(exponent: cython.int) -> cython.ulonglong:
    """Return x^exponent modulo the polynomial, as `fold` multiplies by it: reflected, and shifted up one bit."""
    value: cython.uint = 0x80000000
    _: cython.int
    for _ in range(exponent):
        value = (value >> 1) ^ (cython.cast(cython.uint, 0xEDB88320) if value & 1 else 0)
    return cython.cast(cython.ulonglong, value) << 1


@cython.cfunc
def _fill_keys() -> cython.void:
    """Compute the multipliers of `fold`.

    A reflected 32-bit value lies 32 bits low in its 64-bit half, so the multiplier of the later half has 64 bits less.
    """
    lane: cython.int
    for lane in range(2):
        _keys[2 * lane] = _power((128 if lane else 512) + 32)
        _keys[2 * lane + 1] = _power((128 if lane else 512) - 32)


_fill_tables()
_fill_keys()


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def crc32_from(crc: cython.uint, at: Bytes, length: cython.longlong) -> cython.uint:
    """Return the CRC-32 of `length` bytes, continued from `crc` (0 to begin), as zlib's function does."""
    folded = cython.declare(cython.uchar[16])
    crc = ~crc
    if _folds and length >= _WORTH_FOLDING:
        fold(at, length >> 4, crc, _keys, folded)
        crc = _by_tables(0, folded, 16)
        at += length & ~15
        length &= 15
    return ~_by_tables(crc, at, length)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def _by_tables(crc: cython.uint, at: Bytes, length: cython.longlong) -> cython.uint:
    """Return the CRC register after `length` bytes, starting from `crc`."""
    word: cython.ulonglong
    more: cython.ulonglong
    while length >= 16:
        word = u64(at) ^ crc
        more = u64(at + 8)
        crc = (
            _tables[3840 + (word & 255)] ^ _tables[3584 + (word >> 8 & 255)]
            ^ _tables[3328 + (word >> 16 & 255)] ^ _tables[3072 + (word >> 24 & 255)]
            ^ _tables[2816 + (word >> 32 & 255)] ^ _tables[2560 + (word >> 40 & 255)]
            ^ _tables[2304 + (word >> 48 & 255)] ^ _tables[2048 + (word >> 56)]
            ^ _tables[1792 + (more & 255)] ^ _tables[1536 + (more >> 8 & 255)]
            ^ _tables[1280 + (more >> 16 & 255)] ^ _tables[1024 + (more >> 24 & 255)]
            ^ _tables[768 + (more >> 32 & 255)] ^ _tables[512 + (more >> 40 & 255)]
            ^ _tables[256 + (more >> 48 & 255)] ^ _tables[more >> 56]
        )  # fmt: skip
        at += 16
        length -= 16
    if length >= 8:
        word = u64(at) ^ crc
        crc = (
            _tables[1792 + (word & 255)] ^ _tables[1536 + (word >> 8 & 255)]
            ^ _tables[1280 + (word >> 16 & 255)] ^ _tables[1024 + (word >> 24 & 255)]
            ^ _tables[768 + (word >> 32 & 255)] ^ _tables[512 + (word >> 40 & 255)]
            ^ _tables[256 + (word >> 48 & 255)] ^ _tables[word >> 56]
        )  # fmt: skip
        at += 8
        length -= 8
    while length > 0:
        crc = (crc >> 8) ^ _tables[(crc ^ at[0]) & 255]
        at += 1
        length -= 1
    return crc


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def intact(at: Bytes, length: cython.longlong) -> cython.bint:
    """Return whether the last four bytes of an event are the CRC-32 of the bytes before them.

    The server computes the checksum of a FORMAT_DESCRIPTION as if its file were closed, and sets the in-use flag
    afterwards.
    """
    header = cython.declare(cython.uchar[19])
    crc: cython.uint
    if at[4] != _FORMAT_DESCRIPTION:
        return crc32_from(0, at, length - _CHECKSUM) == u32(at + length - _CHECKSUM)
    memcpy(header, at, _HEADER)
    header[17] = header[17] & ~_IN_USE
    crc = crc32_from(0, header, _HEADER)
    crc = crc32_from(crc, at + _HEADER, length - _HEADER - _CHECKSUM)
    return crc == u32(at + length - _CHECKSUM)


def crc32(data: cython.const[cython.uchar][::1], tables_only: cython.bint = False) -> int:
    """Return the CRC-32 of all of `data`. `tables_only` computes it as on a processor without the instruction."""
    if data.shape[0] == 0:
        return 0
    if tables_only:
        return ~_by_tables(0xFFFFFFFF, cython.address(data[0]), data.shape[0]) & 0xFFFFFFFF
    return crc32_from(0, cython.address(data[0]), data.shape[0])
