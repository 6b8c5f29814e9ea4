"""Converts the buffers that the row kernel filled to the Arrow array of a column.

Most buffers are the array already. Here the rest is done: UTF-8 is checked, and the numbers inside ENUM and SET become
their members.

Values of MariaDB's compressed columns (`VARCHAR(n) COMPRESSED`, `TEXT COMPRESSED` …) are unpacked one by one. The
binlog has such a value as the table stores it (sql/field_comp.cc of MariaDB)::

    nothing                       the empty value
    0, the value                  stored as it is (too short, or not smaller when compressed)
    0x80 | raw << 3 | n, length in n bytes (big-endian), zlib stream

`raw` says that the stream has no zlib header and sum (`column_compression_zlib_wrap=OFF`, the default).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from unshard.kernels.transcode import UntranslatableText, transcode
from unshard.model.table import Column
from unshard.mysql import charsets
from unshard.mysql.types import CHARACTERS, arrow_type, set_text, zero_text

_ZLIB = 8
_RAW = 8
_LENGTH_BYTES = 7
_MOST_PER_BYTE = 1032
"""What DEFLATE can make of one byte at the most: a larger promise is damage, and is not unpacked."""


def unpack(values: Iterable[bytes | None]) -> list[bytes | None]:
    """Return the unpacked values of one column, in a loop of Python: such columns are rare, and zlib takes the time.

    Raises UnpackError for bytes that are not a compressed value. Memory stays within the lengths that the values state.
    """
    found: list[bytes | None] = []
    for row, value in enumerate(values):
        try:
            found.append(None if value is None else _unpack(value))
        except (ValueError, zlib.error) as error:
            raise UnpackError(row, f"the compressed value can't be unpacked: {error}") from None
    return found


class UnpackError(ValueError):
    """A compressed value that can't be unpacked; `row` is its index among the values of the column."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


def _unpack(value: bytes) -> bytes:
    if not value:
        return value
    head = value[0]
    if head == 0:
        return value[1:]
    start = 1 + (head & _LENGTH_BYTES)
    if head >> 4 != _ZLIB or not 2 <= start <= 5 or len(value) < start:
        raise ValueError(f"no method has the number {head}")
    length = int.from_bytes(value[1:start], "big")
    if not 0 < length <= _MOST_PER_BYTE * (len(value) - start):
        raise ValueError(f"{len(value) - start} bytes can't hold {length}")
    stream = zlib.decompressobj(-zlib.MAX_WBITS if head & _RAW else zlib.MAX_WBITS)
    found = stream.decompress(value[start:], length)
    if len(found) != length or stream.unconsumed_tail or stream.unused_data or stream.decompress(b"", 1):
        raise ValueError(f"the stream does not hold just {length} bytes")
    if not stream.eof:
        raise ValueError("the stream is cut")
    return found


Buffers = tuple[Any, Any, Any, int]
"""Data, offsets or None, validity or None, number of NULLs."""


class UndecodableValue(ValueError):
    """A value that is not valid for its column; `row` is the index of its row in the batch."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row


def build_array(column: Column, rows: int, buffers: Buffers) -> pa.Array:
    """Return the array of type `arrow_type(column)`. Raises UndecodableValue."""
    data, offsets, validity, nulls = buffers
    kind = arrow_type(column)
    if column.members:
        numbers = pa.Array.from_buffers(pa.uint64(), rows, [validity, data], nulls)
        return _enum_text(column, numbers) if column.type == "enum" else _set_text(column, numbers)
    if column.compressed:
        return _unpacked(column, pa.Array.from_buffers(pa.binary(), rows, [validity, offsets, data], nulls))
    if offsets is None:
        return pa.Array.from_buffers(kind, rows, [validity, data], nulls)
    charset = "utf8mb4" if column.type == "json" else column.charset
    if column.type in CHARACTERS | {"json"} and charset in charsets.PLAIN:
        try:
            return transcode(pa.Array.from_buffers(pa.binary(), rows, [validity, offsets, data], nulls), charset)
        except UntranslatableText as error:
            raise UndecodableValue(error.row, str(error)) from None
    return pa.Array.from_buffers(kind, rows, [validity, offsets, data], nulls)


def _unpacked(column: Column, values: pa.Array) -> pa.Array:
    try:
        found = pa.array(unpack(values.to_pylist()), pa.binary())
        return found if arrow_type(column) == pa.binary() else transcode(found, column.charset or "")
    except (UnpackError, UntranslatableText) as error:
        raise UndecodableValue(error.row, str(error)) from None


def _enum_text(column: Column, numbers: pa.Array) -> pa.Array:
    """Return the texts of an ENUM's numbers: members count from 1; 0 is a value that was refused."""
    members = pa.array([zero_text(column), *column.members], pa.string())
    beyond = pc.greater(numbers, pa.scalar(len(column.members), pa.uint64()))
    if pc.any(beyond).as_py():
        raise UndecodableValue(_first(beyond), f"the value is not one of {len(column.members)} members")
    return members.take(numbers)


def _set_text(column: Column, numbers: pa.Array) -> pa.Array:
    """Return the texts of a SET's bits; bit 0 is the first member. Each distinct set of a batch is converted once."""
    encoded = numbers.dictionary_encode()
    texts = []
    for value in encoded.dictionary.to_pylist():
        if value >> len(column.members):
            wrong = pc.equal(numbers, pa.scalar(value, pa.uint64()))
            raise UndecodableValue(_first(wrong), f"the value has bits beyond {len(column.members)} members")
        texts.append(set_text(column, value))
    return pa.array(texts, pa.string()).take(encoded.indices)


def _first(mask: pa.Array) -> int:
    return int(pc.index(mask, True).as_py())
