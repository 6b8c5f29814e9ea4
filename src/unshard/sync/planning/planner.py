"""From a stretch of the log to a batch: ranges, shares, exchange."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

from unshard.binlog.mapped import mapped
from unshard.binlog.transaction_range import slices, splits
from unshard.errors import SyncError, Where
from unshard.model.missing import OnMissingRow
from unshard.mysql.connection import Endpoint
from unshard.sync.batch.plan import BatchPlan, BatchShape, ConflictKey, Range, TablePlan
from unshard.sync.batch.stored_plan import RowsRecord, digests
from unshard.sync.source_log.reader import TransactionRows
from unshard.target.meta import MetaTables

SMALL_BYTES = 256 << 10
"""A batch up to this size is one task: starting a second costs more than it saves."""

SHUFFLE_SLOTS = 8
"""From so many slots on, decoding everything in every task costs more than moving rows (740 against 100 MB/s)."""

SHUFFLE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Planner:
    """What all batches of a source have in common. `alone`: no other source needs the slots of Spark."""

    source: str
    meta: MetaTables
    target: Endpoint = field(repr=False)
    shape: BatchShape
    slots: int
    on_missing_row: OnMissingRow = "warn"
    alone: bool = True

    def plan(
        self, work: TransactionRows, tables: tuple[TablePlan, ...], epoch: int, batch_id: int, *, safe: bool = False
    ) -> BatchPlan:
        """A new batch over the whole of `work`."""
        size = work.size
        shuffled = self.slots >= SHUFFLE_SLOTS and size >= SHUFFLE_BYTES and not _is_large(size, self.shape)
        # a task that sees one range can't tell what ties its rows to those of another
        shuffled = shuffled and self.shape.multiple_rows and not any(table.target.tied for table in tables)
        return self._build(work, tables, epoch, batch_id, self.shape, shuffled=shuffled, safe=safe)

    def plan_again(
        self, work: TransactionRows, tables: tuple[TablePlan, ...], epoch: int, batch_id: int, kept: RowsRecord
    ) -> BatchPlan:
        """The batch that an earlier process planned, from its record. Raises SyncError SYNC-008 where it differs."""
        plan = self._build(work, tables, epoch, batch_id, kept.shape, shuffled=False, safe=kept.safe)
        now = digests(plan, kept.version)
        if now != kept.digests:
            differing = sorted(dict(set(now.items()) ^ set(kept.digests.items())))
            raise SyncError(
                "SYNC-008", Where(self.source, ", ".join(differing), f"{work.begin} to {work.end.position}")
            )
        return plan

    def _build(
        self,
        work: TransactionRows,
        tables: tuple[TablePlan, ...],
        epoch: int,
        batch_id: int,
        shape: BatchShape,
        *,
        shuffled: bool,
        safe: bool,
    ) -> BatchPlan:
        size = work.size
        sliced = _is_large(size, shape)
        if safe:
            _refuse_families(tables, self.source)
            tables = tuple(in_order(table) for table in tables)
        elif not shape.multiple_rows:
            tables = tuple(whole_updates(table) for table in tables)
        # rows that are free in one slice and tied in the next change their partition: one task waits in between
        single = sliced and any(table.target.tied for table in tables)
        slots = max(1, self.slots - 1) if sliced and not self.alone else self.slots
        ranges = _slices(work, shape.slice_bytes) if sliced else _ranges(work, self.slots if shuffled else 1)
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
            row_events=work.log_range.row_events,
            shares=1 if size <= SMALL_BYTES or single else min(slots, shape.partitions),
            shuffled=shuffled,
            sliced=sliced,
            safe=safe,
            on_missing_row=self.on_missing_row,
        )


def _refuse_families(tables: tuple[TablePlan, ...], source: str) -> None:
    """A REPLACE deletes a parent's row first, and the checks would take its children along."""
    for table in tables:
        if table.target.family is not None:
            raise SyncError("SYNC-040", Where(source=source, table=str(table.target.name)))


def whole_updates(plan: TablePlan) -> TablePlan:
    """One statement a change: an UPDATE of the key ties its two rows, instead of a DELETE and an INSERT apart."""
    target = plan.target
    if target.ordered or target.ties:
        return plan
    tie = ConflictKey(target.key, (0,) * len(target.key), ("exact",) * len(target.key))
    return replace(plan, target=replace(target, ties=(tie,)))


def in_order(plan: TablePlan) -> TablePlan:
    """A REPLACE may take rows away that are tied by what an earlier run left: such tables keep their order."""
    return replace(plan, target=replace(plan.target, ordered=True)) if plan.target.tied else plan


def _is_large(size: int, shape: BatchShape) -> bool:
    return 0 < shape.slice_bytes < size


def _ranges(work: TransactionRows, pieces: int) -> tuple[Range, ...]:
    """Byte ranges that tasks decode; each begins where nothing before it is needed. Numbers never overlap."""
    spans: list[tuple[int, int]] = []
    each = pieces // len(work.stretches)
    for start, end in work.stretches:
        cuts = splits(mapped(work.path, end), start, end, each) if each > 1 else ()
        spans += itertools.pairwise(sorted({start, *cuts, end}))
    return tuple(Range(str(work.path), work.path.name, a, b, n << 40) for n, (a, b) in enumerate(spans))


def _slices(work: TransactionRows, size: int) -> tuple[Range, ...]:
    """The ranges of a batch that is too large to be applied at once."""
    log_range = work.log_range
    found = slices(mapped(work.path, log_range.end), log_range.start, log_range.end, size, checksum=work.checksum)
    return tuple(
        Range(str(work.path), work.path.name, one.start, one.end, number << 40, one.maps, one.part)
        for number, one in enumerate(found)
    )
