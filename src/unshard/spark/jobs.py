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
from unshard.spark.alive import failure, is_connect, lives, setting


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

_RESULT = pa.schema([("id", pa.int64()), ("result", pa.binary()), ("events", pa.binary())])
_RESULT_SQL = "id long, result binary, events binary"
_PYTHON = "spark.sql.execution.pyspark.python"
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
    plain = not barrier and _has_own_context(spark)

    def one(number: int) -> tuple[int, bytes, bytes]:
        return number, task(payloads[number]), counted()

    def numbered(number: int, _: Iterable[int]) -> Iterator[tuple[int, bytes, bytes]]:
        yield one(number)
        settle()

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in map(one, batch.column(0).to_pylist()):
                yield pa.RecordBatch.from_pylist([dict(zip(_RESULT.names, row, strict=True))], _RESULT)
        settle()

    try:
        if plain:
            context = spark.sparkContext
            found = context.parallelize(range(count), count).mapPartitionsWithIndex(numbered).collect()
        else:
            frame = spark.range(0, count, 1, count).mapInArrow(body, _RESULT_SQL, barrier=barrier)
            found = [tuple(row.values()) for row in frame.toArrow().to_pylist()]
    except Exception as error:
        raise failure(spark, _name(task), error) from error
    bring_home(events for _, _, events in found)
    by_number = {number: result for number, result, _ in found}
    return [by_number[number] for number in range(count)]


def _has_own_context(spark: SparkSession) -> bool:
    """Whether tasks of the session's context run the interpreter that the session's functions run.

    A job of the context takes half the time of one that is planned as a query (75 ms for 150), which is what a small
    batch waits for. Spark Connect has no context.
    """
    return not is_connect(spark) and setting(spark, _PYTHON) in ("", spark.sparkContext.pythonExec)


def counted() -> bytes:
    """In a task: what this worker process has counted and not told yet."""
    return pickle.dumps(EVENTS.take())


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
