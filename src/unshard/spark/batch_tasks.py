"""The Spark tasks of a batch, as worker processes run them: a share without a shuffle, or one side of a shuffle.

A Spark worker process imports this module and what it needs, and nothing that plans a batch or starts a job
(`spark.daemon`).
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext

from unshard.errors import UnshardError
from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.sync.batch.plan import BatchPlan, Range
from unshard.sync.batch.row_counts import LedgerReport, Seen
from unshard.sync.steps.pipeline import after_exchange, before_exchange, pacer_of, run_share

MARK = "unshard-error "
"""Stands before an error's JSON form in the exception of a task that decodes for the shuffle."""


@dataclass(frozen=True, slots=True)
class CarryingAttempt:
    """A Spark task that calls `run_attempt` for a plan whose ranges are sent apart from it."""

    ranges: tuple[Range, ...]

    def __call__(self, payload: bytes) -> bytes:
        """Run `run_attempt` on a pickled (plan, share), after adding the ranges to the plan."""
        plan, share = pickle.loads(payload)
        return run_attempt(pickle.dumps((replace(plan, ranges=self.ranges), share)))


def run_attempt(payload: bytes) -> bytes:
    """Spark task: `run_share` for the plan that this attempt has to follow."""
    plan, share = pickle.loads(payload)
    return run_share(pickle.dumps((_of_attempt(plan), share)))


def _of_attempt(plan: BatchPlan) -> BatchPlan:
    """Return the plan for this attempt of a task: in safe mode if it is a second attempt without receipts.

    Such an attempt meets changes that the first attempt has already applied. A task of a stage that is attempted again
    does not know that it repeats, but only a stage behind a shuffle is, and without receipts nothing is shuffled.
    """
    context = TaskContext.get()
    again = context is not None and context.attemptNumber() > 0
    if not again or plan.receipts:
        return plan
    from unshard.sync.planning.planner import as_safe  # few tasks are attempted twice

    return as_safe(plan)


def decode_range(plan: BatchPlan, number: int) -> Iterator[pa.RecordBatch]:
    """Yield the encoded changes of one range, followed by a row with op SEEN that has the range's counts."""
    try:
        changes, seen = before_exchange(plan, plan.ranges[number : number + 1])
    except UnshardError as error:
        # After the shuffle it would be too late: other partitions would apply an incomplete batch.
        raise RuntimeError(MARK + json.dumps(error.to_dict())) from error
    yield from changes.to_batches(max_chunksize=100_000)
    mark = {"target": 0, "table": 0, "op": Op.SEEN, "seq": 0, "key": pickle.dumps(seen), "ordered": False, "part": 0}
    yield pa.RecordBatch.from_pylist([mark], schema=ENCODED_SCHEMA)


def apply_partition(plan: BatchPlan, changes: pa.Table) -> LedgerReport:
    """Apply the rows of one partition, which come with the marks of all ranges; a known error is in the report."""
    is_mark = pa.compute.equal(changes.column("op"), int(Op.SEEN))
    marks = changes.filter(is_mark).column("key").to_pylist()
    seen = sum((pickle.loads(mark) for mark in marks), Seen())
    rows = changes.filter(pa.compute.invert(is_mark)).combine_chunks()
    part = rows.column("part")[0].as_py() if len(rows) else 0
    try:
        ledger, chunks = after_exchange(
            _of_attempt(plan), part, rows, pacer_of(plan.rows_per_second / plan.shape.partitions)
        )
        return LedgerReport(part, seen, ledger, {}, chunks={part: chunks} if len(rows) else {})
    except UnshardError as error:
        return LedgerReport(part, Seen(), {}, {}, error.to_dict())
