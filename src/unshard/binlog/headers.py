"""A walk over single events by their headers alone, for readers that look at a file instead of following it.

The index (`index.walk`) takes whole transactions and judges them; this one tells where each event stands.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from mmap import mmap
from pathlib import PurePath
from struct import unpack_from

from unshard.binlog.events import event_of
from unshard.binlog.format import CHECKSUM_LENGTH, HEADER_LENGTH, MAGIC, read_format
from unshard.errors import BinlogError, Where
from unshard.model.position import FIRST_OFFSET

Data = bytes | mmap

FORMAT_DESCRIPTION = 15
_PLACED_ELSEWHERE = 0x20 | 0x40  # artificial, or written by a relay: log_pos isn't its own


@dataclass(frozen=True, slots=True)
class EventHeader:
    """One event: `offset` to `end` are its bytes in the file, header and checksum included; `timestamp` is unix.

    `position` is the end that the event itself names: of its place in the file it was first written to, 0 for none.
    `trailer` is the size of its checksum.
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
        return self.offset + self.length

    @property
    def moved(self) -> bool:
        """Whether the event names another place than its own, without a flag that says why. log_pos has 32 bits."""
        return self.position not in (0, self.end % 2**32) and not self.flags & _PLACED_ELSEWHERE


def headers(
    data: Data, size: int, *, checksum: bool, where: Where, verify_from: int = 0, first: int = FIRST_OFFSET
) -> Iterator[EventHeader]:
    """The events of `data[:size]` from the one at `first` on, up to the last that is whole.

    Checksums are verified from `verify_from` on, so that damage before it can be passed over. A server's relay log
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
    return BinlogError("BINLOG-002", place(header, where), cause, {"event": event_of(header.code).name})


def place(header: EventHeader, where: Where) -> Where:
    """`where` with the position of the event."""
    file = PurePath(where.file).name if where.file else "binlog"
    return replace(where, position=f"{file}:{header.offset}")


def _intact(data: Data, header: EventHeader) -> bool:
    with memoryview(data) as view, view[header.offset : header.end - CHECKSUM_LENGTH] as summed:
        stored: int = unpack_from("<I", data, header.end - CHECKSUM_LENGTH)[0]
        return zlib.crc32(summed) == stored
