"""Values of MariaDB's compressed columns (`VARCHAR(n) COMPRESSED`, `TEXT COMPRESSED` …), unpacked one by one.

The binlog has such a value as the table stores it (sql/field_comp.cc of MariaDB)::

    nothing                       the empty value
    0, the value                  stored as it is (too short, or not smaller when compressed)
    0x80 | raw << 3 | n, length in n bytes (big-endian), zlib stream

`raw` says that the stream has no zlib header and sum (`column_compression_zlib_wrap=OFF`, the default).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

_ZLIB = 8
_RAW = 8
_LENGTH_BYTES = 7
_MOST_PER_BYTE = 1032
"""What DEFLATE can make of one byte at the most: a larger promise is damage, and is not unpacked."""


def unpack(values: Iterable[bytes | None]) -> list[bytes | None]:
    """The values of one column. A loop in Python: such columns are rare, and their time goes into zlib.

    Raises UnpackError for bytes that are no such value; memory stays within what their lengths honestly promise.
    """
    found: list[bytes | None] = []
    for row, value in enumerate(values):
        try:
            found.append(None if value is None else _unpack(value))
        except (ValueError, zlib.error) as error:
            raise UnpackError(row, f"the compressed value can't be unpacked: {error}") from None
    return found


class UnpackError(ValueError):
    """A value that can't be unpacked; `row` counts from the first one."""

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
