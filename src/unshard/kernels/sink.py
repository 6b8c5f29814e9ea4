# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="attr-defined, has-type, type-arg, no-any-return"
"""The destination of one table's row images: a growing Arrow column for each of its columns.

Memory is allocated in C, until `take` hands it to Arrow buffers without a copy. Values are read by numbers.py,
times.py, strings.py and json.py.
"""

from __future__ import annotations

from typing import Any

import cython
import pyarrow as pa
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import int64_t
from cython.cimports.libc.stdlib import calloc, free, malloc, realloc
from cython.cimports.libc.string import memcpy
from cython.cimports.unshard.kernels.columns import (
    Bytes,
    ColumnSink,
    Reader,
    Sink,
    grow_rows,
    put_null,
    reserve,
    u8,
)
from cython.cimports.unshard.kernels.heap import keep_freed_memory
from cython.cimports.unshard.kernels.json import read_json
from cython.cimports.unshard.kernels.numbers import (
    read_decimal,
    read_float,
    read_int8,
    read_int16,
    read_int24,
    read_int32,
    read_int64,
    read_little_endian,
    read_uint8,
    read_uint16,
    read_uint24,
    read_uint32,
    read_year,
)
from cython.cimports.unshard.kernels.strings import (
    read_bytes,
    read_fixed,
    read_inet4,
    read_inet6,
    read_padded,
    read_text,
    read_uuid,
)
from cython.cimports.unshard.kernels.texts import put_of
from cython.cimports.unshard.kernels.times import (
    read_date,
    read_datetime,
    read_datetime_hires,
    read_datetime_old,
    read_time,
    read_time_hires,
    read_time_old,
    read_timestamp,
    read_timestamp_hires,
    read_timestamp_old,
)

REASONS = ("", "goes beyond the end of its event", "is no value of its type", "passes 2 GiB", "does not fit in memory")
"""The value of `RowFault.reason` for each `Failure` of columns.pxd."""


class RowFault(Exception):
    """Bytes that can't be read. `offset` is the event's, `column` is an index, or -1 if the event itself is bad.

    `kind` is `event` (broken framing), `type` (an event of an unsupported type), `image` (row images without a column),
    `unmapped` (rows without a TABLE_MAP) or `value`.
    """

    def __init__(self, kind: str, offset: int, reason: str, sink: RowSink | None = None, column: int = -1) -> None:
        super().__init__(kind, offset, reason)
        self.kind = kind
        self.offset = offset
        self.reason = reason
        self.sink = sink
        self.column = column


@cython.cclass
class Block:
    """A block of C memory, freed together with the last Arrow buffer that uses it."""

    def __dealloc__(self) -> None:
        free(self.memory)


@cython.cfunc
def hand_over(memory: cython.p_void, size: cython.Py_ssize_t) -> object:
    """Return an Arrow buffer that owns `memory`, which is first cut to `size` bytes."""
    if size == 0:
        free(memory)
        return pa.py_buffer(b"")
    cut: cython.p_void = realloc(memory, size)
    block: Block = Block.__new__(Block)
    block.memory = cut if cut != cython.NULL else memory
    return pa.foreign_buffer(cython.cast(cython.size_t, block.memory), size, block)


@cython.cfunc
@cython.exceptval(check=False)
def _reader(kind: str) -> Reader:
    """Return the reader of that name, NULL for an unknown name."""
    if kind == "int8":
        return read_int8
    if kind == "uint8":
        return read_uint8
    if kind == "int16":
        return read_int16
    if kind == "uint16":
        return read_uint16
    if kind == "int24":
        return read_int24
    if kind == "uint24":
        return read_uint24
    if kind == "int32":
        return read_int32
    if kind == "uint32":
        return read_uint32
    if kind in ("int64", "uint64", "double"):
        return read_int64
    if kind == "float":
        return read_float
    if kind == "year":
        return read_year
    if kind == "number":
        return read_little_endian
    if kind == "decimal":
        return read_decimal
    if kind == "date":
        return read_date
    if kind == "time":
        return read_time
    if kind == "datetime":
        return read_datetime
    if kind == "timestamp":
        return read_timestamp
    if kind == "time_old":
        return read_time_old
    if kind == "datetime_old":
        return read_datetime_old
    if kind == "timestamp_old":
        return read_timestamp_old
    if kind == "time_hires":
        return read_time_hires
    if kind == "datetime_hires":
        return read_datetime_hires
    if kind == "timestamp_hires":
        return read_timestamp_hires
    if kind == "uuid":
        return read_uuid
    if kind == "inet4":
        return read_inet4
    if kind == "inet6":
        return read_inet6
    if kind == "bytes":
        return read_bytes
    if kind == "padded":
        return read_padded
    if kind == "fixed":
        return read_fixed
    if kind == "json":
        return read_json
    return cython.NULL


@cython.cclass
class LeftOut:
    """A stand-in for the sink of a table whose row events are counted in `events` but not read."""

    def __init__(self) -> None:
        self.events = 0


@cython.cclass
class RowSink:
    """The growing columns of one table, with `op` and `seq` of every row.

    `layout` has a tuple (reader, width, size, scale, table) for each column: the names of `_reader` and of `put_of`,
    and the fields of `ColumnSink`. `label` is the caller's own value for the table.
    """

    def __init__(self, layout: list[tuple[str, int, int, int, bytes | None]], label: Any) -> None:
        keep_freed_memory()
        self.label = label
        self.count = len(layout)
        self.tables = []
        self.columns = cython.cast(cython.pointer[ColumnSink], calloc(self.count + 1, cython.sizeof(ColumnSink)))
        if self.columns == cython.NULL:
            raise MemoryError
        column: Sink
        for index, (kind, width, size, scale, table) in enumerate(layout):
            column = cython.address(self.columns[cython.cast(cython.Py_ssize_t, index)])
            column.put = put_of(kind, table)
            column.read = _reader(kind) if column.put == cython.NULL else read_text
            column.width = width
            column.size = size
            column.scale = scale
            if table is not None:
                self.tables.append(table)
                column.table = cython.cast(Bytes, PyBytes_AS_STRING(table))
            if column.read == cython.NULL:
                raise ValueError(f"no such reader: {kind}")

    def __dealloc__(self) -> None:
        column: cython.Py_ssize_t
        if self.columns != cython.NULL:
            for column in range(self.count):
                free(self.columns[column].data)
                free(self.columns[column].offsets)
                free(self.columns[column].validity)
                free(self.columns[column].marks)
        free(self.columns)
        free(self.ops)
        free(self.seqs)
        free(self.marks)

    @cython.cfunc
    @cython.exceptval(check=False)
    def grow(self) -> cython.bint:
        """Make room for twice as many rows. Returns False if memory is short."""
        capacity: cython.Py_ssize_t = 2 * self.capacity if self.capacity else 16
        ops: cython.p_void = realloc(self.ops, capacity)
        if ops == cython.NULL:
            return False
        self.ops = cython.cast(cython.pointer[u8], ops)
        seqs: cython.p_void = realloc(self.seqs, capacity * 8)
        if seqs == cython.NULL:
            return False
        self.seqs = cython.cast(cython.pointer[int64_t], seqs)
        column: cython.Py_ssize_t
        for column in range(self.count):
            if not grow_rows(cython.address(self.columns[column]), self.rows, capacity):
                return False
        self.capacity = capacity
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def read(self, at: Bytes, end: Bytes, op: cython.int, seq: int64_t) -> Bytes:
        """Append one row image.

        Returns NULL, with `failed` set, if it can't be read; the sink can't be used after that.
        """
        nulls: Bytes = at
        count: cython.Py_ssize_t = self.count
        row: cython.Py_ssize_t = self.rows
        index: cython.Py_ssize_t
        column: Sink
        self.failed = -1
        if end - at < (count + 7) >> 3:
            return cython.NULL
        if row == self.capacity and not self.grow():
            return cython.NULL
        at += (count + 7) >> 3
        for index in range(count):
            column = cython.address(self.columns[index])
            if nulls[index >> 3] & (1 << (index & 7)):
                if not put_null(column, row, self.capacity):
                    self.failed = index
                    return cython.NULL
            else:
                at = column.read(column, at, end)
                if at == cython.NULL:
                    self.failed = index
                    return cython.NULL
            if column.width == 0:
                column.offsets[row + 1] = cython.cast(cython.int, column.length)
        self.ops[row] = cython.cast(u8, op)
        self.seqs[row] = seq
        self.rows = row + 1
        return at

    @cython.cfunc
    @cython.exceptval(check=False)
    def mark(self, offset: int64_t) -> cython.bint:
        """Record that the next row comes from the event at `offset`."""
        if self.marks_length + 16 > self.marks_capacity and not reserve(
            cython.address(self.marks), cython.address(self.marks_capacity), self.marks_length + 16
        ):
            return False
        row: int64_t = self.rows
        memcpy(self.marks + self.marks_length, cython.address(row), 8)
        memcpy(self.marks + self.marks_length + 8, cython.address(offset), 8)
        self.marks_length += 16
        return True

    def offset_of(self, row: cython.Py_ssize_t) -> int:
        """Return the offset of the event that row number `row` came from. May be called after `take`."""
        offset: int64_t = 0
        first: int64_t = 0
        at: cython.Py_ssize_t = 0
        while at < self.marks_length:
            memcpy(cython.address(first), self.marks + at, 8)
            if first > row:
                break
            memcpy(cython.address(offset), self.marks + at + 8, 8)
            at += 16
        return offset

    def offsets(self) -> Any:
        """Return the offset of the event that each row came from, as an Arrow buffer of int64.

        To be called before `take`.
        """
        size: cython.Py_ssize_t = self.rows * 8
        found: cython.pointer[int64_t] = cython.cast(cython.pointer[int64_t], malloc(size + 1))
        if found == cython.NULL:
            raise MemoryError
        offset: int64_t = 0
        next_row: int64_t = 0
        at: cython.Py_ssize_t = 0
        row: cython.Py_ssize_t
        for row in range(self.rows):
            # an event without rows leaves a mark that the next one takes over
            while at < self.marks_length:
                memcpy(cython.address(next_row), self.marks + at, 8)
                if next_row > row:
                    break
                memcpy(cython.address(offset), self.marks + at + 8, 8)
                at += 16
            found[row] = offset
        return hand_over(found, size)

    def opaque(self, index: cython.Py_ssize_t) -> Any:
        """Return the numbers of the rows whose document in JSON column `index` holds values of types that JSON lacks.

        They are ascending, an Arrow buffer of int64. To be called before `take`.
        """
        column: Sink = cython.address(self.columns[index])
        size: cython.Py_ssize_t = column.marks_length
        found: cython.pointer[int64_t] = cython.cast(cython.pointer[int64_t], malloc(size + 1))
        if found == cython.NULL:
            raise MemoryError
        start: int64_t = 0
        row: cython.Py_ssize_t = 0
        at: cython.Py_ssize_t
        for at in range(size >> 3):
            memcpy(cython.address(start), column.marks + 8 * at, 8)
            while column.offsets[row + 1] <= start:
                row += 1
            found[at] = row
        return hand_over(found, size)

    def fault(self, offset: int) -> RowFault:
        """Return why the last row image could not be read."""
        if self.failed < 0:
            return RowFault("event", offset, "a row image goes beyond the end of its event", self)
        return RowFault("value", offset, REASONS[self.columns[self.failed].failure], self, self.failed)

    def take(self) -> tuple[int, Any, Any, list[tuple[Any, Any, Any, int]]]:
        """Return rows, ops, seqs and by column (data, offsets or None, validity or None, nulls), as Arrow buffers.

        The buffers take over the memory, so it may be called once.
        """
        index: cython.Py_ssize_t
        column: Sink
        found: list = []
        rows: cython.Py_ssize_t = self.rows
        for index in range(self.count):
            column = cython.address(self.columns[index])
            data = hand_over(column.data, column.length)
            column.data = cython.NULL
            offsets = validity = None
            if column.width == 0:
                offsets = hand_over(column.offsets, 4 * (rows + 1) if rows else 0)
                column.offsets = cython.NULL
            if column.validity != cython.NULL:
                validity = hand_over(column.validity, (rows + 7) >> 3)
                column.validity = cython.NULL
            found.append((data, offsets, validity, column.nulls))
        ops = hand_over(self.ops, rows)
        seqs = hand_over(self.seqs, 8 * rows)
        self.ops = cython.NULL
        self.seqs = cython.NULL
        self.capacity = self.rows = 0
        return rows, ops, seqs, found
