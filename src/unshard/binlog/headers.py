"""Event headers: the format event, which describes them, and a walk over single events.

FORMAT_DESCRIPTION is the first event of every binlog file. It says how the others are laid out. The walk is for readers
that look at a file and don't follow it. The index (`index.walk`) takes whole transactions and judges them; this walk
returns the place of each event. Every reader takes a log file as the bytes of `mapped`.
"""

from __future__ import annotations

import mmap
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from struct import unpack_from

from unshard.binlog.events import event_of
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
    """The format of the events of one file, as its FORMAT_DESCRIPTION event describes it.

    `header_lengths` holds the post-header length by event code (0 for a code that the server doesn't know); `end` is
    the offset of the first event after the FORMAT_DESCRIPTION.
    """

    checksum: bool
    server_version: str
    header_lengths: tuple[int, ...]
    end: int

    @property
    def mariadb(self) -> bool:
        """True if a MariaDB server wrote the file."""
        return "mariadb" in self.server_version.lower()


def read_format(data: bytes | memoryview | mmap.mmap, where: Where | None = None) -> Format:
    """Return the format of the binlog file that `data` begins with.

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
    """Return whether a server of that version says in this event which checksum it uses."""
    match = _NUMBERS.match(version)
    numbers = tuple(int(number) for number in match.groups()) if match else (0, 0, 0)
    return numbers >= ((5, 3, 0) if "mariadb" in version.lower() else (5, 6, 1))


def _check(event: bytes, where: Where) -> None:
    """Verify the event's checksum, which it always has, as if the file were closed. Raises BinlogError BINLOG-001."""
    summed = bytearray(event[:-CHECKSUM_LENGTH])
    summed[_FLAGS_AT] &= ~_IN_USE
    (stored,) = unpack_from("<I", event, len(event) - CHECKSUM_LENGTH)
    if zlib.crc32(summed) != stored:
        raise BinlogError("BINLOG-001", where, values={"event": "FORMAT_DESCRIPTION"})


Data = bytes | mmap.mmap

FORMAT_DESCRIPTION = 15
_PLACED_ELSEWHERE = 0x20 | 0x40  # artificial, or written by a relay: log_pos isn't its own


@dataclass(frozen=True, slots=True)
class EventHeader:
    """The header of one event. The event's bytes in the file are `offset` to `end`, with header and checksum.

    `timestamp` is in unix seconds. `position` is the end position that the event itself records, in the file that it
    was first written to; 0 for none. `trailer` is the size of the checksum.
    """

    offset: int
    timestamp: int
    code: int
    server_id: int
    length: int
    position: int
    flags: int
    trailer: int

    @property
    def end(self) -> int:
        """Offset of the byte after the event."""
        return self.offset + self.length

    @property
    def moved(self) -> bool:
        """True if the event names another place than its own, without a flag that says why. log_pos has 32 bits."""
        return self.position not in (0, self.end % 2**32) and not self.flags & _PLACED_ELSEWHERE


def headers(
    data: Data, size: int, *, checksum: bool, where: Where, verify_from: int = 0, first: int = FIRST_OFFSET
) -> Iterator[EventHeader]:
    """Yield the events of `data[:size]` from the one at `first` on, up to the last that is whole.

    Checksums are verified from `verify_from` on, so that damage before it can be skipped. A server's relay log
    has a second FORMAT_DESCRIPTION, and positions of the source's file. Raises BinlogError 001, 002 or 003 where it
    gets to the damage; `where` names the file.
    """
    at = first
    trailer = CHECKSUM_LENGTH if checksum else 0
    while at + HEADER_LENGTH <= size:
        timestamp, code, server_id, length, position, flags = unpack_from("<IBIIIH", data, at)
        header = EventHeader(at, timestamp, code, server_id, length, position, flags, trailer)
        if length < HEADER_LENGTH + trailer:
            raise malformed(header, where, f"its length {length} can't be")
        if header.end > size:
            return
        if code == FORMAT_DESCRIPTION:  # its checksum leaves a flag out
            trailer = (
                CHECKSUM_LENGTH if read_format(MAGIC + data[at : header.end], place(header, where)).checksum else 0
            )
            header = replace(header, trailer=trailer)
        elif trailer and at >= verify_from and not _intact(data, header):
            raise BinlogError("BINLOG-001", place(header, where), values={"event": event_of(code).name})
        yield header
        at = header.end


def malformed(header: EventHeader, where: Where, cause: str) -> BinlogError:
    """Return BINLOG-002 for the event of that header."""
    return BinlogError("BINLOG-002", place(header, where), cause, {"event": event_of(header.code).name})


def place(header: EventHeader, where: Where) -> Where:
    """Return `where` with the position of the event."""
    file = PurePath(where.file).name if where.file else "binlog"
    return replace(where, position=f"{file}:{header.offset}")


def _intact(data: Data, header: EventHeader) -> bool:
    with memoryview(data) as view, view[header.offset : header.end - CHECKSUM_LENGTH] as summed:
        stored: int = unpack_from("<I", data, header.end - CHECKSUM_LENGTH)[0]
        return zlib.crc32(summed) == stored


def mapped(path: Path, end: int) -> mmap.mmap:
    """Return a map of the file's first `end` bytes. Raises ValueError when it has fewer, OSError when it can't be read.

    The map ends with its last reader and must not be closed by hand: an error's traceback still has views of it, and
    the failing close ("cannot close exported pointers exist") would hide that error.
    """
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), end, prot=mmap.PROT_READ)
