"""From a stretch of the log to a batch: ranges, shares, exchange."""

from __future__ import annotations

import itertools
import mmap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unshard.binlog.index import splits
from unshard.errors import SyncError, Where
from unshard.mysql.connection import Endpoint
from unshard.sync.batch import BatchPlan, Range, Shape, TablePlan
from unshard.sync.follow import Rows
from unshard.target.meta import MetaTables

SMALL_BYTES = 256 << 10
"""A batch up to this size is one task: starting a second costs more than it saves."""

SHUFFLE_SLOTS = 8
"""From so many slots on, decoding everything in every task costs more than moving rows (740 against 100 MB/s)."""

SHUFFLE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Planner:
    """What all batches of a source have in common."""

    source: str
    meta: MetaTables
    target: Endpoint = field(repr=False)
    shape: Shape
    slots: int

    def plan(self, work: Rows, tables: tuple[TablePlan, ...], epoch: int, batch_id: int) -> BatchPlan:
        """A new batch over the whole of `work`."""
        size = work.extent.end - work.extent.start
        shuffled = self.slots >= SHUFFLE_SLOTS and size >= SHUFFLE_BYTES
        return self._build(work, tables, epoch, batch_id, self.shape, shuffled=shuffled)

    def plan_again(
        self, work: Rows, tables: tuple[TablePlan, ...], epoch: int, batch_id: int, kept: dict[str, Any]
    ) -> BatchPlan:
        """The batch that an earlier process planned, from its JSON. Raises SyncError SYNC-008 where it differs."""
        plan = self._build(work, tables, epoch, batch_id, Shape(*kept["shape"]), shuffled=False)
        now = plan.to_json()
        if now["tables"] != kept["tables"]:
            differing = sorted(dict(set(now["tables"].items()) ^ set(kept["tables"].items())))
            raise SyncError(
                "SYNC-008", Where(self.source, ", ".join(differing), f"{work.begin} to {work.end.position}")
            )
        return plan

    def _build(
        self, work: Rows, tables: tuple[TablePlan, ...], epoch: int, batch_id: int, shape: Shape, *, shuffled: bool
    ) -> BatchPlan:
        extent = work.extent
        ranges = _ranges(work.path, work.begin.file, extent.start, extent.end, self.slots if shuffled else 1)
        small = extent.end - extent.start <= SMALL_BYTES
        return BatchPlan(
            source=self.source,
            epoch=epoch,
            batch_id=batch_id,
            begin=work.begin,
            end=work.end.position,
            ranges=ranges,
            checksum=work.checksum,
            shape=shape,
            tables=tables,
            meta=self.meta,
            target=self.target,
            shares=1 if small else min(self.slots, shape.partitions),
            shuffled=shuffled,
        )


def _ranges(path: Path, file: str, start: int, end: int, pieces: int) -> tuple[Range, ...]:
    """Byte ranges that tasks decode; each begins where nothing before it is needed. Numbers never overlap."""
    bounds = [start, end]
    if pieces > 1:
        with path.open("rb") as handle, mmap.mmap(handle.fileno(), end, prot=mmap.PROT_READ) as data:
            bounds = sorted({start, *splits(data, start, end, pieces), end})
    spans = itertools.pairwise(bounds)
    return tuple(Range(str(path), file, a, b, n << 40) for n, (a, b) in enumerate(spans))
