"""Where an extent may be cut: into pieces that decode side by side, or into ones that are applied in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap

from unshard.binlog.events import KIND_TABLE
from unshard.binlog.format import CHECKSUM_LENGTH, HEADER_LENGTH
from unshard.binlog.payload import PAYLOAD, Payload, PayloadPart
from unshard.kernels.split import boundaries
from unshard.kernels.split import slices as cuts

CODE_AT = 4

Data = bytes | memoryview | mmap


def splits(data: Data, start: int, end: int, pieces: int) -> tuple[int, ...]:
    """Offsets where decoding of `[start, end)` may begin: `start` and up to `pieces - 1` more, near equal sizes.

    Each is a transaction or the first TABLE_MAP of a statement; one statement's rows are never parted. The range must
    be (part of) an extent.
    """
    return tuple(boundaries(data, start, end, pieces, KIND_TABLE))


@dataclass(frozen=True, slots=True)
class Slice:
    """Bytes `start` to `end` of the file, or with a `part` that of the payload there.

    `maps` are offsets of the TABLE_MAPs before it that its first rows need.
    """

    start: int
    end: int
    maps: tuple[int, ...] = ()
    part: PayloadPart | None = None


def slices(data: Data, start: int, end: int, size: int, *, checksum: bool) -> Iterator[Slice]:
    """Pieces of an extent that hold about `size` bytes, unpacked.

    They cut through transactions and statements: each has to be applied before the next is.
    """
    found = cuts(data, start, end, size, KIND_TABLE)
    for (begin, maps), after in zip(found, [*(begin for begin, _ in found[1:]), end], strict=True):
        if data[begin + CODE_AT] == PAYLOAD:
            body = bytes(data[begin + HEADER_LENGTH : after - CHECKSUM_LENGTH * checksum])
            yield from (Slice(begin, after, part=part) for part in Payload(body).parts(size))
        else:
            yield Slice(begin, after, maps)
