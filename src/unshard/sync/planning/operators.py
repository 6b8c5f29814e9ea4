"""Binlog operators for row changes, on the driver: which changes they exclude, and the plan of a batch without them.

| the process dies | then |
|---|---|
| before the batch is open | the operator is pending, the next start plans the same |
| between open and close | the stored plan names the changes, and is run again |
| after close | the operator was settled by the same transaction |

An operator for a transaction that changed tables which are blocked by a sharding DDL stays pending until the last of
them is read again. Each batch that includes the operator's position leaves its own changes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from struct import unpack_from

import numpy as np

from unshard.binlog.events import event_of
from unshard.binlog.headers import mapped
from unshard.binlog.images import PartialImages
from unshard.binlog.index import walk
from unshard.errors import DdlError, SyncError, UnshardError, Where
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.sync.batch.excluded_changes import MOVED, ExclusionEpoch, LeftOutRows, Seqs, runs
from unshard.sync.batch.plan import BatchPlan, TablePlan
from unshard.sync.batch.stored_plan import RowsRecord, record_of
from unshard.sync.changes.decode import decode
from unshard.sync.changes.documents import refuse_documents_ahead
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.sync.planning.pending_operators import PendingOperators, Used
from unshard.sync.source_log.reader import TransactionRows
from unshard.target.operators import Operator, OperatorKind
from unshard.target.receipts import OpenBatch

Held = Mapping[TableName, Location]
"""Tables whose changes are read again later, each with the location from which they are, as of the end of the batch."""

_CODE_AT, _LENGTH_AT = 4, 9


def as_kept(tables: Sequence[TablePlan], kept: RowsRecord) -> tuple[TablePlan, ...]:
    """Return the tables of an open batch, with the changes that its plan excluded from the beginning."""
    return _filtered(_filtered(tables, LeftOutRows(kept.left_out)), LeftOutRows(kept.moved, MOVED))


def leave_out(
    plan: BatchPlan, work: TransactionRows, operators: Sequence[Operator], held: Held
) -> tuple[BatchPlan, Used]:
    """Return a new batch without the changes that operators exclude, and the operators that its close settles.

    Raises DdlError DDL-028 for an operator that is not `skip`.
    """
    meant = _meant(plan, work, operators)
    if not meant:
        return plan, {}
    done = meant.keys() - _needed_again(work, operators, held)
    used = {number: f"left out: {_count(meant[number])} changes" for number in sorted(done)}
    return replace(plan, tables=_filtered(plan.tables, LeftOutRows(_all(meant))), operators=tuple(meant)), used


def _without(plan: BatchPlan, meant: dict[int, Seqs], store: CheckpointStore) -> BatchPlan:
    """Return an open batch without changes that it had until now, but for what is applied. Raises DdlError DDL-029."""
    done = store.applied(plan.shape.partitions)
    if any(one.step for one in done) or (plan.sliced and any(map(any, done))):
        raise DdlError("DDL-029", Where(source=plan.source, position=f"{plan.begin} to {plan.end}"))
    stage = ExclusionEpoch(_all(meant), tuple(one.chunks for one in done))
    return replace(plan, operators=(*plan.operators, *meant), stages=(*plan.stages, stage))


def without_moved(plan: BatchPlan, seqs: Seqs) -> BatchPlan:
    """Return a new batch of a re-sync without changes of rows that have moved between shards."""
    return replace(plan, tables=_filtered(plan.tables, LeftOutRows(seqs, MOVED)))


def take_up(
    plan: BatchPlan,
    work: TransactionRows,
    pending: PendingOperators,
    batch: OpenBatch,
    store: CheckpointStore,
    held: Held,
) -> BatchPlan:
    """Return an open batch, planned again, without what operators exclude; the new plan is stored before it runs.

    The operators are those that are pending when that plan is stored. Some of the batch is applied, because a start
    gives up any other (`target.receipts.claim`). What is applied stays (`sync.batch.excluded_changes`). Raises DdlError
    DDL-028 as `leave_out`, DDL-029 for a batch that is too large, or in the middle of a chunk that is too large.
    """
    kept = RowsRecord.of(batch)
    plan = replace(plan, stages=kept.stages, operators=kept.operators)
    while True:
        pending.read()
        meant = _meant(plan, work, (one for one in pending.known if one.number not in kept.operators))
        taken_up = _without(plan, meant, store) if meant else plan
        if not meant or store.note({**batch.plan, **record_of(taken_up)}, operators=pending.numbers):
            break
    later = _needed_again(work, pending.known, held)
    notes = dict.fromkeys(kept.operators, "left out")
    notes |= {n: f"left out: {_count(seqs)} changes, but for what was applied before" for n, seqs in meant.items()}
    store.used |= {number: note for number, note in notes.items() if number not in later}
    return taken_up


def located(plan: BatchPlan, error: UnshardError) -> UnshardError:
    """Return a refused change's error with the position of its row event, for which the batch is decoded once more."""
    seq = error.values.get("seq")
    if seq is None or not plan.begin.offset <= plan.ranges[0].start < plan.end.offset:
        return error  # rows that were prepared lie before their commit, whose position the error names
    for piece in plan.ranges:
        for _, images in decode(plan, piece, offsets=True)[0]:
            batch = images.batch if isinstance(images, PartialImages) else images
            at = np.flatnonzero(batch.column(1).to_numpy(zero_copy_only=False) == seq)
            if len(at):
                offset = batch.column(batch.num_columns - 1)[int(at[0])].as_py()
                place = replace(error.where, position=str(Position(piece.file, offset)))
                return type(error)(error.code, place, error.cause, error.values)
    return error


def refuse_ahead(plan: BatchPlan) -> None:
    """Raise SyncError SYNC-078, with the position of the row event, for documents that stop a batch of slices."""
    try:
        refuse_documents_ahead(plan)
    except SyncError as error:
        raise located(plan, error).at(source=plan.source, position=str(plan.begin)) from None


def _meant(plan: BatchPlan, work: TransactionRows, operators: Iterable[Operator]) -> dict[int, Seqs]:
    """Return, by operator number, the changes in this batch that it excludes; no entry where there are none."""
    found: dict[int, Seqs] = {}
    for one in operators:
        if not work.holds(one.position):
            continue
        if one.op is not OperatorKind.SKIP:
            place = Where(source=plan.source, position=str(one.position))
            raise DdlError("DDL-028", place, values={"op": str(one.op)})
        if seqs := seqs_at(plan, work, one.position):
            found[one.number] = seqs
    return found


def seqs_at(plan: BatchPlan, work: TransactionRows, position: Position) -> Seqs:
    """Return the changes of the row event at that position, or for any other event those of its whole transaction."""
    start, end, _ = _span(work, position.offset)
    found: list[int] = []
    for piece in plan.ranges:
        if piece.start < end and start < piece.end:
            for _, images in decode(plan, piece, offsets=True)[0]:
                batch = images.batch if isinstance(images, PartialImages) else images
                offsets = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
                seqs = batch.column(1).to_numpy(zero_copy_only=False)
                found += seqs[(offsets >= start) & (offsets < end)].tolist()
    return runs(found)


def _needed_again(work: TransactionRows, operators: Iterable[Operator], held: Held) -> frozenset[int]:
    """Return the operators at positions in `work` whose changes of a blocked table are read again later."""
    places = {name: place.position for name, place in held.items()}
    return frozenset(
        one.number
        for one in operators
        if work.holds(one.position)
        and any(name in places and places[name] <= one.position for name in _span(work, one.position.offset)[2])
    )


def _span(work: TransactionRows, offset: int) -> tuple[int, int, frozenset[TableName]]:
    """Return the bytes of the row event or transaction that holds the byte at `offset`, and a transaction's tables."""
    if work.xid:
        return work.log_range.start, work.log_range.end, work.log_range.tables
    data = mapped(work.path, work.log_range.end)
    start = end = next(first for first, last in work.stretches if first <= offset < last)
    while end <= offset:
        start = end
        where = Where(file=str(work.path))
        size = work.log_range.end
        log_range = walk(data, start, size=size, budget=1, checksum=work.checksum, where=where)
        end, tables = log_range.end, log_range.tables
        if end <= start:
            return start, start, tables
    event = start
    while event < end:
        (length,) = unpack_from("<I", data, event + _LENGTH_AT)
        if event <= offset < event + length:
            rows = event_of(data[event + _CODE_AT]).kind == "rows"
            return (event, event + length, frozenset()) if rows else (start, end, tables)
        event += max(length, 1)
    return start, end, tables


def _filtered(tables: Sequence[TablePlan], rule: LeftOutRows) -> tuple[TablePlan, ...]:
    if not rule.seqs:
        return tuple(tables)
    return tuple(replace(table, filters=(rule, *table.filters)) for table in tables)


def _all(meant: dict[int, Seqs]) -> Seqs:
    return tuple(run for seqs in meant.values() for run in seqs)


def _count(seqs: Seqs) -> int:
    return sum(last - first + 1 for first, last in seqs)
