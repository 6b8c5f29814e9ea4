"""Plans a batch for a range of the log: byte ranges, number of tasks, exchange."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from unshard.binlog.headers import mapped
from unshard.binlog.transaction_range import slices, splits
from unshard.config.units import OnMissingRow
from unshard.errors import SyncError, Where
from unshard.mysql.connection import Endpoint
from unshard.sync.batch.plan import BatchPlan, BatchShape, ConflictKey, Range, TablePlan
from unshard.sync.batch.stored_plan import RowsRecord, digests
from unshard.sync.planning.coarse_keys import CoarseKeys
from unshard.sync.planning.told_alterations import ToldAlterations
from unshard.sync.source_log.reader import TransactionRows
from unshard.target.meta import MetaTables

SMALL_BYTES = 256 << 10
"""A batch up to this size is one task: starting a second costs more than it saves."""

HERE_BYTES = 128 << 10
"""A batch up to this size runs in the driver's process, in one partition: a Spark job costs more than its rows."""

SHUFFLE_SLOTS = 8
"""From this many slots on, decoding everything in every task costs more than moving rows (740 against 100 MB/s)."""

SHUFFLE_BYTES = 16 << 20
"""Bytes of a batch from which on its rows are moved between tasks, if there are SHUFFLE_SLOTS."""


RANGE_BYTES = ((4 << 20, 3), (512 << 10, 2))
"""Bytes of a batch from which on its keys are dealt in ranges, and the digits of a range (`BatchShape`)."""
HIDDEN = "a rule may leave out UPDATEs, whose rows keep values that no image shows: all of its changes keep their order"


@dataclass(frozen=True, slots=True)
class Planner:
    """The planner of one source's batches; its fields are the settings that all of them have in common.

    Args:
        shape: how new batches are divided.
        slots: the number of tasks that Spark runs at a time.
        alone: no other source needs the slots.
        here: small batches run in the driver's process.
        coarse_keys: the check for keys that safe mode can't handle; None where the user allows them.
        alterations: logs, before a table's first row, the columns whose values the target stores in another form.
        limited: the target limits connections. Nothing is shuffled then, for each task of a shuffle has one.
        exactly_once: batches have receipts. Nothing is shuffled without: where rows of a shuffle are lost, Spark
            attempts the stage behind it again with tasks whose attempt number is 0, and they would not apply their
            changes in safe mode (`spark.batch_tasks`).
    """

    source: str
    meta: MetaTables
    target: Endpoint = field(repr=False)
    shape: BatchShape
    slots: int
    on_missing_row: OnMissingRow = "warn"
    alone: bool = True
    here: bool = True
    coarse_keys: CoarseKeys | None = None
    alterations: ToldAlterations | None = None
    limited: bool = False
    exactly_once: bool = True

    def plan(
        self,
        work: TransactionRows,
        tables: tuple[TablePlan, ...],
        epoch: int,
        batch_id: int,
        *,
        safe: bool = False,
        whole: bool = False,
    ) -> BatchPlan:
        """Return the plan of a new batch over all of `work`.

        `whole`: the log is not cut into a range for each task. Changes that are excluded by their numbers need that, as
        each range has numbers of its own, and a process that takes the batch up plans it with one range.
        """
        if self.alterations is not None:
            self.alterations.tell(tables)
        tables, size = in_log_order(tables), work.size
        shuffled = self.slots >= SHUFFLE_SLOTS and size >= SHUFFLE_BYTES and not _is_large(size, self.shape)
        shuffled = shuffled and not whole and self._shuffles and may_be_shuffled(tables)
        if self._is_small(size):
            shape = replace(self.shape, partitions=1)
        else:
            shape = replace(self.shape, range_digits=range_digits(size) if self.shape.compact else 0)
        return self._build(work, tables, epoch, batch_id, shape, shuffled=shuffled, safe=safe)

    def plan_again(
        self, work: TransactionRows, tables: tuple[TablePlan, ...], epoch: int, batch_id: int, kept: RowsRecord
    ) -> BatchPlan:
        """Return the plan of a batch that an earlier process planned, from its record.

        Raises SyncError SYNC-008 where it would differ from that, SYNC-083 where an earlier version put its changes in
        another order.
        """
        tables = in_log_order(tables) if kept.version > 3 else tables
        plan = self._build(work, tables, epoch, batch_id, kept.shape, shuffled=False, safe=kept.safe)
        if kept.version < 5 and (names := _ordered_otherwise(plan)):
            raise SyncError("SYNC-083", Where(self.source, ", ".join(names), f"{work.begin} to {work.end.position}"))
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
            self.refuse_safe_mode(tables)
        tables = tuple(written_as(table, shape, safe=safe) for table in tables)
        # rows that are free in one slice and tied in the next change their partition: one task applies them in turn
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
            here=self._is_small(size) and shape.partitions == 1 and not sliced,
        )

    def in_safe_mode(self, plan: BatchPlan) -> BatchPlan:
        """Return a batch for its second attempt, which meets changes that the first one has applied.

        Raises as `refuse_safe_mode`.
        """
        self.refuse_safe_mode(plan.tables)
        return as_safe(plan)

    def refuse_safe_mode(self, tables: tuple[TablePlan, ...]) -> None:
        """Raise SyncError SYNC-040 or SYNC-077 for tables of which safe mode may remove rows."""
        _refuse_families(tables, self.source)
        if self.coarse_keys is not None:
            self.coarse_keys.refuse(tables, self.source)

    @property
    def _shuffles(self) -> bool:
        return self.exactly_once and not self.limited and self.shape.multiple_rows

    def _is_small(self, size: int) -> bool:
        return self.here and size <= HERE_BYTES


def range_digits(size: int) -> int:
    """Return `BatchShape.range_digits` for a batch of so many bytes: the largest that gives each partition many ranges.

    A row has some fifty to two hundred bytes in the log.
    """
    return next((digits for least, digits in RANGE_BYTES if size >= least), 0)


def may_be_shuffled(tables: Iterable[TablePlan]) -> bool:
    """Return whether each task may decode a range of its own.

    One range does not show what ties its rows to those of another range. Nor does it show whether the first change of a
    row is an INSERT, which decides how an UPDATE by condition is written, or whether any is.
    """
    return not any(table.target.tied or table.target.by_condition or table.kept for table in tables)


def _ordered_otherwise(plan: BatchPlan) -> list[str]:
    """Return the target tables whose changes versions before 5 of the stored form put in another order."""
    merged = Counter(table.target.name for table in plan.tables)
    found = set()
    for table in plan.tables:
        keys = {column.type for column in table.table.columns if column.name in table.target.key}
        if (plan.safe and merged[table.target.name] > 1) or keys & {"float", "double"}:
            found.add(str(table.target.name))
    return sorted(found)


def _refuse_families(tables: tuple[TablePlan, ...], source: str) -> None:
    """Raise SyncError SYNC-040 for tables connected by foreign keys: a REPLACE of a parent would delete its children.

    It deletes the parent's row first, and the target's checks cascade.
    """
    for table in tables:
        if table.target.family is not None:
            raise SyncError("SYNC-040", Where(source=source, table=str(table.target.name)))


def in_log_order(tables: Iterable[TablePlan]) -> tuple[TablePlan, ...]:
    """Return the plans, with all changes in order for targets that a rule may leave other values than the images show.

    Where a rule leaves out an UPDATE of a row, the target's row keeps the values of its unique keys. A later batch has
    no image of them, so it can't tell that another row may take over such a value only after that row has changed.
    """
    tables = tuple(tables)
    hidden = {
        table.target.name
        for table in tables
        if len(table.target.ties) > 1 and any(rule.hides_values for rule in table.filters)
    }
    return tuple(
        replace(table, target=replace(table.target, ordered=True, why=HIDDEN))
        if table.target.name in hidden and not table.target.ordered
        else table
        for table in tables
    )


def written_as(plan: TablePlan, shape: BatchShape, *, safe: bool) -> TablePlan:
    """Return the plan of a table for a batch of this shape, in safe mode or not."""
    if safe or not (shape.locked_upserts and shape.compact and shape.multiple_rows):
        plan = by_condition(plan)
    if safe:  # a REPLACE makes the row anew
        return in_order(replace(plan, kept=frozenset()))
    return plan if shape.multiple_rows else whole_updates(plan)


def as_safe(plan: BatchPlan) -> BatchPlan:
    """Return the plan of a batch as it is written in safe mode."""
    return replace(plan, safe=True, tables=tuple(written_as(table, plan.shape, safe=True) for table in plan.tables))


def whole_updates(plan: TablePlan) -> TablePlan:
    """Return the plan for one statement a change: an UPDATE of the key ties its two rows.

    Otherwise it would become a DELETE and an INSERT.
    """
    target = plan.target
    if target.ordered or target.ties:
        return plan
    tie = ConflictKey(target.key, (0,) * len(target.key), ("exact",) * len(target.key))
    return replace(plan, target=replace(target, ties=(tie,)))


def by_condition(plan: TablePlan) -> TablePlan:
    """Return the plan without upserts that lock their rows.

    Those need each row at most once in a statement, as step *compact* leaves it.
    """
    return replace(plan, target=replace(plan.target, locked_upserts=False)) if plan.target.locked_upserts else plan


def in_order(plan: TablePlan) -> TablePlan:
    """Return the plan with all changes in order where its table is tied.

    A REPLACE may delete rows that are tied by what an earlier attempt left.
    """
    return replace(plan, target=replace(plan.target, ordered=True)) if plan.target.tied else plan


def _is_large(size: int, shape: BatchShape) -> bool:
    return 0 < shape.slice_bytes < size


def _ranges(work: TransactionRows, pieces: int) -> tuple[Range, ...]:
    """Return the byte ranges that tasks decode. Each begins where nothing before it is needed; no numbers overlap."""
    spans: list[tuple[int, int]] = []
    each = pieces // len(work.stretches)
    for start, end in work.stretches:
        cuts = splits(mapped(work.path, end), start, end, each) if each > 1 else ()
        spans += itertools.pairwise(sorted({start, *cuts, end}))
    return tuple(Range(str(work.path), work.path.name, a, b, n << 40) for n, (a, b) in enumerate(spans))


def _slices(work: TransactionRows, size: int) -> tuple[Range, ...]:
    """Return the ranges of a batch that is too large to be applied at once."""
    log_range = work.log_range
    found = slices(mapped(work.path, log_range.end), log_range.start, log_range.end, size, checksum=work.checksum)
    return tuple(
        Range(str(work.path), work.path.name, one.start, one.end, number << 40, one.maps, one.part)
        for number, one in enumerate(found)
    )
