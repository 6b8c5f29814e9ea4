# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="attr-defined, has-type, var-annotated, type-arg, no-any-return, misc"
"""The columns of row images that lack columns, or whose JSON columns may hold differences instead of documents.

The columns of a `PartialSink` are those that its images have, before or after. A column that one image lacks is NULL in
its row.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t
from cython.cimports.unshard.kernels.columns import Bytes, Sink, put_null, u8
from cython.cimports.unshard.kernels.sink import RowSink

from unshard.kernels.sink import RowFault

_BEFORE = cython.declare(cython.int, 2)  # as `unshard.model.change.Op`
_DELETE = cython.declare(cython.int, 4)


@cython.cclass
class PartialSink(RowSink):
    """A RowSink for images of some columns.

    `before` and `after` have a byte for each column of `layout`: 1 if images of that kind contain the column.
    `documents` is the number of JSON columns in the whole table. `diffs` gets (row number, bitmap) for each after image
    that contains differences; the bitmap has a bit for each JSON column of the table.
    """

    def __init__(
        self,
        layout: list[tuple[str, int, int, int, bytes | None]],
        label: Any,
        before: bytes,
        after: bytes,
        documents: int,
    ) -> None:
        super().__init__(layout, label)
        if len(before) != len(layout) or len(after) != len(layout):
            raise ValueError("one byte for each column")
        self.before = before
        self.after = after
        self.shown_before = before.count(1)
        self.shown_after = after.count(1)
        self.documents = documents
        self.diffs = []

    @cython.cfunc
    @cython.exceptval(check=False)
    def read_some(self, at: Bytes, end: Bytes, op: cython.int, seq: int64_t) -> Bytes:
        """Read as `read`, for an image with the columns of `before` (UPDATE_BEFORE, DELETE) or `after`.

        Its NULL bitmap has bits only for those columns; the others get NULL.
        """
        nulls: Bytes = at
        kind: bytes = self.before if op in (_BEFORE, _DELETE) else self.after
        present: Bytes = cython.cast(Bytes, PyBytes_AS_STRING(kind))
        size: cython.Py_ssize_t = ((self.shown_before if kind is self.before else self.shown_after) + 7) >> 3
        row: cython.Py_ssize_t = self.rows
        index: cython.Py_ssize_t
        bit: cython.Py_ssize_t = 0
        missing: cython.bint
        column: Sink
        self.failed = -1
        if end - at < size:
            return cython.NULL
        if row == self.capacity and not self.grow():
            return cython.NULL
        at += size
        for index in range(self.count):
            column = cython.address(self.columns[index])
            missing = True
            if present[index]:
                missing = nulls[bit >> 3] & (1 << (bit & 7)) != 0
                bit += 1
            if missing:
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
    def read_options(self, at: Bytes, end: Bytes, offset: int64_t) -> Bytes:
        """Read the value options before an after image.

        If they are not 0, they are added to `diffs` with the row's number. Only bit 0 is known. It means that a bitmap
        follows, which says which of the JSON columns contain differences.
        """
        self.failed = -1
        if end - at < 1:
            return cython.NULL
        if at[0] == 0:
            return at + 1
        size: cython.Py_ssize_t = (self.documents + 7) >> 3
        if at[0] != 1:
            raise RowFault("event", offset, "a row image has value options that are not known", self)
        if end - at - 1 < size:
            return cython.NULL
        self.diffs.append((self.rows, PyBytes_FromStringAndSize(cython.cast(cython.p_char, at + 1), size)))
        return at + 1 + size
