"""Sends the data that all tasks of a job have in common, and removes it at the job's end.

pyspark makes a broadcast of a function whose pickled form is larger than 1 MiB, and never destroys it: its file stays
in Spark's local folder until Spark ends. So large data is a broadcast of its own here, beside a small function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession

from unshard.spark.worker_process import JobData

MOST_IN_FUNCTION = 512 << 10
"""The most bytes of data that are sent with the function itself."""


@contextmanager
def job_data(session: SparkSession, value: Any) -> Iterator[JobData]:
    """Send the value to the tasks of the jobs that run within the block; their functions call `read`.

    A Spark Connect server gets functions of any size as part of a query, and keeps no file of them.
    """
    pickled = CloudPickleSerializer().dumps(value)
    if len(pickled) <= MOST_IN_FUNCTION or not isinstance(session, SparkSession):
        yield JobData(pickled)
        return
    broadcast = session.sparkContext.broadcast(pickled)
    file = Path(broadcast._path)
    try:
        yield JobData(broadcast)
    finally:
        with suppress(Exception):  # whatever py4j raises when the JVM, which had the rest of it, is gone
            broadcast.destroy()
        file.unlink(missing_ok=True)
