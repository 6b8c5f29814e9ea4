"""Names for running jobs, by which another thread can end them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

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
