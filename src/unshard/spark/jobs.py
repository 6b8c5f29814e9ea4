"""Names for running jobs, by which another thread can end them."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
from pyspark.sql import SparkSession

from unshard.metrics.events import EVENTS
from unshard.spark.alive import failure, is_connect, lives


@contextmanager
def tagged(spark: SparkSession, tag: str | None) -> Iterator[None]:
    """Jobs that this thread starts meanwhile bear the tag, so that `interrupt` can end them; None: no tag."""
    if tag is None:
        yield
        return
    # a classic session's own tags are unknown to other threads, those of its context are not
    jobs = spark if is_connect(spark) else spark.sparkContext
    add, remove = (jobs.addTag, jobs.removeTag) if is_connect(spark) else (jobs.addJobTag, jobs.removeJobTag)
    try:
        add(tag)
    except Exception as error:
        raise failure(spark, tag, error) from error
    try:
        yield
    finally:
        if is_connect(spark) or lives(spark):
            remove(tag)


def interrupt(spark: SparkSession, tag: str) -> None:
    """End the running jobs with that tag; their `run_tasks` raises EngineError. Any thread may call it."""
    if is_connect(spark):
        with suppress(Exception):  # the job that waits for a server that is gone tells of it
            spark.interruptTag(tag)
    elif lives(spark):
        spark.sparkContext.cancelJobsWithTag(tag)


# Work shipped to Spark: a list of payloads, one task each, results in order.


Task = Callable[[bytes], bytes]
WAVE = 256
"""Payloads a job carries at most: they travel in the job's closure."""

_RESULT = "id long, result binary, events binary"
_settled: set[int] = set()
"""In a worker process: at how many loaded modules it has settled."""


def run_tasks(
    spark: SparkSession, payloads: Sequence[bytes], task: Task, *, barrier: bool = False, tag: str | None = None
) -> list[bytes]:
    """Run `task(payload)` once for each payload in Spark Python workers; the results in the payloads' order.

    `task` must be importable by name and safe to run again: Spark retries lost tasks and may speculate.
    Known failures travel in the result; an exception of a task fails the job with EngineError ENGINE-002, the death of
    Spark's JVM with ENGINE-003, the loss of a Spark Connect session with ENGINE-009.
    With `barrier` all tasks run together (needs as many slots as payloads) and a failure reruns all. Jobs with a
    `tag` can be ended by `interrupt`.
    """
    results: list[bytes] = []
    with tagged(spark, tag):
        for start in range(0, len(payloads), WAVE):
            results += _run_wave(spark, payloads[start : start + WAVE], task, barrier=barrier)
    return results


def _run_wave(spark: SparkSession, payloads: Sequence[bytes], task: Task, *, barrier: bool) -> list[bytes]:
    count = len(payloads)

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result = task(payloads[number])
                columns = [pa.array([number], pa.int64()), pa.array([result], pa.binary()), counted_here()]
                yield pa.RecordBatch.from_arrays(columns, ["id", "result", "events"])
        settle()

    try:
        frame = spark.range(0, count, 1, count).mapInArrow(body, _RESULT, barrier=barrier)
        found = frame.toArrow().to_pylist()
    except Exception as error:
        raise failure(spark, _name(task), error) from error
    bring_home(row["events"] for row in found)
    by_number = {row["id"]: row["result"] for row in found}
    return [by_number[number] for number in range(count)]


def counted_here() -> pa.Array:
    """In a task: what this worker process has counted and not told yet, as one binary value."""
    return pa.array([pickle.dumps(EVENTS.take())], pa.binary())


def settle() -> None:
    """In a task, at its end: leave modules and what else stays in this worker process to no later garbage collection.

    pyspark collects all generations after every task, which takes longer than a small task. Does something only where
    modules have been loaded since.
    """
    loaded = len(sys.modules)
    if loaded not in _settled:
        gc.collect()
        gc.freeze()
        _settled.add(loaded)


def bring_home(counted: Iterable[bytes]) -> None:
    """In the driver: add what tasks have counted to the counts of the task and source that this thread works for."""
    for events in counted:
        EVENTS.bring_home(pickle.loads(events))


def _name(task: Task) -> str:
    return getattr(task, "__name__", type(task).__name__)
