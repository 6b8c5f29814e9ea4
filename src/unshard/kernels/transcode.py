# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="attr-defined, no-any-return"
"""Converts an Arrow column of text in any character set to UTF-8.

Used for the values that a dump reads from a server.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
import pyarrow as pa
from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import int32_t
from cython.cimports.libc.stdlib import free
from cython.cimports.libc.string import memset
from cython.cimports.unshard.kernels.columns import INVALID, Bytes, ColumnSink, grow_rows
from cython.cimports.unshard.kernels.sink import hand_over
from cython.cimports.unshard.kernels.texts import put_of

from unshard.kernels.sink import REASONS
from unshard.mysql import charsets


class UntranslatableText(ValueError):
    """A value that can't be converted to UTF-8. `row` counts from the array's first value."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


def transcode(values: pa.Array, charset: str) -> pa.Array:
    """Return `values` (binary, in bytes of `charset`) as strings.

    Raises UntranslatableText, KeyError for an unknown charset. The result is valid UTF-8. The extra memory is that of
    one copy.
    """
    kind, table = charsets.decoding(charset)
    if kind == "bytes":
        return _checked(values, charset)
    if values.offset:
        values = pa.concat_arrays([values])
    validity, offsets, data = values.buffers()
    rows = len(values)
    if not rows:
        return pa.array([], pa.string())
    text, ends = _translated(offsets, data or pa.py_buffer(b""), rows, kind, table, charset)
    return pa.Array.from_buffers(pa.string(), rows, [validity, ends, text], values.null_count)


def _checked(values: pa.Array, charset: str) -> pa.Array:
    """Return bytes that should be UTF-8, or ASCII, already. Values are checked one by one only if some are invalid.

    Servers may have bytes above 127 in an ascii column, and surrogates in a utf8 column; neither is text.
    """
    texts = values.view(pa.string())
    data = values.buffers()[2]
    if data is None or not np.frombuffer(data, np.uint8).max(initial=0) & 0x80:
        return texts
    if charset != "ascii":
        try:
            texts.validate(full=True)
            return texts
        except pa.ArrowInvalid:
            pass
    for row, value in enumerate(values):
        try:
            (value.as_py() or b"").decode("ascii" if charset == "ascii" else "utf-8")
        except UnicodeDecodeError:
            raise UntranslatableText(row, f"the value is no {charset} text") from None
    return texts


def _reason(failure: int, charset: str) -> str:
    return f"the value is no {charset} text" if failure == INVALID else f"the value {REASONS[failure]}"


def _translated(
    offsets: Any, data: Any, rows: cython.Py_ssize_t, kind: str, table: bytes | None, charset: str
) -> tuple[Any, Any]:
    """Return data and offsets of the text. NULLs have no bytes, and so get an empty text."""
    column = cython.declare(ColumnSink)
    memset(cython.address(column), 0, cython.sizeof(ColumnSink))
    column.put = put_of(kind, table)
    if table is not None:
        column.table = cython.cast(Bytes, PyBytes_AS_STRING(table))
    ends_view = cython.declare(Py_buffer)
    data_view = cython.declare(Py_buffer)
    PyObject_GetBuffer(offsets, cython.address(ends_view), PyBUF_SIMPLE)
    PyObject_GetBuffer(data, cython.address(data_view), PyBUF_SIMPLE)
    ends: cython.pointer[int32_t] = cython.cast(cython.pointer[int32_t], ends_view.buf)
    base: Bytes = cython.cast(Bytes, data_view.buf)
    row: cython.Py_ssize_t
    try:
        if not grow_rows(cython.address(column), 0, rows):
            raise MemoryError
        for row in range(rows):
            if not column.put(cython.address(column), base + ends[row], ends[row + 1] - ends[row]):
                raise UntranslatableText(row, _reason(column.failure, charset))
            column.offsets[row + 1] = cython.cast(cython.int, column.length)
        text = hand_over(column.data, column.length)
        column.data = cython.NULL
        found = hand_over(column.offsets, 4 * (rows + 1))
        column.offsets = cython.NULL
        return text, found
    finally:
        free(column.data)
        free(column.offsets)
        PyBuffer_Release(cython.address(data_view))
        PyBuffer_Release(cython.address(ends_view))
