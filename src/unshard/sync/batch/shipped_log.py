"""The bytes of a batch's ranges, for tasks on machines that can't read the relay log.

They are shipped with the plan. A task puts them at their offsets in memory of the file's length. The rest of that
memory is never touched, and takes no room.
"""

from __future__ import annotations

import mmap
from dataclasses import replace
from pathlib import Path

from unshard.binlog.headers import HEADER_LENGTH, mapped
from unshard.errors import EngineError, Where
from unshard.sync.batch.plan import BatchPlan, Range

LARGEST_CARRIED = 96 << 20
"""The most bytes of log in one job. Spark Connect takes messages of 128 MiB."""

_LENGTH_AT = 9


def carried(plan: BatchPlan) -> BatchPlan:
    """Return the plan with the bytes of its ranges. Raises EngineError ENGINE-011 where they are too many for a job."""
    ranges = tuple(with_bytes(piece) for piece in plan.ranges)
    size = sum(len(data) for piece in ranges for _, data in piece.carried)
    if size > LARGEST_CARRIED:
        where = Where(source=plan.source, position=str(plan.begin), file=ranges[0].path)
        values = {"size": size >> 20, "limit": LARGEST_CARRIED >> 20, "folder": str(Path(ranges[0].path).parent)}
        raise EngineError("ENGINE-011", where, values=values)
    return replace(plan, ranges=ranges)


def in_memory(piece: Range) -> mmap.mmap:
    """Return the bytes that a range carries, at their offsets in memory of the file's length."""
    data = mmap.mmap(-1, piece.end)
    for offset, found in piece.carried:
        data[offset : offset + len(found)] = found
    return data


def with_bytes(piece: Range) -> Range:
    """Return the range with all bytes that decoding it reads."""
    log = mapped(Path(piece.path), piece.end)
    spans = [(offset, bytes(log[offset : _end_of_event(log, offset)])) for offset in piece.maps]
    return replace(piece, carried=(*spans, (piece.start, bytes(log[piece.start : piece.end]))))


def _end_of_event(log: mmap.mmap, offset: int) -> int:
    assert offset + HEADER_LENGTH <= len(log), "the index has seen the event"
    return offset + int.from_bytes(log[offset + _LENGTH_AT : offset + _LENGTH_AT + 4], "little")
