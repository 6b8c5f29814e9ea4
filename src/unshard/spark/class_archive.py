"""Writes the file from which the JVM of every session takes Spark's classes: `python -m unshard.spark.class_archive`.

Without it a start loads some ten thousand classes out of 280 jars, one by one, which is over half of its time. `make
setup` runs this once.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from unshard.spark.jobs import run_tasks
from unshard.spark.session import JAVA_OPTIONS, class_archive, spark_session

_WRITING_SECONDS = 300.0


def write() -> None:
    """Run small jobs of each kind in a session, and have its JVM write the classes that they took as it ends.

    The file is there whole or not at all; one that is there stays. Raises OSError where the JVM wrote none.
    """
    path = class_archive()
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    options = f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={fresh} -Xlog:disable -Xlog:all=error:stderr"
    try:
        with tempfile.TemporaryDirectory(prefix="unshard-") as folder:
            conf = {"spark.driver.extraJavaOptions": options}
            with spark_session("local[2]", conf, Path(folder) / "spark.log") as session:
                gateway = session.sparkContext._gateway
                try:
                    _work(session)
                finally:
                    gateway.shutdown()
                    _ended(gateway.proc)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _work(session: SparkSession) -> None:
    """What copies and batches ask of Spark, in little."""
    run_tasks(session, [b"1", b"2"], bytes.upper, tag="archive")
    run_tasks(session, [b"1", b"2"], bytes.upper, barrier=True)

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    frame = session.range(0, 2, 1, 2).selectExpr("CAST(id AS INT) AS part").mapInArrow(same, "part int")
    frame.repartitionById(2, "part").mapInArrow(same, "part int").toArrow()


def _ended(jvm: subprocess.Popen[bytes]) -> None:
    """Wait for the JVM, which ends when nobody holds its input, and writes then."""
    assert jvm.stdin is not None
    jvm.stdin.close()
    jvm.wait(_WRITING_SECONDS)


if __name__ == "__main__":
    write()
