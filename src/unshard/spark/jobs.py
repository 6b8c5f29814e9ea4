"""Runs lists of tasks as Spark jobs, one task for each payload, with the results in order.

Jobs are tagged, so that another thread can end them. The module checks whether Spark still answers, and turns a job's
exception into an error of the catalogue.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
from pyspark.sql import SparkSession

from unshard.errors import EngineError
from unshard.metrics.events import EVENTS
from unshard.spark.job_data import job_data
from unshard.spark.worker_process import JobData, counted, settle

_LOST = re.compile(
    r"UNAVAILABLE|INVALID_HANDLE\.|SESSION_(?:CLOSED|CHANGED|NOT_FOUND)"
    r"|NO_ACTIVE_SESSION|closed channel|RETRIES_EXCEEDED"
)
_BARRIER = re.compile(r"barrier.*dynamic|dynamic.*barrier", re.IGNORECASE | re.DOTALL)


def is_connect(session: SparkSession) -> bool:
    """Return whether the session is one of a Spark Connect server, without a JVM of this process."""
    return not isinstance(session, SparkSession)


def lives(session: SparkSession) -> bool:
    """Return whether Spark still answers and takes jobs. Without its JVM or its server every call fails, `stop` too.

    Spark may also stop its context in a JVM that lives on: after a fatal error, or when its cluster has gone.
    """
    try:
        session.conf.get("spark.master", "")  # the session caches its version, but asks Spark for this
        return is_connect(session) or not session.sparkContext._jsc.sc().isStopped()
    except Exception:  # noqa: BLE001 - whatever py4j or gRPC raises when the other side is gone
        return False


def setting(session: SparkSession, name: str) -> str:
    """Return a setting of the session; "" if it has none.

    Asks Spark, so it raises EngineError as `failure` makes it.
    """
    try:
        return str(session.conf.get(name, ""))
    except Exception as error:
        raise failure(session, f"look up {name}", error) from error


def failure(session: SparkSession, task: str, error: Exception) -> EngineError:
    """Return the error for a job's exception.

    ENGINE-003 or 009 if Spark itself has ended, 010 for a barrier that it does not support, otherwise ENGINE-002.
    """
    text = str(error)
    cause, values = root_cause(text), {"task": task}
    if is_connect(session):
        if _LOST.search(text):
            return EngineError("ENGINE-009", cause=cause, values=values)
    elif not lives(session):
        return EngineError("ENGINE-003", values=values)
    if _BARRIER.search(text):
        return EngineError("ENGINE-010", cause=cause)
    return EngineError("ENGINE-002", cause=cause, values=values)


def root_cause(text: str) -> str:
    """Return the last line of the Python traceback that Spark wraps into its own error."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("\tat ", "  File"))]
    errors = [line for line in lines if "Error" in line or "Exception" in line]
    return (errors or lines or [""])[-1].strip()[:500]


@contextmanager
def tagged(spark: SparkSession, tag: str | None) -> Iterator[None]:
    """Tag the jobs that this thread starts within the block, so that `interrupt` can end them; None: no tag."""
    if tag is None:
        yield
        return
    # other threads don't know the tags of a classic session, but they know those of its context
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
        with suppress(Exception):  # if the server is gone, the job that waits for it reports that
            spark.interruptTag(tag)
    elif lives(spark):
        spark.sparkContext.cancelJobsWithTag(tag)


Task = Callable[[bytes], bytes]
WAVE = 256
"""The most payloads of one job, because all of them are sent to each of its tasks."""

BARRIER_ATTEMPTS = 3
_LOST_BARRIER = "Could not recover from a failed barrier"

_RESULT = pa.schema([("id", pa.int64()), ("result", pa.binary()), ("events", pa.binary())])
_RESULT_SQL = "id long, result binary, events binary"
_PYTHON = "spark.sql.execution.pyspark.python"


def run_tasks(
    spark: SparkSession, payloads: Sequence[bytes], task: Task, *, barrier: bool = False, tag: str | None = None
) -> list[bytes]:
    """Run `task(payload)` once for each payload in Spark's Python workers. Returns the results in the payloads' order.

    `task` must be importable by name, and running it again must be safe: Spark retries lost tasks and may speculate.
    Known failures are returned in the result. An exception of a task fails the job with EngineError ENGINE-002, the
    death of Spark's JVM with ENGINE-003, the loss of a Spark Connect session with ENGINE-009.

    With `barrier` all tasks run at the same time (which needs as many slots as payloads). Where a process of such a job
    dies, all of its tasks are run again, BARRIER_ATTEMPTS times in all. Jobs with a `tag` can be ended by `interrupt`.
    """
    results: list[bytes] = []
    with tagged(spark, tag):
        for start in range(0, len(payloads), WAVE):
            results += _run_wave(spark, payloads[start : start + WAVE], task, BARRIER_ATTEMPTS if barrier else 0)
    return results


def _run_wave(spark: SparkSession, payloads: Sequence[bytes], task: Task, barriers: int) -> list[bytes]:
    """Run one job; a barrier stage, if `barriers` is the number of attempts that are left."""
    count, barrier = len(payloads), barriers > 0
    try:
        with job_data(spark, (task, payloads)) as data:
            found = _collected(spark, data, count, barrier=barrier)
    except Exception as error:
        if barriers > 1 and _lost_a_process(str(error)) and lives(spark):
            return _run_wave(spark, payloads, task, barriers - 1)
        raise failure(spark, _name(task), error) from error
    bring_home(events for _, _, events in found)
    by_number = {number: result for number, result, _ in found}
    return [by_number[number] for number in range(count)]


def _collected(spark: SparkSession, data: JobData, count: int, *, barrier: bool) -> list[tuple[int, bytes, bytes]]:
    """Run a job of `count` tasks. Return the number of each, its result and its counts, in any order."""

    def numbered(number: int, _: Iterable[int]) -> Iterator[tuple[int, bytes, bytes]]:
        task, payloads = data.read()
        yield number, task(payloads[number]), counted()
        settle()

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for row in numbered(number, ()):
                    yield pa.RecordBatch.from_pylist([dict(zip(_RESULT.names, row, strict=True))], _RESULT)

    if not barrier and _has_own_context(spark):
        return list(spark.sparkContext.parallelize(range(count), count).mapPartitionsWithIndex(numbered).collect())
    frame = spark.range(0, count, 1, count).mapInArrow(body, _RESULT_SQL, barrier=barrier)
    return [tuple(row.values()) for row in frame.toArrow().to_pylist()]


def _lost_a_process(text: str) -> bool:
    """Return whether Spark gave up a barrier stage because of a lost process, not of an exception of a task.

    Spark runs tasks of other stages again itself.
    """
    return _LOST_BARRIER in text and "Traceback (most recent call last)" not in text


def _has_own_context(spark: SparkSession) -> bool:
    """Return whether tasks of the session's context run the same interpreter as the session's functions.

    A job of the context takes half the time of one that is planned as a query (75 ms instead of 150), for which a small
    batch has to wait. Spark Connect has no context.
    """
    return not is_connect(spark) and setting(spark, _PYTHON) in ("", spark.sparkContext.pythonExec)


def bring_home(counted: Iterable[bytes]) -> None:
    """Add the tasks' counts to those of the task and source that this thread works for; called in the driver."""
    for events in counted:
        EVENTS.bring_home(pickle.loads(events))


def _name(task: Task) -> str:
    return getattr(task, "__name__", type(task).__name__)
