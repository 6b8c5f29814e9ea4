# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="no-any-return"
"""Converts Arrow columns to SQL text, and keys to partitions. No Python object is made for a row or a value."""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
import pyarrow as pa
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int32_t, uint64_t
from cython.cimports.libc.stdlib import calloc, free, malloc
from cython.cimports.libc.string import memcpy
from cython.cimports.unshard.kernels.columns import LARGEST, Bytes
from cython.cimports.unshard.kernels.sink import hand_over
from cython.cimports.unshard.kernels.text import (
    Piece,
    Text,
    Writer,
    append,
    write_bare,
    write_binary,
    write_double,
    write_float,
    write_int8,
    write_int16,
    write_int32,
    write_int64,
    write_quoted,
    write_uint8,
    write_uint16,
    write_uint32,
    write_uint64,
)

from unshard.errors import BinlogError


@cython.cfunc
def _writer(kind: Any, bare: cython.bint) -> Writer:
    """Return the writer for an Arrow type. Raises TypeError for one that no column has."""
    if kind == pa.int64():
        return write_int64
    if kind == pa.uint64():
        return write_uint64
    if kind == pa.string():
        return write_bare if bare else write_quoted
    if kind == pa.binary():
        return write_bare if bare else write_binary
    if kind == pa.float32():
        return write_float
    if kind == pa.float64():
        return write_double
    if kind == pa.int32():
        return write_int32
    if kind == pa.int16():
        return write_int16
    if kind == pa.int8():
        return write_int8
    if kind == pa.uint32():
        return write_uint32
    if kind == pa.uint16():
        return write_uint16
    if kind == pa.uint8():
        return write_uint8
    raise TypeError(f"no literal for Arrow type {kind}")


@cython.cfunc
def _address(buffer: Any) -> Bytes:
    """Return the start of an Arrow buffer, NULL for None."""
    address: cython.size_t = 0 if buffer is None else buffer.address
    return cython.cast(Bytes, address)


@cython.cfunc
def _lay_out(piece: cython.pointer[Piece], column: Any, bare: cython.bint) -> cython.void:
    kind: Any = column.type
    if kind == pa.null():
        piece.nothing = True
        return
    piece.write = _writer(kind, bare)
    buffers: list[Any] = column.buffers()
    piece.first = column.offset
    piece.validity = _address(buffers[0]) if column.null_count else cython.NULL
    piece.values = _address(buffers[len(buffers) - 1])
    if len(buffers) == 3:
        piece.offsets = cython.cast(cython.pointer[int32_t], _address(buffers[1]))


def render(columns: list[Any], prefixes: list[bytes], suffix: bytes, bare: list[bool] | None = None) -> Any:
    """Return the SQL text of every row: `prefixes[0] literal(column 0) prefixes[1] literal(column 1) … suffix`.

    Args:
        columns: Arrow arrays of one length (slices as well) of type int*, uint*, float32, float64, string, binary or
            null.
        prefixes: the text before each column's literal.
        suffix: the text after the last literal.
        bare: by column, whether its strings are written without quotes (DECIMAL). If omitted, all are quoted.

    The result is a `pa.BinaryArray` without NULLs whose data buffer holds the texts one after the other. NULL is
    written as `NULL`, strings have backslash escapes (so the session must not have NO_BACKSLASH_ESCAPES), binary is
    `x'..'`, and floats have their shortest exact text. Raises BinlogError BINLOG-028 beyond 2 GiB, ValueError for NaN
    and infinity.
    """
    count: cython.Py_ssize_t = len(columns)
    if count == 0 or len(prefixes) != count or (bare is not None and len(bare) != count):
        raise ValueError("one prefix, and one `bare`, for each of at least one column")
    rows: cython.Py_ssize_t = len(columns[0])
    if any(len(column) != rows for column in columns):
        raise ValueError("columns of different lengths")
    index: cython.Py_ssize_t
    text = cython.declare(Text)
    text.data = cython.NULL
    text.length = text.capacity = 0
    pieces: cython.pointer[Piece] = cython.cast(cython.pointer[Piece], calloc(count, cython.sizeof(Piece)))
    offsets: cython.pointer[int32_t] = cython.cast(cython.pointer[int32_t], malloc(4 * (rows + 1)))
    try:
        if pieces == cython.NULL or offsets == cython.NULL:
            raise MemoryError
        for index in range(count):
            prefix: bytes = prefixes[index]
            pieces[index].prefix = cython.cast(Bytes, PyBytes_AS_STRING(prefix))
            pieces[index].prefix_size = PyBytes_GET_SIZE(prefix)
            _lay_out(cython.address(pieces[index]), columns[index], bare is not None and bare[index])
        _render(pieces, count, rows, suffix, cython.address(text), offsets)
        ends = hand_over(offsets, 4 * (rows + 1))
        offsets = cython.NULL
        data = hand_over(text.data, text.length)
        text.data = cython.NULL
    finally:
        free(pieces)
        free(offsets)
        free(text.data)
    return pa.Array.from_buffers(pa.binary(), rows, [None, ends, data], 0)


@cython.cfunc
def _render(
    pieces: cython.pointer[Piece],
    count: cython.Py_ssize_t,
    rows: cython.Py_ssize_t,
    suffix: bytes,
    text: cython.pointer[Text],
    offsets: cython.pointer[int32_t],
) -> cython.void:
    last: Bytes = cython.cast(Bytes, PyBytes_AS_STRING(suffix))
    last_size: cython.Py_ssize_t = PyBytes_GET_SIZE(suffix)
    piece: cython.pointer[Piece]
    row: cython.Py_ssize_t
    index: cython.Py_ssize_t
    at: cython.Py_ssize_t
    done: cython.bint
    offsets[0] = 0
    for row in range(rows):
        for index in range(count):
            piece = cython.address(pieces[index])
            at = piece.first + row
            done = append(text, piece.prefix, piece.prefix_size)
            if (
                done
                and not piece.nothing
                and (piece.validity == cython.NULL or (piece.validity[at >> 3] >> (at & 7)) & 1)
            ):
                done = piece.write(piece, at, text)
            elif done:
                done = append(text, cython.cast(Bytes, cython.cast(cython.p_const_char, b"NULL")), 4)
            if not done:
                raise ValueError("a value is not a number, or infinite, or memory is out")
        if not append(text, last, last_size):
            raise MemoryError
        if text.length > LARGEST:
            raise BinlogError("BINLOG-028")
        offsets[row + 1] = cython.cast(int32_t, text.length)


# Constants of splitmix64, as C variables: literals beyond 63 bits would be Python numbers.
_STEP = cython.declare(uint64_t, 0x9E3779B97F4A7C15)
_FIRST = cython.declare(uint64_t, 0xBF58476D1CE4E5B9)
_SECOND = cython.declare(uint64_t, 0x94D049BB133111EB)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _mix(value: uint64_t) -> uint64_t:
    """Spread every bit over all others (the finaliser of splitmix64)."""
    value = (value ^ (value >> 30)) * _FIRST
    value = (value ^ (value >> 27)) * _SECOND
    return value ^ (value >> 31)


@cython.cfunc
@cython.exceptval(check=False)
def _hash(at: Bytes, size: cython.Py_ssize_t) -> uint64_t:
    """Hash eight bytes at a time, little-endian. The length is included, so that trailing zeros count."""
    found: uint64_t = _STEP ^ cython.cast(uint64_t, size)
    word: uint64_t = 0
    while size >= 8:
        memcpy(cython.address(word), at, 8)
        found = _mix(found ^ word) + _STEP
        at += 8
        size -= 8
    word = 0
    memcpy(cython.address(word), at, size)
    return _mix(found ^ word)


def hash_of(keys: Any) -> Any:
    """Return a stable 64-bit hash of every key of a `pa.BinaryArray` without NULLs, as numpy uint64.

    It is the same in every process and release and on every little-endian platform, because a repeated plan must give
    the same partitions.
    """
    if keys.type != pa.binary() or keys.null_count:
        raise TypeError("keys are binary and never NULL")
    rows: cython.Py_ssize_t = len(keys)
    first: cython.Py_ssize_t = keys.offset
    found = np.empty(rows, dtype=np.uint64)
    out_address: cython.size_t = found.ctypes.data
    out: cython.pointer[uint64_t] = cython.cast(cython.pointer[uint64_t], out_address)
    buffers: list[Any] = keys.buffers()
    offsets: cython.pointer[int32_t] = cython.cast(cython.pointer[int32_t], _address(buffers[1]))
    data: Bytes = _address(buffers[2])
    row: cython.Py_ssize_t
    for row in range(rows):
        out[row] = _hash(data + offsets[first + row], offsets[first + row + 1] - offsets[first + row])
    return found


def partition_of(keys: Any, partitions: int) -> Any:
    """Return the partition, 0 to `partitions` - 1, of every key, as numpy int32: `hash_of` modulo `partitions`."""
    return (hash_of(keys) % np.uint64(partitions)).astype(np.int32)


def range_partition_of(keys: Any, partitions: int, tail: int, digits: int) -> Any:
    """Return the partition of every key, as numpy int32; keys that are neighbours mostly have the same partition.

    `tail` is the number of bytes after the last value of each text. Where that value ends with decimal digits, keys
    that differ only in the last `digits` of them are a range and have one partition; the ranges are dealt to the
    partitions in turn. Other keys are dealt by their hash. Like `partition_of`, it depends on the texts alone and never
    changes. Raises TypeError as `hash_of`.
    """
    if keys.type != pa.binary() or keys.null_count:
        raise TypeError("keys are binary and never NULL")
    rows: cython.Py_ssize_t = len(keys)
    first: cython.Py_ssize_t = keys.offset
    found = np.empty(rows, dtype=np.int32)
    out_address: cython.size_t = found.ctypes.data
    out: cython.pointer[int32_t] = cython.cast(cython.pointer[int32_t], out_address)
    buffers: list[Any] = keys.buffers()
    offsets: cython.pointer[int32_t] = cython.cast(cython.pointer[int32_t], _address(buffers[1]))
    data: Bytes = _address(buffers[2])
    count: uint64_t = partitions
    behind: cython.Py_ssize_t = tail
    within: cython.Py_ssize_t = digits
    row: cython.Py_ssize_t
    for row in range(rows):
        begin: cython.Py_ssize_t = offsets[first + row]
        end: cython.Py_ssize_t = offsets[first + row + 1] - behind
        start: cython.Py_ssize_t = end
        while start > begin and 48 <= data[start - 1] <= 57:
            start -= 1
        number: uint64_t = 0
        at: cython.Py_ssize_t
        for at in range(start, end - within):
            number = number * 10 + cython.cast(uint64_t, data[at] - 48)
        if start > begin:  # a sign, the key's other columns, or a value without digits at its end
            number += _hash(data + begin, start - begin)
        out[row] = number % count
    return found
