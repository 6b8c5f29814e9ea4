"""Compressed events, unpacked to what their servers would have written without compression.

| event | packed in it | `unpack` gives |
|---|---|---|
| MySQL's TRANSACTION_PAYLOAD | the events of one transaction, zstd or plain | those events, without checksums |
| MariaDB's QUERY_COMPRESSED | the statement's text, zlib | the body of a QUERY |
| MariaDB's `…_ROWS_COMPRESSED` (two versions) | the row images, zlib | the body of the plain row event |

Formats: `libs/mysql/binlog/event/control_events.h` of MySQL 8; `binlog_buf_compress` in MariaDB's `sql/log_event.cc`.
Pure. Memory is bounded by the event's length and `LARGEST`, whatever the bytes say.
"""

from __future__ import annotations

import zlib
from struct import unpack_from

import pyarrow as pa

LARGEST = 1 << 30
"""Bytes that one event may unpack to: the most that either server lets a packet have."""

PAYLOAD, QUERY, _FIRST_ROWS, _FIRST_ROWS_V2 = 40, 165, 166, 169
_UPDATES = (167, 170)
_QUERY_FIXED, _ROWS_FIXED = 13, 8
_ZSTD, _STORED = 0, 255
_END, _SIZE, _ALGORITHM, _UNPACKED = 0, 1, 2, 3  # fields of a TRANSACTION_PAYLOAD
_BLOCK, _BLOCK_COST = 128 << 10, 4  # zstd: no block gives more bytes, and none takes fewer
_WIDTHS = {252: 2, 253: 3, 254: 8}


class NotUnpackedError(ValueError):
    """An event that can't be unpacked; `code` and `values` are those of the BinlogError to make of it."""

    def __init__(self, code: str, cause: str, **values: str) -> None:
        super().__init__(cause)
        self.code = code
        self.values = values


def unpack(code: int, body: bytes) -> bytes:
    """The plain form of a compressed event's body, which comes without header and checksum.

    Raises NotUnpackedError with BINLOG-030 (damage), 031 (another algorithm) or 032 (more than LARGEST bytes).
    """
    try:
        if code == PAYLOAD:
            return _payload(body)
        at = _query_text(body) if code == QUERY else _images(code, body)
        return body[:at] + _inflate(body, at)
    except (IndexError, ValueError) as error:
        if isinstance(error, NotUnpackedError):
            raise
        raise _damaged("it ends within its header") from None


def _payload(body: bytes) -> bytes:
    """The fields have a type, a length and a value each, all three as packed integers; then comes the content."""
    fields: dict[int, int] = {}
    at = 0
    while True:
        kind, at = _packed(body, at)
        if kind == _END:
            break
        length, at = _packed(body, at)
        fields[kind], _ = _packed(body, at)
        at += length
    content = memoryview(body)[at:]
    algorithm = fields.get(_ALGORITHM, _STORED)
    if fields.get(_SIZE) != len(content):
        raise _damaged(f"it says that it holds {fields.get(_SIZE)} bytes, {len(content)} are there")
    if algorithm == _STORED:
        return bytes(content)
    if algorithm != _ZSTD:
        raise _unknown(algorithm, "binlog_transaction_compression")
    size = _checked(fields.get(_UNPACKED, 0))
    if size > _BLOCK * (len(content) // _BLOCK_COST + 1):
        raise _damaged(f"{len(content)} bytes can't hold the {size} that it says")
    try:
        plain: bytes = pa.decompress(content, decompressed_size=size, codec="zstd", asbytes=True)
    except OSError as error:
        raise _damaged(f"zstd of {size} bytes: {error}") from None
    return plain


def _packed(body: bytes, at: int) -> tuple[int, int]:
    """The packed integer at `at`, and where the byte behind it stands."""
    first = body[at]
    if first < 251:
        return first, at + 1
    end = at + 1 + _WIDTHS.get(first, len(body))
    if end > len(body):
        raise _damaged("a number in its header can't be read")
    return int.from_bytes(body[at + 1 : end], "little"), end


def _query_text(body: bytes) -> int:
    (status_length,) = unpack_from("<H", body[:_QUERY_FIXED].ljust(_QUERY_FIXED, b"\0"), 11)
    return int(_QUERY_FIXED + status_length + body[8] + 1)


def _images(code: int, body: bytes) -> int:
    """Where the row images begin: behind the column count and the bitmaps of the columns present."""
    at = _ROWS_FIXED
    if code >= _FIRST_ROWS_V2:
        at += body[at] | body[at + 1] << 8  # the extra data's length counts itself
    columns, at = _packed(body, at)
    return at + (columns + 7) // 8 * (2 if code in _UPDATES else 1)


def _inflate(body: bytes, at: int) -> bytes:
    """A byte that tells the algorithm and how many bytes the length takes, the length (big-endian), the zlib stream."""
    mark, width = body[at], body[at] & 0x0F
    if not mark & 0x80 or not 1 <= width <= 4:
        raise _damaged(f"its compressed part begins with the byte {mark}")
    if mark & 0x70:
        raise _unknown(mark >> 4 & 7, "log_bin_compress")
    begin = at + 1 + width
    size = _checked(int.from_bytes(body[at + 1 : begin], "big"))
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(memoryview(body)[begin:], size + 1)
    except zlib.error as error:
        raise _damaged(str(error)) from None
    if len(plain) != size or not stream.eof or stream.unused_data:
        raise _damaged(f"it does not unpack to the {size} bytes that it says")
    return plain


def _checked(size: int) -> int:
    if size > LARGEST:
        raise NotUnpackedError("BINLOG-032", f"at most {LARGEST} bytes can be", size=str(size))
    return size


def _damaged(cause: str) -> NotUnpackedError:
    return NotUnpackedError("BINLOG-030", cause)


def _unknown(algorithm: int, setting: str) -> NotUnpackedError:
    return NotUnpackedError("BINLOG-031", "only zlib and zstd are known", algorithm=str(algorithm), setting=setting)
