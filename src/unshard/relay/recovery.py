"""Recovery of the relay log's newest file after a crash.

The file is read from its start and truncated after the last good event. The source sends everything again that is
truncated, torn or damaged, so nothing is lost and no byte is guessed. Without checksums (`binlog_checksum=NONE`) nobody
can tell whether the bytes of an event reached the disk before a power failure, so the file is truncated after what
`relay.meta` says is durable.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field
from pathlib import Path

from unshard.kernels import packets
from unshard.kernels.packets import EventChain
from unshard.relay.gtids import GtidTracker
from unshard.relay.meta import disk, sync_folder
from unshard.relay.writer import MAGIC
from unshard.source.replica_protocol import HEADER_LENGTH, format_has_checksum, rotate_target

_ROTATE, _FORMAT = 4, 15
_REASONS = {
    packets.MORE: "an event is cut off",
    packets.SPECIAL: "an event stands where it cannot be",
    packets.BAD_LENGTH: "an event's length is wrong",
    packets.BAD_POSITION: "an event does not know its own place",
    packets.BAD_CHECKSUM: "an event's checksum does not fit",
}


@dataclass(frozen=True, slots=True)
class Tail:
    """The result of checking a relay file: the end of its undamaged part, and what was truncated after it.

    Args:
        end: the file's size now; 0 when not even the format event was whole.
        dropped: how many bytes were truncated.
        reason: why they were truncated.
        next_file: the file that is named by the ROTATE event which closes this one.
        chain: the events up to `end`; None where not even the format event was whole. A transaction that is open there
            goes on in it.
    """

    end: int
    dropped: int = 0
    reason: str = ""
    next_file: str | None = None
    chain: EventChain | None = field(default=None, compare=False)


def recover(path: Path, gtids: GtidTracker, durable: int) -> Tail:
    """Read the file, truncate what is not good, and bring `gtids` to the set at its end. Idempotent.

    A file that names the next one is durable afterwards: the process that wrote it may have died before it was.
    `durable` is how many bytes of the file were synced, as far as it is known; 0: none.
    """
    with disk(path), path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        tail = Tail(0, size, "the file does not open as a binlog") if size else Tail(0)
        if size > len(MAGIC):
            with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
                tail = _examine(view, size, gtids, durable)
        if tail.dropped:
            file.truncate(tail.end)
        if tail.dropped or tail.next_file is not None:
            os.fsync(file.fileno())
        if tail.next_file is not None:  # with the next file, this one is never examined again
            sync_folder(path.parent)
    return tail


def _examine(view: memoryview, size: int, gtids: GtidTracker, durable: int) -> Tail:
    chain = EventChain()
    first = _event(view, len(MAGIC), size)
    if bytes(view[:4]) != MAGIC or first is None or first[4] != _FORMAT or chain.append(first):
        return Tail(0, size, "the file does not open as a binlog")
    chain.checksum = format_has_checksum(first)
    good, reason = size, ""
    if not chain.checksum and durable < size:
        good, reason = durable, "its events have no checksums, and it was not synced up to its end"
        if good < chain.position:
            return Tail(0, size, reason)
    next_file = None
    verdict = chain.walk(view, view, good)
    if verdict == packets.SPECIAL:
        event = _event(view, chain.position, good)
        if event is not None and event[4] == _ROTATE:
            verdict = chain.append(event)
            if verdict == packets.MORE:
                next_file = rotate_target(event)[0]
    gtids.begin_file(lambda length: view[: min(length, chain.position)], len(MAGIC))  # only the good part is read
    gtids.add(chain.take_gtids())
    dropped = size - chain.position
    return Tail(chain.position, dropped, reason or _REASONS[verdict] if dropped else "", next_file, chain)


def _event(view: memoryview, at: int, end: int) -> bytes | None:
    if end - at < HEADER_LENGTH:
        return None
    length = int.from_bytes(view[at + 9 : at + 13], "little")
    return bytes(view[at : at + length]) if HEADER_LENGTH <= length <= end - at else None
