"""Compressed events, unpacked to the form that their servers would have written without compression.

| event | packed in it | `unpack` gives |
|---|---|---|
| MySQL's TRANSACTION_PAYLOAD | the events of one transaction, zstd or plain | those events, without checksums |
| MariaDB's QUERY_COMPRESSED | the statement's text, zlib | the body of a QUERY |
| MariaDB's `…_ROWS_COMPRESSED` (two versions) | the row images, zlib | the body of the plain row event |

Formats: `libs/mysql/binlog/event/control_events.h` of MySQL 8; `binlog_buf_compress` in MariaDB's `sql/log_event.cc`.
A payload of more than `LARGEST` bytes is read by `pieces`, `parts` and `part` alone, never as a whole. Pure. Memory is
bounded by the event's length and `LARGEST`, whatever the bytes say.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import unpack_from

import pyarrow as pa

LARGEST = 1 << 30
"""Bytes that are unpacked at once: the most that either server lets a packet have. A payload may hold more."""

PAYLOAD, QUERY, _FIRST_ROWS, _FIRST_ROWS_V2 = 40, 165, 166, 169
_UPDATES = (167, 170)
_QUERY_FIXED, _ROWS_FIXED = 13, 8
_ZSTD, _STORED = 0, 255
_END, _SIZE, _ALGORITHM, _UNPACKED = 0, 1, 2, 3  # fields of a TRANSACTION_PAYLOAD
_BLOCK, _BLOCK_COST = 128 << 10, 4  # zstd: no block gives more bytes, and none takes fewer
_HEADER, _LENGTH_AT, _CHUNK = 19, 9, 4 << 20
_TABLE_MAP, _ROWS_QUERY, _ROWS_FLAGS, _STATEMENT_END = 19, 29, 19 + 6, 0x01
_ROWS = frozenset({23, 24, 25, 30, 31, 32, 39})
_IN_STATEMENT = _ROWS | {_ROWS_QUERY}
_WIDTHS = {252: 2, 253: 3, 254: 8}


class NotUnpackedError(ValueError):
    """An event that can't be unpacked; `code` and `values` are for the BinlogError that the caller raises."""

    def __init__(self, code: str, cause: str, **values: str) -> None:
        super().__init__(cause)
        self.code = code
        self.values = values


def unpack(code: int, body: bytes) -> bytes:
    """Return the plain form of a compressed event's body, which comes without header and checksum.

    Raises NotUnpackedError with BINLOG-030 (damage), 031 (another algorithm) or 032 (more than LARGEST bytes at once).
    """
    try:
        if code == PAYLOAD:
            return Payload(body).whole()
        at = _query_text(body) if code == QUERY else _images(code, body)
        return body[:at] + _inflate(body, at)
    except (IndexError, ValueError) as error:
        if isinstance(error, NotUnpackedError):
            raise
        raise _damaged("it ends within its header") from None


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """A part of a payload: bytes `begin` to `end` of its uncompressed events. It may begin within a statement.

    `maps` are the TABLE_MAP events before the part that its first rows need.
    """

    begin: int
    end: int
    maps: bytes = b""


class Payload:
    """The body of a TRANSACTION_PAYLOAD event, as its uncompressed events; `size` is their size in bytes.

    The body's fields have a type, a length and a value each, all three as packed integers; then comes the content. The
    constructor and the reading methods raise NotUnpackedError as `unpack` does.
    """

    def __init__(self, body: bytes) -> None:
        try:
            fields, at = _fields(body)
        except IndexError:
            raise _damaged("it ends within its header") from None
        self._content = memoryview(body)[at:]
        algorithm = fields.get(_ALGORITHM, _STORED)
        if fields.get(_SIZE) != len(self._content):
            raise _damaged(f"it says that it holds {fields.get(_SIZE)} bytes, {len(self._content)} are there")
        if algorithm not in (_STORED, _ZSTD):
            raise _unknown(algorithm, "binlog_transaction_compression")
        self._stored = algorithm == _STORED
        self.size = len(self._content) if self._stored else fields.get(_UNPACKED, 0)
        if not self._stored and self.size > _BLOCK * (len(self._content) // _BLOCK_COST + 1):
            raise _damaged(f"{len(self._content)} bytes can't hold the {self.size} that it says")

    def whole(self) -> bytes:
        """Return all plain events."""
        if self._stored:
            return bytes(self._content)
        _checked(self.size)
        try:
            plain: bytes = pa.decompress(self._content, decompressed_size=self.size, codec="zstd", asbytes=True)
        except OSError as error:
            raise _damaged(f"zstd of {self.size} bytes: {error}") from None
        return plain

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield all plain events in turn, in buffers of whole events: each one event, or at most `size` bytes.

        An event that is cut off begins at the end of the last one.
        """
        if self.size <= size:
            if self.size:
                yield self.whole()
            return
        rest = bytearray()
        for fresh in self._read(size):
            rest += fresh
            while len(rest) > size and (end := _boundary(rest, size)):
                yield bytes(rest[:end])
                del rest[:end]
            if len(rest) > size:
                _check_first(rest)
        while rest:
            end = _boundary(rest, size) or len(rest)
            yield bytes(rest[:end])
            del rest[:end]

    def parts(self, size: int) -> Iterator[PayloadPart]:
        """Yield the events in parts of about `size` bytes, as places for `part` to read."""
        at = 0
        maps: list[bytes] = []
        for piece in self.pieces(size):
            yield PayloadPart(at, at + len(piece), b"".join(maps))
            at += len(piece)
            for begin, end in _events(piece):
                code = piece[begin + 4]
                if code == _TABLE_MAP:
                    maps.append(piece[begin:end])
                elif code not in _IN_STATEMENT or (code in _ROWS and piece[begin + _ROWS_FLAGS] & _STATEMENT_END):
                    maps = []

    def part(self, part: PayloadPart) -> bytes:
        """Return the events of a part, after the table maps in `maps`."""
        taken = []
        at = 0
        for fresh in self._read(_CHUNK):
            begin, end = max(part.begin - at, 0), part.end - at
            if begin < len(fresh) and end > 0:
                taken.append(fresh[begin:end])
            at += len(fresh)
            if at >= part.end:
                break
        return part.maps + b"".join(taken)

    def _read(self, size: int) -> Iterator[bytes]:
        """Yield the plain bytes, `size` at a time.

        Raises NotUnpackedError where they are not as many as the payload says.
        """
        source = pa.BufferReader(pa.py_buffer(self._content))
        stream = source if self._stored else pa.CompressedInputStream(source, "zstd")
        left = self.size
        try:
            while left:
                fresh: bytes = stream.read(min(size, left))
                if not fresh:
                    raise _damaged(f"it does not unpack to the {self.size} bytes that it says")
                left -= len(fresh)
                yield fresh
            if stream.read(1):
                raise _damaged(f"it unpacks to more than the {self.size} bytes that it says")
        except OSError as error:
            raise _damaged(f"zstd of {self.size} bytes: {error}") from None


def _events(plain: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each whole event. A Python step for each event: for large payloads only."""
    at = 0
    while at + _HEADER <= len(plain):
        (length,) = unpack_from("<I", plain, at + _LENGTH_AT)
        if length < _HEADER or length > len(plain) - at:
            return
        yield at, at + length
        at += length


def _boundary(plain: bytes | bytearray, size: int) -> int:
    """Return the last end of an event within `size` bytes, else the first event's end; 0 where that isn't whole."""
    last = 0
    for _, end in _events(plain):
        if end > size:
            return last or end
        last = end
    return last


def _check_first(rest: bytearray) -> None:
    """Raise NotUnpackedError where the event at the start, which is not whole yet, has a length that can't be."""
    if len(rest) >= _HEADER:
        (length,) = unpack_from("<I", rest, _LENGTH_AT)
        if _checked(length) < _HEADER:
            raise _damaged(f"an event in it has the length {length}")


def _fields(body: bytes) -> tuple[dict[int, int], int]:
    """Return the fields of the header by type, and the offset at which the content begins."""
    fields: dict[int, int] = {}
    at = 0
    while True:
        kind, at = _packed(body, at)
        if kind == _END:
            return fields, at
        length, at = _packed(body, at)
        fields[kind], _ = _packed(body, at)
        at += length


def _packed(body: bytes, at: int) -> tuple[int, int]:
    """Return the packed integer at `at`, and the offset after it."""
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
    """Return the offset of the row images: after the column count and the bitmaps of the columns present."""
    at = _ROWS_FIXED
    if code >= _FIRST_ROWS_V2:
        at += body[at] | body[at + 1] << 8  # the extra data's length counts itself
    columns, at = _packed(body, at)
    return at + (columns + 7) // 8 * (2 if code in _UPDATES else 1)


def _inflate(body: bytes, at: int) -> bytes:
    """Return the unpacked part of `body` from `at` on.

    It is a byte that has the algorithm and how many bytes the length takes, the length (big-endian), the zlib stream.
    """
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
