"""FORMAT_DESCRIPTION: the first event of every binlog file, which says how the others are laid out."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from mmap import mmap
from pathlib import PurePath
from struct import unpack_from

from unshard.errors import BinlogError, Where
from unshard.model.position import FIRST_OFFSET

MAGIC = b"\xfebin"
HEADER_LENGTH = 19
CHECKSUM_LENGTH = 4

_FORMAT_DESCRIPTION = 15
_IN_USE = 0x01
_FLAGS_AT = 17
_FIXED = 2 + 50 + 4 + 1  # binlog version, server version, creation time, header length
_OFF, _CRC32 = 0, 1
_EXPECTED = {2: 13, 19: 8, 23: 8, 24: 8, 25: 8}  # post-header lengths that our readers count on, by event code
_NUMBERS = re.compile(r"^(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Format:
    """What the events of one file look like.

    `header_lengths` holds the post-header length by event code (0 for a code that the server doesn't know); `end` is
    the offset of the first event after this one.
    """

    checksum: bool
    server_version: str
    header_lengths: tuple[int, ...]
    end: int

    @property
    def mariadb(self) -> bool:
        return "mariadb" in self.server_version.lower()


def read_format(data: bytes | memoryview | mmap, where: Where | None = None) -> Format:
    """The format of the binlog file that `data` begins with.

    Raises BinlogError 003 where the bytes are no binlog file, 001 or 002 where its first event is damaged. A file so
    short that the event isn't whole yet is 003 too; its cause says so.
    """
    start = FIRST_OFFSET
    where = where or Where()
    if where.position is None:
        where = replace(where, position=f"{PurePath(where.file).name if where.file else 'binlog'}:{start}")
    if bytes(data[:start]) != MAGIC:
        raise BinlogError("BINLOG-003", where, f"its first bytes are {bytes(data[:start])!r}, not {MAGIC!r}")
    if len(data) < start + HEADER_LENGTH:
        raise BinlogError("BINLOG-003", where, f"it has only {len(data)} bytes")
    _, code, _, length, _, _ = unpack_from("<IBIIIH", data, start)
    if code != _FORMAT_DESCRIPTION:
        raise BinlogError("BINLOG-003", where, f"its first event has code {code}, not {_FORMAT_DESCRIPTION}")
    if length < HEADER_LENGTH + _FIXED + CHECKSUM_LENGTH + 1:
        raise BinlogError("BINLOG-002", where, f"length {length} is too small", {"event": "FORMAT_DESCRIPTION"})
    if len(data) < start + length:
        raise BinlogError("BINLOG-003", where, f"its first event has {length} bytes, {len(data) - start} are there")
    return _parse(bytes(data[start : start + length]), where)


def _parse(event: bytes, where: Where) -> Format:
    binlog_version, name, _, header_length = unpack_from("<H50sIB", event, HEADER_LENGTH)
    version = name.split(b"\0", 1)[0].decode("utf-8", "replace")
    tail = event[HEADER_LENGTH + _FIXED :]
    algorithm = _OFF
    if _has_checksum_field(version):
        algorithm = tail[-CHECKSUM_LENGTH - 1]
        _check(event, where)
        tail = tail[: -CHECKSUM_LENGTH - 1]
    if binlog_version != 4 or header_length != HEADER_LENGTH:
        cause = f"binlog version {binlog_version}, event headers of {header_length} bytes (server {version})"
        raise BinlogError("BINLOG-003", where, cause)
    if algorithm not in (_OFF, _CRC32):
        raise BinlogError("BINLOG-003", where, f"checksum algorithm {algorithm} is unknown (server {version})")
    lengths = (0, *tail)
    for code, expected in _EXPECTED.items():
        # 0: the server no longer writes that event (MySQL 9 has given up the first row events)
        if code >= len(lengths) or lengths[code] not in (0, expected):
            found = lengths[code] if code < len(lengths) else None
            raise BinlogError("BINLOG-003", where, f"event {code} has a fixed part of {found} bytes, not {expected}")
    return Format(algorithm == _CRC32, version, lengths, FIRST_OFFSET + len(event))


def _has_checksum_field(version: str) -> bool:
    """Whether a server of that version says in this event which checksum it uses."""
    match = _NUMBERS.match(version)
    numbers = tuple(int(number) for number in match.groups()) if match else (0, 0, 0)
    return numbers >= ((5, 3, 0) if "mariadb" in version.lower() else (5, 6, 1))


def _check(event: bytes, where: Where) -> None:
    """This event always has a checksum, summed as if the file were closed."""
    summed = bytearray(event[:-CHECKSUM_LENGTH])
    summed[_FLAGS_AT] &= ~_IN_USE
    (stored,) = unpack_from("<I", event, len(event) - CHECKSUM_LENGTH)
    if zlib.crc32(summed) != stored:
        raise BinlogError("BINLOG-001", where, values={"event": "FORMAT_DESCRIPTION"})
