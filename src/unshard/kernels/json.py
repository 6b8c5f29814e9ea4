# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="no-any-return, attr-defined"
"""Converts MySQL's binary JSON to the text that MySQL itself prints for it.

A document is a type byte and a value. A container consists of: the number of its members; its size in bytes; for an
object, one entry for each key (its offset, and its length in two bytes); one entry for each value (its type byte, then
its offset or, if it fits there, the value itself); then keys and values. Counts, sizes and offsets have two bytes in a
small container, four in a large one. Offsets count from the container's own start. Everything is little-endian. (The
format is described in comments of MySQL's json_binary.h.)

A document whose values overlap is refused: no byte is read twice, so time and text are linear in its size.
"""

from __future__ import annotations

from typing import Any

import cython
import pyarrow as pa
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int32_t, uint32_t
from cython.cimports.libc.stdlib import free
from cython.cimports.libc.string import memset
from cython.cimports.unshard.kernels.columns import (
    INVALID,
    TRUNCATED,
    Bytes,
    ColumnSink,
    Sink,
    fail,
    grow_rows,
    put_mark,
)
from cython.cimports.unshard.kernels.json import Container
from cython.cimports.unshard.kernels.json_scalars import put_scalar
from cython.cimports.unshard.kernels.json_text import put_quoted, put_raw
from cython.cimports.unshard.kernels.wire import u16, u32

_DEEPEST = cython.declare(cython.int, 100)  # MySQL's own limit


@cython.cfunc
@cython.exceptval(check=False)
def _open(level: cython.pointer[Container], kind: cython.int, at: Bytes, end: Bytes) -> cython.bint:
    """Read the header of the container of type byte `kind`, 0 to 3, at `at`.

    Returns False if it doesn't fit before `end`.
    """
    level.large = kind & 1
    level.keyed = kind < 2
    width: cython.int = 4 if level.large else 2
    if end - at < 2 * width:
        return False
    level.start = at
    level.count = u32(at) if level.large else u16(at)
    level.size = u32(at + 4) if level.large else u16(at + 2)
    level.next = 0
    entries: cython.ulonglong = cython.cast(cython.ulonglong, level.count) * (
        1 + width + (2 + width if level.keyed else 0)
    )
    if level.size > end - at or entries + 2 * width > level.size:
        return False
    level.header = cython.cast(uint32_t, entries) + 2 * width
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _key(level: cython.pointer[Container], size: cython.pointer[cython.Py_ssize_t]) -> Bytes:
    """Return the next member's key, or NULL if it lies outside the container."""
    width: cython.int = 4 if level.large else 2
    entry: Bytes = level.start + 2 * width + cython.cast(cython.Py_ssize_t, level.next) * (width + 2)
    offset: uint32_t = u32(entry) if level.large else u16(entry)
    size[0] = u16(entry + width)
    if offset < level.header or offset + size[0] > level.size:
        return cython.NULL
    return level.start + offset


@cython.cfunc
@cython.exceptval(check=False)
def _value(level: cython.pointer[Container], kind: cython.pointer[cython.int]) -> Bytes:
    """Return the next member's value and its type byte, or NULL if it lies outside the container."""
    width: cython.int = 4 if level.large else 2
    entry: Bytes = level.start + level.header - cython.cast(cython.Py_ssize_t, level.count - level.next) * (1 + width)
    offset: uint32_t = u32(entry + 1) if level.large else u16(entry + 1)
    kind[0] = entry[0]
    if 0x04 <= kind[0] <= 0x06 or (level.large and 0x07 <= kind[0] <= 0x08):
        return entry + 1
    if offset < level.header or offset >= level.size:
        return cython.NULL
    return level.start + offset


@cython.cfunc
@cython.exceptval(check=False)
def _put_document(column: Sink, at: Bytes, end: Bytes) -> cython.bint:
    """Append the text of the document between `at` and `end`.

    Returns False, with the column's `failure` set, on an error.
    """
    levels = cython.declare(Container[100])
    signs: cython.p_const_char = b"{}[], : null"
    depth: cython.int = 0
    kind: cython.int
    taken: cython.Py_ssize_t = 0
    left: cython.Py_ssize_t = end - at  # bytes that no value has taken yet
    size: cython.Py_ssize_t = 0
    level: cython.pointer[Container] = cython.NULL
    key: Bytes
    last: Bytes = end
    if at == end:  # what INSERT IGNORE stores for a NULL that the column refuses
        return put_raw(column, cython.cast(Bytes, signs) + 8, 4)
    kind = at[0]
    at += 1
    while True:
        # A value of type `kind` lies at `at`.
        if kind < 4:
            if depth == _DEEPEST or not _open(cython.address(levels[depth]), kind, at, last):
                column.failure = INVALID
                return False
            level = cython.address(levels[depth])
            depth += 1
            left -= level.header
            if not put_raw(column, cython.cast(Bytes, signs) + (0 if level.keyed else 2), 1):
                return False
        else:
            taken = put_scalar(column, kind, at, last)
            if taken < 0:
                return False
            if depth == 0 or at >= level.start + level.header:  # else it is counted with the header
                left -= taken
        if left < 0:
            column.failure = INVALID
            return False
        while depth and level.next == level.count:
            if not put_raw(column, cython.cast(Bytes, signs) + (1 if level.keyed else 3), 1):
                return False
            depth -= 1
            if depth:
                level = cython.address(levels[depth - 1])
        if depth == 0:
            return True
        if level.next and not put_raw(column, cython.cast(Bytes, signs) + 4, 2):
            return False
        if level.keyed:
            key = _key(level, cython.address(size))
            if key == cython.NULL:
                column.failure = INVALID
                return False
            left -= size
            if not put_quoted(column, key, size) or not put_raw(column, cython.cast(Bytes, signs) + 6, 2):
                return False
        at = _value(level, cython.address(kind))
        if at == cython.NULL:
            column.failure = INVALID
            return False
        last = level.start + level.size
        level.next += 1


@cython.cfunc
@cython.exceptval(check=False)
def read_json(column: Sink, at: Bytes, end: Bytes) -> Bytes:
    """Read a JSON column's value, which follows its length in four bytes. See `Reader` in columns.pxd.

    The column's `marks` get the documents that hold opaque values.
    """
    start: cython.Py_ssize_t = column.length
    if end - at < 4 or end - at - 4 < u32(at):
        return fail(column, TRUNCATED)
    end = at + 4 + u32(at)
    column.opaque = False
    if not _put_document(column, at + 4, end) or (column.opaque and not put_mark(column, start)):
        return cython.NULL
    return end


def to_text(documents: Any, opaque: list[int] | None = None, *, hidden: bool = False) -> Any:
    """Convert a `pa.BinaryArray` of documents to a `pa.StringArray` of their texts; NULL stays NULL.

    `opaque` gets the numbers of the rows whose documents hold opaque values: those of types that JSON lacks. If they
    are `hidden`, NaN is written for each of them.

    The text is not checked to be UTF-8. Raises ValueError, with the row's number, for a value that is no document, and
    if all texts together exceed 2 GiB.
    """
    if documents.type != pa.binary():
        raise TypeError("documents are binary")
    rows: cython.Py_ssize_t = len(documents)
    first: cython.Py_ssize_t = documents.offset
    buffers: list[Any] = documents.buffers()
    address: cython.size_t = buffers[1].address if rows else 0
    offsets: cython.pointer[int32_t] = cython.cast(cython.pointer[int32_t], address)
    address = buffers[2].address if rows and buffers[2] is not None else 0
    data: Bytes = cython.cast(Bytes, address)
    address = buffers[0].address if buffers[0] is not None else 0
    validity: Bytes = cython.cast(Bytes, address)
    column = cython.declare(ColumnSink)
    memset(cython.address(column), 0, cython.sizeof(ColumnSink))
    column.scale = 1 if hidden else 0
    row: cython.Py_ssize_t
    place: cython.Py_ssize_t
    try:
        if not grow_rows(cython.address(column), 0, rows + 1):
            raise MemoryError
        for row in range(rows):
            place = first + row
            column.opaque = False
            if (validity == cython.NULL or (validity[place >> 3] >> (place & 7)) & 1) and not _put_document(
                cython.address(column), data + offsets[place], data + offsets[place + 1]
            ):
                raise ValueError(f"row {row} is no binary JSON, or its text is too large")
            column.offsets[row + 1] = cython.cast(cython.int, column.length)
            if column.opaque and opaque is not None:
                opaque.append(row)
        ends = PyBytes_FromStringAndSize(cython.cast(cython.p_char, column.offsets), 4 * (rows + 1))
        texts = PyBytes_FromStringAndSize(cython.cast(cython.p_char, column.data), column.length)
    finally:
        free(column.offsets)
        free(column.data)
    nulls = None if documents.null_count == 0 else documents.is_valid().buffers()[1]
    return pa.Array.from_buffers(
        pa.string(), rows, [nulls, pa.py_buffer(ends), pa.py_buffer(texts)], documents.null_count
    )
