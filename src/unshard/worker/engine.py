"""The one Spark session of a worker process, started when the first job needs it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread, Timer

from unshard.config.task import SparkConfig
from unshard.errors import ClusterError, EngineError, UnshardError
from unshard.log import logger
from unshard.spark.address import local_slots, shown, without_secrets
from unshard.spark.jobs import lives
from unshard.spark.lazy import LazySession, started
from unshard.spark.session import Session, spark_session, warm

NOT_STARTED = "ENGINE-013"
"""The code of the error of a job that would start Spark although the run is being stopped."""

IDLE_SECONDS = 60.0
"""After this time Spark is started even if no job needs it.

The first large batch does not wait for it then, and settings with which it can't start are reported.
"""


@dataclass(slots=True)
class Engine:
    """The Spark session of a process, which all of its subtasks share. Any thread may call it; `close` ends Spark.

    `log_file` gets the output of Spark and its JVM. Once `stop` is set no session is started: a request for one raises
    EngineError `NOT_STARTED`. `tell` is called with a line when Spark starts; `warn` with the error of a start in the
    background.
    """

    log_file: Path
    stop: Event = field(default_factory=Event)
    tell: Callable[[str], None] = lambda line: None
    warn: Callable[[UnshardError], None] = lambda error: None
    _config: SparkConfig | None = None
    _session: Session | None = None
    _asked_for: bool = False
    _closed: bool = False
    _timer: Timer | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _lock: Lock = field(default_factory=Lock)

    def begin(self, wanted: SparkConfig) -> None:
        """Start the session in the background, with the Python processes of its jobs. Returns at once.

        A failure is logged and given to `warn`: who needs the session tries again. The session makes way for a task
        that wants another one.
        """
        Thread(target=self._begin, args=(wanted,), name="spark ahead", daemon=True).start()

    def warm(self) -> None:
        """Start the Python processes of the session's jobs in the background. Called once the session is there."""
        assert self._session is not None
        Thread(target=self._warm, args=(self._session,), name="spark warm", daemon=True).start()

    def lazy(self, wanted: SparkConfig) -> LazySession:
        """Return the session for a subtask. In this process it starts with the first job, or after `IDLE_SECONDS`.

        The session of a cluster starts at once, because the cluster tells how many tasks it runs at a time. Raises
        ClusterError CLUSTER-020 as `session`, and for a cluster what `spark_session` raises.
        """
        count = local_slots(wanted.url)
        if not count:
            return started(self.session(wanted))
        with self._lock:
            self._reserve(wanted)
            if self._timer is None:
                self._timer = Timer(IDLE_SECONDS, self._begin, (wanted,))
                self._timer.daemon = True
                self._timer.start()
        return LazySession(count, local=True, start=partial(self.session, wanted), ahead=partial(self.begin, wanted))

    def session(self, wanted: SparkConfig) -> Session:
        """Return the session, which is started as `wanted` says if it is the first or if Spark itself has ended.

        Raises what `spark_session` raises if Spark can't be started, ClusterError CLUSTER-020 if a subtask has asked
        for a session with other settings: a process has one.
        """
        with self._lock:
            self._reserve(wanted)
            return self._get(wanted)

    def close(self) -> None:
        """End Spark. Idempotent; the process starts no session after it."""
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            self._stack.close()

    def _reserve(self, wanted: SparkConfig) -> None:
        """From now on the process's session is this one."""
        if self._asked_for and self._config is not None and wanted != self._config:
            runs, asked = (_described(one) for one in (self._config, wanted))
            raise ClusterError("CLUSTER-020", values={"runs": runs, "asked": asked})
        if wanted != self._config:
            self._end()
        self._asked_for, self._config = True, wanted

    def _get(self, wanted: SparkConfig) -> Session:
        if self._session is not None and not lives(self._session):
            self._end()
        return self._session if self._session is not None else self._start(wanted)

    def _start(self, wanted: SparkConfig) -> Session:
        if self._closed or self.stop.is_set():
            raise EngineError(NOT_STARTED)
        self.tell("starting Spark")
        session = spark_session(wanted.url, wanted.conf, self.log_file, python=wanted.python, archives=wanted.archives)
        try:
            self._session = self._stack.enter_context(session)
        except EngineError as error:
            if self.stop.is_set():  # the signal that stops the run has ended Spark's JVM as well
                raise EngineError(NOT_STARTED) from error
            raise
        self._config = wanted
        return self._session

    def _end(self) -> None:
        self._session = None
        self._stack.close()

    def _begin(self, wanted: SparkConfig) -> None:
        try:
            with self._lock:
                if self._session is not None or self._closed or (self._asked_for and wanted != self._config):
                    return
                session = self._get(wanted)
        except UnshardError as error:
            self._failed(error)
        else:
            self._warm(session)

    def _warm(self, session: Session) -> None:
        try:
            warm(session)
        except UnshardError as error:
            self._failed(error)
        else:
            logger("worker").info("Spark is there ahead")

    def _failed(self, error: UnshardError) -> None:
        if not (self._closed or self.stop.is_set()):
            logger("worker").warning("Spark is not there ahead", **error.to_dict())
            self.warn(error)


def _described(config: SparkConfig) -> str:
    text = f"{shown(config.url)} {dict(config.conf)} {config.python} {' '.join(config.archives)}"
    return without_secrets(text.rstrip(), config.url, config.conf)
