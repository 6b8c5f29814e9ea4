"""The incremental pipeline: the one place that knows the order of the steps.

Before the exchange a step sees the changes of a byte range, after it those of a partition::

    decode ▸ versions ▸ filter ▸ documents ▸ map ▸ causality ▸ encode
                                                    ══ exchange by key ═ compact ▸ order ▸ merge ▸ apply

The block-allow list and *route* are applied by name when the batch is planned (`sync.planning.table_plans`): a table
that the list leaves out has no plan, and its events are skipped undecoded; every other table's plan has its target. The
exchange is either that each task keeps its own partitions of the whole range (`run_share`), or a shuffle
(`before_exchange`, `after_exchange`).

Step *order* puts a partition's changes in the order in which they are applied. Compacted changes have distinct keys, so
their order is free: they are grouped by target and operation, so that one statement takes many. DELETE comes first:
where changes of two source tables have one key, a row has moved. Ordered changes come afterwards, in the order of the
log: none of their rows is tied to a compacted one's.
"""

from __future__ import annotations

import itertools
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.images import PartialImages
from unshard.binlog.rows import OpaqueDocuments
from unshard.errors import UnshardError
from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.sync.batch.excluded_changes import OPERATOR, within, without
from unshard.sync.batch.plan import BatchPlan, Range
from unshard.sync.batch.row_counts import Ledger, LedgerReport, RowCounts, Seen, add_up
from unshard.sync.batch.throttle import Pacer
from unshard.sync.steps.apply import apply, writer_of
from unshard.sync.steps.causality import find_ties
from unshard.sync.steps.compact import compact
from unshard.sync.steps.decode import Images, decode_all
from unshard.sync.steps.documents import refuse_documents
from unshard.sync.steps.encode import Ties, encode, gather
from unshard.sync.steps.filter import filter_rows
from unshard.sync.steps.map import map_columns, where_of
from unshard.sync.steps.merge import Chunk, merge
from unshard.sync.steps.partial_images import encode_partial
from unshard.sync.steps.report_keys import KeyShare, report_keys
from unshard.sync.steps.safe_mode_moves import without_taken_over

_RANK = np.zeros(8, dtype=np.int8)
_RANK[[Op.DELETE, Op.INSERT, Op.UPDATE, Op.UPDATE_SET]] = [0, 1, 2, 3]


def order(changes: pa.Table) -> pa.Table:
    """Return compacted changes sorted by target, operation and `seq`. The same input gives the same order."""
    target = changes.column("target").to_numpy()
    rank = _RANK[changes.column("op").to_numpy()]
    seq = changes.column("seq").to_numpy()
    index = np.lexsort((seq, rank, target))
    if np.array_equal(index, np.arange(len(index))):
        return changes
    return changes.take(pa.array(index))


def tie_rows(plan: BatchPlan, images: Sequence[Images]) -> list[Ties | None]:
    """Step *causality*: return the ties of each table's rows; None where the table needs none."""
    found: list[Ties | None] = [None] * len(images)
    tied: dict[int, list[int]] = {}
    for place, (table, batch) in enumerate(images):
        if table.target.tied and isinstance(batch, pa.RecordBatch):
            tied.setdefault(table.target.id, []).append(place)
    for places in tied.values():
        batches = [(table, batch) for table, batch in (images[place] for place in places)]
        for place, ties in zip(places, find_ties(batches, plan.shape.partitions), strict=True):
            found[place] = ties
    return found


def encode_changes(
    plan: BatchPlan, images: Sequence[Images], mine: np.ndarray | None, ties: Sequence[Ties | None] | None = None
) -> tuple[pa.Table, dict[int, int]]:
    """Step *encode*: return all changes as one table, and the number of changes by target id.

    The table has ENCODED_SCHEMA and the order of the log. With `mine`, only changes of those partitions are kept.
    """
    seen: Counter[int] = Counter()
    batches, whole = [], []
    for (table, batch), tied in zip(images, ties or [None] * len(images), strict=True):
        if isinstance(batch, PartialImages):
            encoded, changes = encode_partial(table, batch, plan.shape.partitions, mine, where_of(plan, batch))
            batches.append(encoded)
            seen[table.target.id] += changes
        else:
            whole.append((table, batch, tied))
    shape = plan.shape
    for one in gather(whole):
        encoded, changes = encode(
            one.plan,
            one.batch,
            shape.partitions,
            mine,
            one.ties,
            compact=shape.compact,
            multiple_rows=shape.multiple_rows,
            tables=one.tables,
        )
        batches.append(encoded)
        seen[one.plan.target.id] += changes
    found = pa.Table.from_batches(batches, ENCODED_SCHEMA)
    return (found.sort_by("seq") if len(images) > 1 else found).combine_chunks(), dict(seen)


def before_exchange(
    plan: BatchPlan,
    pieces: Sequence[Range],
    mine: np.ndarray | None = None,
    lap: Callable[[str], None] | None = None,
    share: int = 0,
) -> tuple[pa.Table, Seen]:
    """Run the steps from *decode* to *encode* on these ranges. Return the changes, and what was seen there.

    `lap` is called with a step's name when the step is done.
    With `mine`, task number `share` of those that decode the same ranges reports its share of the changed keys.
    """
    done = lap or (lambda step: None)
    images, seen, opaque = _decoded(plan, pieces)
    done("decode")
    images, filtered = filter_rows(images)
    refuse_documents(plan, images, opaque)
    done("filter")
    images = map_columns(plan, images)
    done("map")
    ties = tie_rows(plan, images)
    done("causality")
    changes, counts = encode_changes(plan, images, mine, ties)
    done("encode")
    if not plan.reports_keys:
        return changes, seen + Seen(counts, filtered)
    keys = report_keys(plan, images, KeyShare(share, plan.shares) if mine is not None else KeyShare())
    done("keys")
    return changes, seen + Seen(counts, filtered, keys=keys)


def _decoded(plan: BatchPlan, pieces: Sequence[Range]) -> tuple[list[Images], Seen, list[OpaqueDocuments]]:
    """Run step *decode* on each range. The images stay in memory only as long as the caller has them."""
    found = [decode_all(plan, piece) for piece in pieces]
    images = [one for images, _, _ in found for one in images]
    return images, sum((here for _, here, _ in found), Seen()), [one for _, _, opaque in found for one in opaque]


def run_share(payload: bytes) -> bytes:
    """Run one task of the exchange in which each task decodes the whole range and applies its share of the partitions.

    `payload` is a pickled (BatchPlan, share number), the result a pickled LedgerReport. May run any number of times.
    """
    plan, share = pickle.loads(payload)
    return pickle.dumps(applied_share(plan, share))


def applied_share(plan: BatchPlan, share: int = 0) -> LedgerReport:
    """Do as `run_share`, on values. A batch of one partition and one slice is applied in the caller's thread."""
    clock = Clock()
    chunks = {part: plan.before[part] if plan.before else 0 for part in plan.partitions_of(share)}
    seen = Seen()
    ledgers: list[Ledger] = []
    try:
        for changes, here in _decoded_ahead(plan, np.array(list(chunks), dtype=np.int32), clock, share):
            seen += here
            begun = time.monotonic()
            ledgers.append(apply_partitions(plan, changes, chunks))
            del changes
            clock.add("apply", time.monotonic() - begun)
        return LedgerReport(share, seen, add_up(ledgers), clock.seconds, chunks=chunks)
    except UnshardError as error:
        return LedgerReport(share, Seen(), {}, clock.seconds, error.to_dict())


def _decoded_ahead(plan: BatchPlan, mine: np.ndarray, clock: Clock, share: int = 0) -> Iterator[tuple[pa.Table, Seen]]:
    """Yield the changes of each slice and what was seen there. The next slice is decoded while one is in use."""

    def decoded(pieces: Sequence[Range]) -> tuple[pa.Table, Seen]:
        return before_exchange(plan, pieces, mine, clock.laps(), share)

    slices = plan.slices()
    if len(slices) == 1:
        yield decoded(slices[0])
        return
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="decode-ahead") as ahead:
        upcoming = ahead.submit(decoded, slices[0])
        for pieces in slices[1:]:
            now, upcoming = upcoming.result(), ahead.submit(decoded, pieces)
            yield now
            del now
        yield upcoming.result()


def apply_partitions(plan: BatchPlan, changes: pa.Table, chunks: dict[int, int]) -> Ledger:
    """Run the steps after the exchange for some partitions, each in a thread, within the limits of the plan.

    Each has a connection of its own. `chunks` has the number of chunks that each partition has had in earlier slices of
    the batch; this slice's are added.
    """
    column = changes.column("part")
    shares = [changes.filter(pc.equal(column, part)) if len(chunks) > 1 else changes for part in chunks]

    pacer = Pacer(plan.rows_per_second / plan.shares)

    def one(part: int, share: pa.Table) -> Ledger:
        ledger, chunks[part] = after_exchange(plan, part, share, pacer, chunks[part])
        if plan.connections:
            writer_of(plan, part).drop()
        return ledger

    if len(chunks) == 1:
        return add_up(map(one, list(chunks), shares))
    at_once = min(len(chunks), plan.connections // plan.shares or len(chunks))
    with ThreadPoolExecutor(max_workers=at_once) as threads:
        return add_up(threads.map(one, list(chunks), shares))


def after_exchange(plan: BatchPlan, part: int, changes: pa.Table, pacer: Pacer, before: int = 0) -> tuple[Ledger, int]:
    """Compact, order, merge and apply one partition's changes, which are in the order of `seq`.

    Chunks are numbered from `before` on. Returns the ledger and the last chunk's number. May run again: chunks with a
    receipt are skipped.
    """
    if not len(changes):
        return {}, before
    if plan.stages:
        return _in_stages(plan, part, changes, pacer)
    targets = plan.targets()
    ready = arrange(changes, compacted=plan.shape.compact, safe=plan.safe)
    decoded, left = _by_target(changes), _by_target(ready)
    dropped = {target: RowCounts(decoded=count, compacted=count - left[target]) for target, count in decoded.items()}
    applied, last = apply(merge(ready, targets, plan.shape, before, safe=plan.safe), plan, part, before, pacer)
    return add_up([dropped, applied]), last


def _in_stages(plan: BatchPlan, part: int, changes: pa.Table, pacer: Pacer) -> tuple[Ledger, int]:
    """Do as `after_exchange` for a batch from which changes were excluded after some of its chunks were applied."""
    targets, compacted = plan.targets(), plan.shape.compact
    kept: list[Chunk] = []
    done, ready = changes.slice(0, 0), arrange(changes, compacted=compacted, safe=plan.safe)
    out = np.zeros(len(changes), dtype=bool)
    for stage in plan.stages:
        chunks = merge(ready, targets, plan.shape, len(kept), safe=plan.safe)
        applied = list(itertools.islice(chunks, stage.base[part] - len(kept)))
        done = pa.concat_tables([done, ready.slice(0, sum(chunk.rows for chunk in applied))])
        kept += applied
        out |= within(changes.column("seq").to_numpy(), stage.seqs)
        rest = arrange(changes.filter(pa.array(~out)), compacted=compacted, safe=plan.safe)
        ready = without(rest, done, compacted=compacted)
    filtered = _by_target(without(changes.filter(pa.array(out)), done, compacted=compacted))
    decoded, left = _by_target(changes), _by_target(pa.concat_tables([done, ready]))
    dropped = {
        target: RowCounts(
            decoded=count,
            compacted=count - left[target] - filtered[target],
            filtered=filtered[target],
            rules={OPERATOR: filtered[target]} if filtered[target] else {},
        )
        for target, count in decoded.items()
    }
    chunks = itertools.chain(kept, merge(ready, targets, plan.shape, len(kept), safe=plan.safe))
    ledger, last = apply(chunks, plan, part, 0, pacer)
    return add_up([dropped, ledger]), last


def arrange(changes: pa.Table, *, compacted: bool, safe: bool = False) -> pa.Table:
    """Run steps *compact* and *order*: return the free changes of a partition, then the ordered ones.

    Without `compacted` all changes keep the order of the log.
    """
    in_order = without_taken_over if safe else _all
    if not compacted:
        return in_order(changes)
    is_ordered = changes.column("ordered")
    free = order(compact(changes.filter(pc.invert(is_ordered)), safe=safe))
    return pa.concat_tables([free, in_order(changes.filter(is_ordered))]).combine_chunks()


def _all(changes: pa.Table) -> pa.Table:
    return changes


def _by_target(changes: pa.Table) -> Counter[int]:
    targets, counts = np.unique(changes.column("target").to_numpy(), return_counts=True)
    return Counter(dict(zip(targets.tolist(), counts.tolist(), strict=True)))


@dataclass(slots=True)
class Clock:
    """Seconds by step, for the batch's report. Each step is timed by one thread."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, step: str, seconds: float) -> None:
        """Add seconds to a step."""
        self.seconds[step] = self.seconds.get(step, 0.0) + seconds

    def laps(self) -> Callable[[str], None]:
        """Return a function that adds the time since its last call, or since it was made, to a step."""
        last = time.monotonic()

        def lap(step: str) -> None:
            nonlocal last
            now = time.monotonic()
            self.add(step, now - last)
            last = now

        return lap
