"""The one Spark session of a worker process, made when the first subtask needs it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread

from unshard.config.task import SparkConfig
from unshard.errors import ClusterError, UnshardError
from unshard.log import logger
from unshard.spark.address import shown, without_secrets
from unshard.spark.alive import lives
from unshard.spark.session import Session, spark_session
from unshard.spark.warm import warm


@dataclass(slots=True)
class Engine:
    """Gives every subtask of the process the same session. Any thread may call it; `close` ends Spark.

    `log_file` takes what Spark and its JVM print.
    """

    log_file: Path
    _config: SparkConfig | None = None
    _session: Session | None = None
    _asked_for: bool = False
    _stack: ExitStack = field(default_factory=ExitStack)
    _lock: Lock = field(default_factory=Lock)

    def begin(self, wanted: SparkConfig) -> None:
        """Start the session before anybody asks for it, in a thread of its own, with the Python processes of its jobs.

        What fails is logged: who asks for the session tries again. A task that wants another one gets it still.
        """
        Thread(target=self._begin, args=(wanted,), name="spark ahead", daemon=True).start()

    def warm(self) -> None:
        """Start the Python processes of the session's jobs while its first job is prepared, in a thread of its own.

        Called once the session is there. What fails is logged: the first job meets it too.
        """
        assert self._session is not None
        Thread(target=_warmed, args=(self._session,), name="spark warm", daemon=True).start()

    def session(self, wanted: SparkConfig) -> Session:
        """The session, begun as `wanted` says where it is the first, and anew where Spark itself has ended.

        Raises what `spark_session` raises where Spark can't be started, ClusterError CLUSTER-020 where it runs by other
        settings already: a process has one.
        """
        with self._lock:
            if not self._asked_for and wanted != self._config:
                self._end()
            self._asked_for = True
            return self._get(wanted)

    def close(self) -> None:
        """Idempotent; the process makes no session after it."""
        with self._lock:
            self._stack.close()

    def _get(self, wanted: SparkConfig) -> Session:
        if self._session is not None and not lives(self._session):
            self._end()
        if self._session is None:
            session = spark_session(
                wanted.url, wanted.conf, self.log_file, python=wanted.python, archives=wanted.archives
            )
            self._session = self._stack.enter_context(session)
            self._config = wanted
        elif wanted != self._config:
            assert self._config is not None
            runs, asked = (_told(one) for one in (self._config, wanted))
            raise ClusterError("CLUSTER-020", values={"runs": runs, "asked": asked})
        return self._session

    def _end(self) -> None:
        self._session = None
        self._stack.close()

    def _begin(self, wanted: SparkConfig) -> None:
        try:
            with self._lock:
                if self._asked_for:
                    return
                session = self._get(wanted)
        except UnshardError as error:
            logger("worker").warning("Spark is not there ahead", **error.to_dict())
        else:
            _warmed(session)


def _warmed(session: Session) -> None:
    try:
        warm(session)
    except UnshardError as error:
        logger("worker").warning("Spark is not there ahead", **error.to_dict())
    else:
        logger("worker").info("Spark is there ahead")


def _told(config: SparkConfig) -> str:
    text = f"{shown(config.url)} {dict(config.conf)} {config.python} {' '.join(config.archives)}"
    return without_secrets(text.rstrip(), config.url, config.conf)
