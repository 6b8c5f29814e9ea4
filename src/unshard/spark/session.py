"""One Spark session a process, quiet on the terminal and with nothing that two attempts could disagree on."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pyspark
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.sql import SparkSession

from unshard.errors import EngineError

Session: TypeAlias = SparkSession
"""The session's type, for those who wire it and import no pyspark."""

LOCAL_CONF: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "768m",
    "spark.scheduler.mode": "FAIR",
    "spark.python.worker.reuse": "true",
    "spark.python.use.daemon": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.cleaner.periodicGC.interval": "10min",
}
"""Settings for `local[…]`: a small heap (rows live in Python), no adaptive plans, no listening console."""

JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true"
"""Of the JVM of `local[…]`. Its C1 compiler alone is enough for what it does and leaves the second core to the data."""

TASK_ATTEMPTS = 4
"""As a cluster has by default. Every task may run again."""


@contextmanager
def spark_session(master: str, conf: Mapping[str, str], log_file: Path) -> Iterator[SparkSession]:
    """The session for a run; stopped at the end. What Spark and the JVM print goes to `log_file`.

    Executors run this very interpreter. User settings in `conf` win over `LOCAL_CONF`. Raises EngineError
    ENGINE-001 where Spark can't be started (no Java, master out of reach).
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_HOME", str(_installed()))
    builder = SparkSession.builder.appName("unshard")
    if master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        builder = builder.master(_with_attempts(master))
        for name, value in LOCAL_CONF.items():
            builder = builder.config(name, value)
        builder = builder.config("spark.driver.extraJavaOptions", f"{JAVA_OPTIONS} {archive_options(class_archive())}")
        builder = builder.config("spark.sql.warehouse.dir", str(log_file.parent / "spark-warehouse"))
    for name, value in conf.items():
        builder = builder.config(name, value)
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with _child_stderr_to(log_file):
        try:
            session = builder.getOrCreate()
        except Exception as error:
            raise EngineError(
                "ENGINE-001", cause=str(error).strip()[:500], values={"master": master, "log": str(log_file)}
            ) from error
    # it would print a traceback when the JVM dies, which the job that waits for it tells as an error
    AccumulatorTCPServer.handle_error = lambda *about: None
    with gateway_log_to(log_file):
        try:
            yield session
        finally:
            if lives(session):
                session.stop()


def lives(session: Session) -> bool:
    """Whether Spark still answers. Without its JVM every call fails, `stop` too."""
    try:
        session.conf.get("spark.master", "")  # the version is kept by the session, this is asked for
    except Exception:  # noqa: BLE001 - whatever py4j or gRPC says of an end that is gone
        return False
    return True


def failure(session: Session, task: str, cause: str) -> EngineError:
    """What a job's exception becomes: ENGINE-003 where Spark itself is gone, else ENGINE-002."""
    if lives(session):
        return EngineError("ENGINE-002", cause=cause, values={"task": task})
    return EngineError("ENGINE-003", values={"task": task})


def class_archive() -> Path:
    """The file with Spark's classes of this environment, if there is one (see `unshard.spark.class_archive`)."""
    return Path(sys.prefix).resolve() / "share" / "unshard" / f"spark-{pyspark.__version__}.jsa"


def archive_options(archive: Path) -> str:
    """Java's switches to start from that archive, in half the time; none where it isn't there.

    A Java that didn't write it goes on without it, and says nothing of that.
    """
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds*=off" if archive.exists() else ""


def slots(session: Session) -> int:
    """How many tasks the session runs at once."""
    return int(session.sparkContext.defaultParallelism)


def _with_attempts(master: str) -> str:
    """`local[n]` as `local[n,TASK_ATTEMPTS]`: by itself a local master gives a job up when one worker dies."""
    return re.sub(r"^local\[(\d+|\*)\]$", rf"local[\1,{TASK_ATTEMPTS}]", master)


def _installed() -> Path:
    """Where Spark is, with no link on the way: to Java the archive is of other classes where their path differs."""
    return Path(pyspark.__file__).parent.resolve()


@contextmanager
def gateway_log_to(path: Path) -> Iterator[None]:
    """What py4j logs goes to the file: of a call that the JVM's death cut off it would print a traceback.

    It logs by names of its own and by the root logger, which prints where it has no handler.
    """
    root, handler = logging.getLogger(), logging.FileHandler(path, encoding="utf-8")
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


@contextmanager
def _child_stderr_to(path: Path) -> Iterator[None]:
    """Children started meanwhile (the JVM, and through it the Python workers) inherit the file as stderr."""
    kept = os.dup(2)
    sys.stderr.flush()
    with path.open("ab") as sink:
        os.dup2(sink.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
