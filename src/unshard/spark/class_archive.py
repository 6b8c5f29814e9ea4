"""Writing of the class archive from which the JVM of every session loads Spark's classes.

Run it with `python -m unshard.spark.class_archive`, or with a folder as argument, into which it then writes.

Without it each start loads some ten thousand classes from 280 jars, one by one, which takes more than half of its time.
`make setup` runs this module once.

Spark names one jar twice in its class path. Java 17 accepts an archive for such a path. Java 21 writes one and then
refuses it ("shared class paths mismatch"); no archive is kept there, and a start takes some seconds longer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from unshard.spark.jobs import run_tasks
from unshard.spark.session import JAVA_OPTIONS, class_archive, spark_home, spark_session

_WRITING_SECONDS = 300.0
_A_CLASS_OF_SPARK = "org.apache.spark.deploy.SparkSubmit"


def write(folder: Path | None = None) -> None:
    """Run small jobs of each kind in a session, and have its JVM write the classes that it used when it ends.

    The archive is written as a whole or not at all, into the folder or where this environment's sessions look for it.
    It stays only if this Java uses it; an existing archive that it uses is kept. Raises OSError if the JVM wrote none.
    """
    path = folder / class_archive().name if folder else class_archive()
    if path.exists() and is_used(path):
        return
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    options = f"{JAVA_OPTIONS} -XX:ArchiveClassesAtExit={fresh} -Xlog:disable -Xlog:all=error:stderr"
    try:
        with tempfile.TemporaryDirectory(prefix="unshard-") as temporary:
            conf = {"spark.driver.extraJavaOptions": options}
            with spark_session("local[2]", conf, Path(temporary) / "spark.log") as session:
                gateway = session.sparkContext._gateway
                try:
                    _work(session)
                finally:
                    gateway.shutdown()
                    _ended(gateway.proc)
        if is_used(fresh):
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def is_used(archive: Path) -> bool:
    """Return whether a JVM that Spark starts, with its class path, loads Spark's classes from the archive."""
    options = f"{JAVA_OPTIONS} -XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:class+load:stdout"
    env = {"SPARK_HOME": str(spark_home()), **os.environ, "SPARK_SUBMIT_OPTS": options}
    command = [f"{env['SPARK_HOME']}/bin/spark-submit", "--version"]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout.splitlines()
    return any(_A_CLASS_OF_SPARK in line and "shared objects file (top)" in line for line in told)


def _work(session: SparkSession) -> None:
    """Run small jobs of the kinds that copies and batches use."""
    run_tasks(session, [b"1", b"2"], bytes.upper, tag="archive")
    run_tasks(session, [b"1", b"2"], bytes.upper, barrier=True)

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    frame = session.range(0, 2, 1, 2).selectExpr("CAST(id AS INT) AS part").mapInArrow(same, "part int")
    frame.repartitionById(2, "part").mapInArrow(same, "part int").toArrow()


def _ended(jvm: subprocess.Popen[bytes]) -> None:
    """Close the JVM's input, upon which it writes the archive and ends, and wait for that."""
    assert jvm.stdin is not None
    jvm.stdin.close()
    jvm.wait(_WRITING_SECONDS)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
