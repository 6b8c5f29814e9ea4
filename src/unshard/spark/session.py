"""One Spark session for each process, silent on the terminal.

It has no settings that could make two attempts of a task differ.

A session's first job takes seconds to start Python processes, to import what tasks need and to load the JVM's classes.
All of that remains for later jobs, so `warm` runs a first job that does nothing.
"""

from __future__ import annotations

import locale
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from unshard.config.redact import is_secret
from unshard.errors import EngineError
from unshard.log import logger
from unshard.log.rotation import kept_small
from unshard.spark import address, daemon
from unshard.spark.address import check_java, is_remote, local_slots
from unshard.spark.jobs import is_connect, run_tasks, setting
from unshard.spark.survey import survey
from unshard.spark.worker_process import load

Session: TypeAlias = SparkSession
"""The session's type, for modules that pass it on without importing pyspark."""

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

WORKER_CONF: Mapping[str, str] = {
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_ARENA_MAX": "1",
}
"""Settings of Python workers.

With one heap for Arrow and everything else, memory is returned between batches: a third less than with two.
"""

JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true"
"""Options of the JVM of `local[…]`.

The C1 compiler alone suffices for its work, and leaves the second core to the data.
"""

TASK_ATTEMPTS = 4
"""The attempts of a task, as a cluster has by default. Every task may run again."""

RECONNECTS, RECONNECT_MS = 12, 5_000
"""How often a silent Spark Connect server is asked again, and the longest pause in between: 45 seconds in all."""

_ADDRESSES = frozenset({"spark.driver.host", "spark.driver.bindAddress"})


SQL_CONF: Mapping[str, str] = {
    name: text for name, text in LOCAL_CONF.items() if name.startswith("spark.sql.") and "sql.ui" not in name
}
"""The part of `LOCAL_CONF` that a session of a foreign server may set for itself."""

SLOTS = "unshard.slots"
"""The setting in which the session stores how many tasks it runs at a time."""


@contextmanager
def spark_session(
    master: str, conf: Mapping[str, str], log_file: Path, *, python: str = "", archives: Sequence[str] = ()
) -> Iterator[SparkSession]:
    """Open the session for a run; it is stopped at the end. The output of Spark and the JVM goes to `log_file`.

    `master` is a Spark master, or a Spark Connect server as `sc://…`. Executors run the interpreter `python`, by
    default that of this process; `archives` are unpacked where they run. The user's settings in `conf` take precedence
    over our own. On a cluster the executors are checked before anything else.

    Raises EngineError: ENGINE-012 if Java is missing, ENGINE-001 if Spark can't be started, 004 if the master or server
    is out of reach, and the errors of `survey`.
    """
    check_java(master)
    address.check_reachable(master)
    own = {**conf, "spark.sql.execution.pyspark.python": python or sys.executable}
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with gateway_log_to(log_file), kept_small(log_file):
        try:
            session = _remote(master, own, archives) if is_remote(master) else _classic(master, own, archives, log_file)
        except EngineError:
            raise
        except Exception as error:
            cause = address.without_secrets(str(error).strip(), master, conf)[:500]
            values = {"master": address.shown(master), "log": str(log_file)}
            raise EngineError("ENGINE-001", cause=cause, values=values) from error
        try:
            session.conf.set(SLOTS, local_slots(master) or survey(session))
            yield session
        finally:
            _stop(session)


def _classic(master: str, conf: Mapping[str, str], archives: Sequence[str], log_file: Path) -> SparkSession:
    os.environ.update(_spelling())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_HOME", str(spark_home()))
    settings = {"spark.app.name": "unshard", "spark.master": _with_attempts(master)}
    loopback = address.is_loopback(master)
    if loopback:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings |= {
        name: value for name, value in {**LOCAL_CONF, **WORKER_CONF}.items() if loopback or name not in _ADDRESSES
    }
    settings["spark.driver.extraJavaOptions"] = f"{JAVA_OPTIONS} {archive_options(class_archive())}"
    if master.startswith("local"):
        settings["spark.python.daemon.module"] = daemon.MODULE
    settings["spark.sql.warehouse.dir"] = str(log_file.parent / "spark-warehouse")
    if archives:
        settings["spark.archives"] = ",".join(archives)
    settings |= conf
    told = [(name, value) for name, value in settings.items() if not is_secret(name)]
    if SparkContext._gateway is None:
        with log_file.open("ab") as sink:  # also the Python workers write there: they are children of the JVM
            # the settings at the start are on the JVM's command line, where everyone on the machine can see them
            gateway = launch_gateway(SparkConf(loadDefaults=False).setAll(told), {"stderr": sink})
        SparkContext._ensure_initialized(gateway=gateway)
    session = SparkSession.builder.config(map=settings).getOrCreate()
    _outlast_signals()
    # it would print a traceback when the JVM dies, which the waiting job reports as an error
    AccumulatorTCPServer.handle_error = lambda *about: None
    return session


def _spelling() -> dict[str, str]:
    """Return environment variables that make Java and its Python workers encode file names as this process does.

    Java can't work in a folder whose name its locale can't encode.
    """
    alike = sys.getfilesystemencoding() != "utf-8" or locale.getencoding().lower() == "utf-8"
    return {} if alike else {"LC_ALL": "C.UTF-8"}


def _outlast_signals() -> None:
    """Make the JVM ignore signals that are sent to the whole process group, so that it ends with this process.

    This process first finishes the work under way. (For SIGINT pyspark does the same.)
    """
    try:
        system = SparkContext._jvm.sun.misc
        for name in ("TERM", "HUP"):
            system.Signal.handle(system.Signal(name), system.SignalHandler.SIG_IGN)
    except Exception as error:  # noqa: BLE001 - a Java without them ends by the signal, which loses nothing
        logger("worker").warning("Spark's Java does not outlast signals", error=str(error)[:200])


def _remote(url: str, conf: Mapping[str, str], archives: Sequence[str]) -> SparkSession:
    """Open a session of a Spark Connect server. It is a new one even if the process has several."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # the error that follows says so
    session = RemoteSession(url)
    session.client.set_retry_policies([DefaultPolicy(max_retries=RECONNECTS, max_backoff=RECONNECT_MS)])
    for name, value in {**SQL_CONF, **conf}.items():
        session.conf.set(name, value)
    if archives:
        session.addArtifacts(*archives, archive=True)
    if session.version != pyspark.__version__:
        values = {"differences": f"Spark is {session.version} there and {pyspark.__version__} here"}
        raise EngineError("ENGINE-005", values=values)
    return session


def _stop(session: Session) -> None:
    if is_connect(session):
        session.client.set_retry_policies([])  # a server that is gone has nothing to release
        session.stop()
        return
    try:
        session.stop()
    except Exception:  # noqa: BLE001 - whatever py4j raises when the JVM is gone
        _forget()


def _forget() -> None:
    """Drop a JVM that has ended, so that this process may start another. pyspark would keep its first one."""
    SparkSession._instantiatedSession = None
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None


def class_archive() -> Path:
    """Return the path of this environment's archive of Spark's classes.

    The file may not exist; `unshard.spark.class_archive` writes it.
    """
    return Path(sys.prefix).resolve() / "share" / "unshard" / f"spark-{pyspark.__version__}.jsa"


def archive_options(archive: Path) -> str:
    """Return Java's options to start from that archive, which halves the time; none if it doesn't exist.

    A Java that did not write the archive starts without it, silently.
    """
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds*=off" if archive.exists() else ""


def slots(session: Session) -> int:
    """Return how many tasks the session runs at a time, as found at its start."""
    return int(setting(session, SLOTS))


def _with_attempts(master: str) -> str:
    """Return `local[n]` as `local[n,TASK_ATTEMPTS]`.

    Otherwise a local master gives up a job as soon as one worker dies.
    """
    return re.sub(r"^local\[(\d+|\*)\]$", rf"local[\1,{TASK_ATTEMPTS}]", master)


def spark_home() -> Path:
    """Return Spark's folder, with links resolved: Java accepts the class archive only for the same path."""
    return Path(pyspark.__file__).parent.resolve()


@contextmanager
def gateway_log_to(path: Path) -> Iterator[None]:
    """Send py4j's log to the file, because it prints a traceback for a call that the JVM's death cut off.

    py4j logs by names of its own and by the root logger, which prints if it has no handler.
    """
    root, handler = logging.getLogger(), logging.FileHandler(path, encoding="utf-8")
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


def warm(session: Session) -> None:
    """Run one empty task for each slot. Raises EngineError as every job does."""
    run_tasks(session, [b""] * slots(session), load)
