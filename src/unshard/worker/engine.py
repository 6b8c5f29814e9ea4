"""The one Spark session of a worker process, made when the first subtask needs it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from unshard.config.task import SparkConfig
from unshard.errors import ClusterError
from unshard.spark.address import shown, without_secrets
from unshard.spark.alive import lives
from unshard.spark.session import Session, spark_session


@dataclass(slots=True)
class Engine:
    """Gives every subtask of the process the same session. Any thread may call it; `close` ends Spark.

    `log_file` takes what Spark and its JVM print.
    """

    log_file: Path
    _config: SparkConfig | None = None
    _session: Session | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _lock: Lock = field(default_factory=Lock)

    def session(self, wanted: SparkConfig) -> Session:
        """The session, begun as `wanted` says where it is the first, and anew where Spark itself has ended.

        Raises what `spark_session` raises where Spark can't be started, ClusterError CLUSTER-020 where it runs by other
        settings already: a process has one.
        """
        with self._lock:
            if self._session is not None and not lives(self._session):
                self._session = None
                self._stack.close()
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

    def close(self) -> None:
        """Idempotent; the process makes no session after it."""
        with self._lock:
            self._stack.close()


def _told(config: SparkConfig) -> str:
    text = f"{shown(config.url)} {dict(config.conf)} {config.python} {' '.join(config.archives)}"
    return without_secrets(text.rstrip(), config.url, config.conf)
