"""The incremental pipeline: the one place that knows the order of the steps.

Before the exchange a step sees the changes of a byte range, after it those of a partition::

    decode ▸ versions ▸ filter ▸ documents ▸ clamp ▸ map ▸ causality ▸ encode
                                                            ══ exchange by key ═ compact ▸ order ▸ merge ▸ apply

The block-allow list and *route* are applied by name when the batch is planned (`sync.planning.table_plans`): a table
that the list leaves out has no plan, and its events are skipped undecoded; every other table's plan has its target. The
exchange is either that each task keeps its own partitions of the whole range (`run_share`), or a shuffle
(`before_exchange`, `after_exchange`).

A step that would change nothing in a batch is left out. A worker process loads a step's module with the first batch
that needs it.
"""

from __future__ import annotations

import itertools
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.rows import OpaqueDocuments
from unshard.errors import UnshardError
from unshard.sync.batch.plan import BatchPlan, Range
from unshard.sync.batch.row_counts import Filtered, Ledger, LedgerReport, RowCounts, Seen, add_up
from unshard.sync.changes.decode import Images, decode_all
from unshard.sync.changes.gather import encode_changes
from unshard.sync.changes.merge import Chunk, merge
from unshard.sync.changes.order import arrange
from unshard.sync.steps.apply import apply, writer_of

if TYPE_CHECKING:
    from unshard.sync.steps.pacer import Pacer
    from unshard.transform.latest_time import ClampedValue


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
    filtered: Filtered = {}
    hidden = frozenset[int]()
    if any(table.filters for table, _ in images):
        from unshard.sync.changes.filter import filter_rows, hidden_targets

        given = images
        images, filtered = filter_rows(given)
        hidden = hidden_targets(given, images) if filtered else hidden
    if opaque or any(table.documents for table, _ in images):
        from unshard.sync.changes.documents import refuse_documents

        refuse_documents(plan, images, opaque)
    done("filter")
    clamped: tuple[ClampedValue, ...] = ()
    if any(table.clamped for table, _ in images):
        from unshard.sync.changes.clamp import clamp_times

        images, clamped = clamp_times(plan, images)
    if any(table.mapping is not None or table.constants for table, _ in images):
        from unshard.sync.changes.map import map_columns

        images = map_columns(plan, images)
    done("map")
    ties = None
    if any(table.target.tied for table, _ in images):
        from unshard.sync.changes.causality import tie_rows

        ties = tie_rows(plan, images, hidden)
    done("causality")
    changes, counts = encode_changes(plan, images, mine, ties)
    if plan.stages:
        from unshard.sync.changes.stages import encode_stages

        changes = encode_stages(plan, images, mine, ties, hidden, changes)
    done("encode")
    seen += Seen(counts, filtered, clamped=clamped if mine is None or share == 0 else ())
    if not plan.reports_keys:
        return changes, seen
    from unshard.sync.steps.report_keys import KeyShare, report_keys

    keys = report_keys(plan, images, KeyShare(share, plan.shares) if mine is not None else KeyShare())
    done("keys")
    return changes, seen + Seen(keys=keys)


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

    pacer = pacer_of(plan.rows_per_second / plan.shares)

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


def pacer_of(rate: float) -> Pacer | None:
    """Return what keeps a task to `rate` rows a second; None for 0, no limit."""
    if not rate:
        return None
    from unshard.sync.steps.pacer import Pacer

    return Pacer(rate)


def after_exchange(
    plan: BatchPlan, part: int, changes: pa.Table, pacer: Pacer | None, before: int = 0
) -> tuple[Ledger, int]:
    """Compact, order, merge and apply one partition's changes, which are in the order of `seq`.

    A batch with stages has them as `sync.changes.stages` encodes them.
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


def _in_stages(plan: BatchPlan, part: int, changes: pa.Table, pacer: Pacer | None) -> tuple[Ledger, int]:
    """Do as `after_exchange` for a batch from which changes were excluded after some of its chunks were applied."""
    from unshard.sync.batch.excluded_changes import OPERATOR, within, without
    from unshard.sync.changes.stages import of_stage

    targets, compacted = plan.targets(), plan.shape.compact
    kept: list[Chunk] = []
    staged, changes = changes, of_stage(changes, 0)
    done, ready = changes.slice(0, 0), arrange(changes, compacted=compacted, safe=plan.safe)
    out = np.zeros(len(changes), dtype=bool)
    for number, stage in enumerate(plan.stages, 1):
        chunks = merge(ready, targets, plan.shape, len(kept), safe=plan.safe)
        applied = list(itertools.islice(chunks, stage.base[part] - len(kept)))
        done = pa.concat_tables([done, ready.slice(0, sum(chunk.rows for chunk in applied))])
        kept += applied
        out |= within(changes.column("seq").to_numpy(), stage.seqs)
        rest = arrange(of_stage(staged, number), compacted=compacted, safe=plan.safe)
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


def _by_target(changes: pa.Table) -> Counter[int]:
    targets, counts = np.unique(changes.column("target").to_numpy(), return_counts=True)
    return Counter(dict(zip(targets.tolist(), counts.tolist(), strict=True)))


@dataclass(slots=True)
class Clock:
    """The time that each step took, in seconds, for the batch's report. Each step is timed by one thread."""

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
