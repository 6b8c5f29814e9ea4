"""The barrier inside a task of a barrier stage."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from unshard.errors import UnshardError, error_from_dict
from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.spark.alive import failure
from unshard.spark.folders import sees
from unshard.spark.jobs import Task, bring_home, counted, run_tasks, settle, tagged
from unshard.sync.batch.plan import BatchPlan, Range
from unshard.sync.batch.row_counts import LedgerReport, Seen, add_up
from unshard.sync.batch.shipped_log import carried
from unshard.sync.steps.pipeline import after_exchange, before_exchange, run_share
from unshard.sync.throttle import Pacer


def wait() -> None:
    """Block until every task of the stage is here; about a second each time (Spark polls). Call in a task only."""
    from pyspark import BarrierTaskContext

    BarrierTaskContext.get().barrier()


# A batch as one Spark job, by either exchange.
#
# * keep-own: every task decodes the whole range and keeps its partitions. One stage, nothing moves. For a
# machine or two, where decoding is far cheaper than moving rows.
# * shuffle: every task decodes one range, rows move to their partition by `repartitionById`. For many slots.
#
# Both run the same steps of `unshard.sync.steps.pipeline`, and give the same chunks for the same plan.


_ENCODED = (
    "target int, table int, op tinyint, seq bigint, key binary, old_key binary, row binary, ordered boolean, part int"
)
_REPORT = "report binary, events binary"
_MARK = "unshard-error "
_MARKED = re.compile(_MARK + r"(\{.*\})")


def run_batch(spark: SparkSession, plan: BatchPlan, tag: str | None = None) -> list[LedgerReport]:
    """Run the batch and return its reports. Safe to run again: receipts skip what is applied.

    Executors that don't see the relay log get its bytes with the job.
    Raises the UnshardError that a task met, or EngineError when Spark itself fails or `interrupt` ended the tag's jobs.
    """
    if not sees(spark, Path(plan.ranges[0].path).parent.parent):
        return _checked(_carried(spark, plan, tag))
    return _checked(_run(spark, plan, run_attempt, tag))


def _run(spark: SparkSession, plan: BatchPlan, task: Task, tag: str | None) -> list[LedgerReport]:
    if plan.shuffled:
        with tagged(spark, tag):
            return _shuffled(spark, plan)
    payloads = [pickle.dumps((plan, share)) for share in range(plan.shares)]
    return [pickle.loads(result) for result in run_tasks(spark, payloads, task, tag=tag)]


def _checked(reports: list[LedgerReport]) -> list[LedgerReport]:
    for report in reports:
        if report.error is not None:
            raise error_from_dict(report.error)
    return reports


def _carried(spark: SparkSession, plan: BatchPlan, tag: str | None) -> list[LedgerReport]:
    """The same for executors that don't see the relay log: its bytes go with the job, once for all of its tasks.

    Each slice of a large transaction is a job of its own, so that one carries no more than a slice.
    """
    if plan.shuffled:
        return _run(spark, carried(plan), run_attempt, tag)
    total: dict[int, LedgerReport] = {}
    before = plan.before
    for ranges in plan.slices():
        one = carried(replace(plan, ranges=ranges, sliced=False, before=before))
        bare = replace(one, ranges=())
        reports = _checked(_run(spark, bare, CarryingAttempt(one.ranges), tag))
        chunks = {part: count for report in reports for part, count in report.chunks.items()}
        before = tuple(chunks[part] for part in range(plan.shape.partitions))
        total = {report.share: _joined(total.get(report.share), report) for report in reports}
    return list(total.values())


def _joined(before: LedgerReport | None, report: LedgerReport) -> LedgerReport:
    if before is None:
        return report
    seconds = dict(Counter(before.seconds) + Counter(report.seconds))
    ledger = add_up([before.ledger, report.ledger])
    return replace(report, seen=before.seen + report.seen, ledger=ledger, seconds=seconds)


@dataclass(frozen=True, slots=True)
class CarryingAttempt:
    """Spark task: `run_attempt` of a plan whose ranges came apart from it."""

    ranges: tuple[Range, ...]

    def __call__(self, payload: bytes) -> bytes:
        plan, share = pickle.loads(payload)
        return run_attempt(pickle.dumps((replace(plan, ranges=self.ranges), share)))


def run_attempt(payload: bytes) -> bytes:
    """Spark task: `run_share`, of the plan that this attempt is to follow."""
    plan, share = pickle.loads(payload)
    return run_share(pickle.dumps((_of_attempt(plan), share)))


def _of_attempt(plan: BatchPlan) -> BatchPlan:
    """Without receipts, a second attempt of a task meets what the first has applied: safe mode is for that."""
    context = TaskContext.get()
    again = context is not None and context.attemptNumber() > 0
    return replace(plan, safe=True) if again and not plan.receipts else plan


def _shuffled(spark: SparkSession, plan: BatchPlan) -> list[LedgerReport]:
    def before(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _decode_range(plan, number)

    def after(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark declares every field nullable
        received = [pa.RecordBatch.from_arrays(batch.columns, schema=ENCODED_SCHEMA) for batch in batches]
        changes = pa.Table.from_batches(received, ENCODED_SCHEMA).sort_by("seq").combine_chunks()
        report = _apply_partition(plan, changes)
        columns = [pa.array([pickle.dumps(report)], pa.binary()), pa.array([counted()], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["report", "events"])
        settle()

    pieces = len(plan.ranges)
    try:
        frame = (
            spark.range(0, pieces, 1, pieces)
            .mapInArrow(before, _ENCODED)
            .repartitionById(plan.shape.partitions, "part")
            .mapInArrow(after, _REPORT)
        )
        found = frame.toArrow()
    except Exception as error:
        known = _MARKED.search(str(error))
        if known is not None:
            raise error_from_dict(json.loads(known[1])) from error
        raise failure(spark, "batch", error) from error
    bring_home(found.column("events").to_pylist())
    return [pickle.loads(report) for report in found.column("report").to_pylist()]


def _decode_range(plan: BatchPlan, number: int) -> Iterator[pa.RecordBatch]:
    """The encoded changes of one range, and a row with op SEEN that tells what was seen there."""
    try:
        changes, seen = before_exchange(plan, plan.ranges[number : number + 1])
    except UnshardError as error:
        # Behind the shuffle it would be too late: other partitions would apply an incomplete batch.
        raise RuntimeError(_MARK + json.dumps(error.to_dict())) from error
    yield from changes.to_batches(max_chunksize=100_000)
    mark = {"target": 0, "table": 0, "op": Op.SEEN, "seq": 0, "key": pickle.dumps(seen), "ordered": False, "part": 0}
    yield pa.RecordBatch.from_pylist([mark], schema=ENCODED_SCHEMA)


def _apply_partition(plan: BatchPlan, changes: pa.Table) -> LedgerReport:
    is_mark = pa.compute.equal(changes.column("op"), int(Op.SEEN))
    marks = changes.filter(is_mark).column("key").to_pylist()
    seen = sum((pickle.loads(mark) for mark in marks), Seen())
    rows = changes.filter(pa.compute.invert(is_mark)).combine_chunks()
    part = rows.column("part")[0].as_py() if len(rows) else 0
    try:
        ledger, _ = after_exchange(_of_attempt(plan), part, rows, Pacer(plan.rows_per_second / plan.shape.partitions))
        return LedgerReport(part, seen, ledger, {})
    except UnshardError as error:
        return LedgerReport(part, Seen(), {}, {}, error.to_dict())
