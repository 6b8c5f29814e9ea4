"""One Spark session a process, quiet on the terminal and with nothing that two attempts could disagree on."""

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
from pyspark.sql import SparkSession

from unshard.config.redact import is_secret
from unshard.errors import EngineError
from unshard.log import logger
from unshard.log.rotation import kept_small
from unshard.spark import address, daemon
from unshard.spark.address import check_java, is_remote, local_slots
from unshard.spark.alive import is_connect, lives, setting
from unshard.spark.survey import survey

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

WORKER_CONF: Mapping[str, str] = {
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_ARENA_MAX": "1",
}
"""Of Python workers: one heap for Arrow and the rest gives memory back between batches. A third less than with two."""

JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true"
"""Of the JVM of `local[…]`. Its C1 compiler alone is enough for what it does and leaves the second core to the data."""

TASK_ATTEMPTS = 4
"""As a cluster has by default. Every task may run again."""

RECONNECTS, RECONNECT_MS = 12, 5_000
"""How often a Spark Connect server that does not answer is asked again, at most so long apart: for 45 seconds."""

_ADDRESSES = frozenset({"spark.driver.host", "spark.driver.bindAddress"})


SQL_CONF: Mapping[str, str] = {
    name: text for name, text in LOCAL_CONF.items() if name.startswith("spark.sql.") and "sql.ui" not in name
}
"""The part of it that a session of somebody else's server may set for itself."""

SLOTS = "unshard.slots"
"""The session's own note of how many tasks it runs at once."""


@contextmanager
def spark_session(
    master: str, conf: Mapping[str, str], log_file: Path, *, python: str = "", archives: Sequence[str] = ()
) -> Iterator[SparkSession]:
    """The session for a run; stopped at the end. What Spark and the JVM print goes to `log_file`.

    `master` is a Spark master, or a Spark Connect server as `sc://…`. Executors run the interpreter `python`, by
    default this very one; `archives` are unpacked where they run. User settings in `conf` win over our own. On a
    cluster the executors are looked at before anything else.

    Raises EngineError: ENGINE-012 where Java is missing, ENGINE-001 where Spark can't be started, 004 where
    the master or server is out of reach, and
    what `survey` raises.
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
    os.environ.setdefault("SPARK_HOME", str(_installed()))
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
    with _child_stderr_to(log_file):
        # what it is started with stands on its command line, for everyone on the machine to see
        SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(told))
        session = SparkSession.builder.config(map=settings).getOrCreate()
        _outlast_signals()
    # it would print a traceback when the JVM dies, which the job that waits for it tells as an error
    AccumulatorTCPServer.handle_error = lambda *about: None
    return session


def _spelling() -> dict[str, str]:
    """What Java and its Python workers are told so that they spell names of files as this process does: Java can't work
    in a folder whose name its locale can't spell."""
    alike = sys.getfilesystemencoding() != "utf-8" or locale.getencoding().lower() == "utf-8"
    return {} if alike else {"LC_ALL": "C.UTF-8"}


def _outlast_signals() -> None:
    """Let the JVM go on through a signal that was sent to all of the process's group: it ends when this process does,
    which finishes first what is in hand. (Of SIGINT pyspark sees to it, the same way.)"""
    try:
        system = SparkContext._jvm.sun.misc
        for name in ("TERM", "HUP"):
            system.Signal.handle(system.Signal(name), system.SignalHandler.SIG_IGN)
    except Exception as error:  # noqa: BLE001 - a Java without them ends by the signal, which loses nothing
        logger("worker").warning("Spark's Java does not outlast signals", error=str(error)[:200])


def _remote(url: str, conf: Mapping[str, str], archives: Sequence[str]) -> SparkSession:
    """A session of a Spark Connect server, of its own even where one process has several."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # the error that follows tells it
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
    elif lives(session):
        session.stop()
    else:
        _forget()


def _forget() -> None:
    """Let go of a JVM that is gone, so that this process may start another: pyspark keeps the first one it had."""
    SparkSession._instantiatedSession = None
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None


def class_archive() -> Path:
    """The file with Spark's classes of this environment, if there is one (see `unshard.spark.class_archive`)."""
    return Path(sys.prefix).resolve() / "share" / "unshard" / f"spark-{pyspark.__version__}.jsa"


def archive_options(archive: Path) -> str:
    """Java's switches to start from that archive, in half the time; none where it isn't there.

    A Java that didn't write it goes on without it, and says nothing of that.
    """
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds*=off" if archive.exists() else ""


def slots(session: Session) -> int:
    """How many tasks the session runs at once, as found at its start."""
    return int(setting(session, SLOTS))


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
