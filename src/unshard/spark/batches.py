"""Runs a batch as one Spark job, by either exchange; a small one in the driver's process.

The two exchanges run the same steps of `unshard.sync.steps.pipeline`, and give the same chunks for the same plan.
With keep-own, every task decodes the whole range and keeps the rows of its own partitions: one stage, and no row is
sent. It suits one or two machines, where decoding is far cheaper than sending rows. With shuffle, every task decodes
one range, and rows are sent to their partition by `repartitionById`. It suits many slots.
"""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pyarrow as pa
from pyspark.sql import SparkSession

from unshard.errors import EngineError, error_from_dict
from unshard.model.change import ENCODED_SCHEMA, LOG_ORDER
from unshard.retry import given_up_by
from unshard.spark.batch_tasks import MARK, CarryingAttempt, apply_partition, decode_range, run_attempt
from unshard.spark.folders import sees
from unshard.spark.job_data import job_data
from unshard.spark.jobs import Task, bring_home, failure, run_tasks, tagged
from unshard.spark.lazy import LazySession
from unshard.spark.worker_process import JobData, counted, settle
from unshard.sync.batch.plan import BatchPlan
from unshard.sync.batch.row_counts import LedgerReport, add_up, applied_chunks
from unshard.sync.batch.shipped_log import carried
from unshard.sync.steps.pipeline import applied_share
from unshard.target.writer import break_off

_ENCODED = (
    "target int, table int, op tinyint, seq bigint, key binary, old_key binary, row binary, ordered boolean, part int"
)
_REPORT = "report binary, events binary"
_MARKED = re.compile(MARK + r"(\{.*\})")


def run_batch(session: LazySession, plan: BatchPlan, tag: str | None = None) -> list[LedgerReport]:
    """Run the batch and return its reports. May be run again: receipts skip the chunks that are applied.

    A small batch does not need the session, and does not start it. If executors don't see the relay log, its bytes are
    sent with the job. Raises the UnshardError of a task, or EngineError if Spark itself fails or `interrupt_batch`
    ended the batch.
    """
    if plan.here:
        return _checked([_run_here(plan)])
    spark = session.get()
    if not sees(spark, Path(plan.ranges[0].path).parent.parent):
        return _checked(_carried(spark, plan, tag))
    return _checked(_run(spark, plan, run_attempt, tag))


def interrupt_batch(session: LazySession, tag: str, writer: str) -> None:
    """End the batch that runs under the tag as jobs, or in this process by connections of `writer`.

    Any thread may call it. A batch that begins later is not ended.
    """
    session.interrupt(tag)
    ended = _ends.get(writer)
    if ended is not None:
        ended.set()
        break_off(writer)


_ends: dict[str, Event] = {}
"""By the owner of the connections of each batch that runs in this process: set to end it."""


def _run_here(plan: BatchPlan) -> LedgerReport:
    """Run the only task of a small batch in this thread.

    When it has to end, its connection is closed and it tries nothing again.
    """
    _ends[plan.writer] = ended = Event()
    try:
        with given_up_by(ended):
            report = applied_share(plan)
    except Exception as error:
        raise EngineError("ENGINE-002", cause=f"{type(error).__name__}: {error}", values={"task": "batch"}) from error
    finally:
        del _ends[plan.writer]
    if report.error is not None and ended.is_set() and (found := error_from_dict(report.error)).retryable:
        raise EngineError("ENGINE-002", cause=str(found), values={"task": "batch"})
    return report


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
    """Run the batch for executors that don't see the relay log: its bytes are sent with the job, once for all tasks.

    Each slice of a large transaction is a separate job, so that no job carries more than one slice.
    """
    if plan.shuffled:
        return _run(spark, carried(plan), run_attempt, tag)
    total: dict[int, LedgerReport] = {}
    before = plan.before
    for ranges in plan.slices():
        one = carried(replace(plan, ranges=ranges, sliced=False, before=before))
        bare = replace(one, ranges=())
        reports = _checked(_run(spark, bare, CarryingAttempt(one.ranges), tag))
        chunks = applied_chunks(reports)
        before = tuple(chunks[part] for part in range(plan.shape.partitions))
        total = {report.share: _joined(total.get(report.share), report) for report in reports}
    return list(total.values())


def _joined(before: LedgerReport | None, report: LedgerReport) -> LedgerReport:
    if before is None:
        return report
    seconds = dict(Counter(before.seconds) + Counter(report.seconds))
    ledger = add_up([before.ledger, report.ledger])
    return replace(report, seen=before.seen + report.seen, ledger=ledger, seconds=seconds)


def _shuffled(spark: SparkSession, plan: BatchPlan) -> list[LedgerReport]:
    try:
        with job_data(spark, plan) as data:
            found = _exchanged(spark, data, len(plan.ranges), plan.shape.partitions)
    except Exception as error:
        known = _MARKED.search(str(error))
        if known is not None:
            raise error_from_dict(json.loads(known[1])) from error
        raise failure(spark, "batch", error) from error
    bring_home(found.column("events").to_pylist())
    return [pickle.loads(report) for report in found.column("report").to_pylist()]


def _exchanged(spark: SparkSession, data: JobData, ranges: int, partitions: int) -> pa.Table:
    """Run the job of a shuffled batch, whose plan is in `data`. Return the report and the counts of each partition."""

    def before(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = data.read()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from decode_range(plan, number)

    def after(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark declares every field nullable
        received = [pa.RecordBatch.from_arrays(batch.columns, schema=ENCODED_SCHEMA) for batch in batches]
        changes = pa.Table.from_batches(received, ENCODED_SCHEMA).sort_by(LOG_ORDER).combine_chunks()
        report = apply_partition(data.read(), changes)
        columns = [pa.array([pickle.dumps(report)], pa.binary()), pa.array([counted()], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["report", "events"])
        settle()

    return (
        spark.range(0, ranges, 1, ranges)
        .mapInArrow(before, _ENCODED)
        .repartitionById(partitions, "part")
        .mapInArrow(after, _REPORT)
        .toArrow()
    )
