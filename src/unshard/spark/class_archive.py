"""Writing of the class archive from which the JVM of every session loads Spark's classes.

Run it with `python -m unshard.spark.class_archive`.

Without it each start loads some ten thousand classes from 280 jars, one by one, which takes more than half of its time.
`make setup` runs this module once.

Spark names one jar twice in its class path. Java 17 accepts an archive for such a path. Java 21 writes one and then
refuses it ("shared class paths mismatch"); no archive is kept there, and a start takes some seconds longer.
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
_A_CLASS_OF_SPARK = "org.apache.spark.deploy.SparkSubmit"


def write() -> None:
    """Run small jobs of each kind in a session, and have its JVM write the classes that it used when it ends.

    The archive is written as a whole or not at all, and only if this Java uses it. An existing archive is kept. Raises
    OSError if the JVM wrote none.
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
                java, class_path = _started_as(gateway.proc.pid)
                try:
                    _work(session)
                finally:
                    gateway.shutdown()
                    _ended(gateway.proc)
        if is_used(java, class_path, fresh):
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def is_used(java: str, class_path: str, archive: Path) -> bool:
    """Return whether this Java, started with that class path, loads Spark's classes from the archive."""
    switches = [*JAVA_OPTIONS.split(), f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:class+load:stdout"]
    command = [java, *switches, "-cp", class_path, _A_CLASS_OF_SPARK, "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    return any(_A_CLASS_OF_SPARK in line and "shared objects file (top)" in line for line in told)


def _started_as(jvm: int) -> tuple[str, str]:
    """Return the program and the class path of one of Spark's JVMs."""
    words = Path(f"/proc/{jvm}/cmdline").read_text(encoding="utf-8").split("\0")
    return words[0], words[words.index("-cp") + 1]


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
    write()
