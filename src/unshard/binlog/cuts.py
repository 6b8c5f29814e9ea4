"""Where an extent may be cut: into pieces that decode side by side, or into ones that are applied in turn."""

from __future__ import annotations

from mmap import mmap

from unshard.binlog.events import KIND_TABLE
from unshard.kernels.split import boundaries
from unshard.kernels.split import slices as cuts

Data = bytes | memoryview | mmap


def splits(data: Data, start: int, end: int, pieces: int) -> tuple[int, ...]:
    """Offsets where decoding of `[start, end)` may begin: `start` and up to `pieces - 1` more, near equal sizes.

    Each is a transaction or the first TABLE_MAP of a statement; one statement's rows are never parted. The range must
    be (part of) an extent.
    """
    return tuple(boundaries(data, start, end, pieces, KIND_TABLE))


def slices(data: Data, start: int, end: int, size: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Pieces of about `size` bytes of an extent, as (offset, offsets of the TABLE_MAPs that it needs from before it).

    They cut through transactions and statements: each has to be applied before the next is.
    """
    return tuple(cuts(data, start, end, size, KIND_TABLE))
