"""A Spark session that starts with its first job.

A task that follows its source without a backlog needs no Spark: small batches run in the driver's process. The start of
Java and of Spark's Python processes costs 4 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

from unshard.run_tasks import RunTasks
from unshard.spark.address import local_slots
from unshard.spark.jobs import Task, interrupt, run_tasks, setting
from unshard.spark.session import Session, slots


class LazySession:
    """The Spark session of one subtask, which starts when it is first needed. Any thread may call its methods.

    `slots` is how many tasks it runs at a time; `local` tells whether its executors run on this machine and so see its
    folders. `start` returns the session and starts it if necessary; it may be called again. `ahead` starts the session
    without waiting for it.

    A session that has been handed out once is kept, even if it dies: a job on it then raises EngineError ENGINE-003,
    and the subtask is built anew.
    """

    def __init__(
        self, slots: int, *, local: bool, start: Callable[[], Session], ahead: Callable[[], None] = lambda: None
    ) -> None:
        self.slots = slots
        self.local = local
        self._start = start
        self._ahead = ahead
        self._session: Session | None = None
        self._lock = Lock()

    def get(self) -> Session:
        """Return the session; the first call waits until it has started. Raises what `spark_session` raises."""
        with self._lock:
            if self._session is None:
                self._session = self._start()
            return self._session

    def begin(self) -> None:
        """Start the session in the background, for a subtask that is about to run jobs. Returns at once."""
        self._ahead()

    def tasks(self, tag: str) -> RunTasks:
        """Return `run_tasks` on the session, for jobs that `interrupt` ends by the tag."""

        def run(payloads: Sequence[bytes], task: Task, *, barrier: bool = False) -> list[bytes]:
            return run_tasks(self.get(), payloads, task, barrier=barrier, tag=tag)

        return run

    def interrupt(self, tag: str) -> None:
        """End the running jobs with that tag. Does nothing if no session has been asked for yet."""
        if self._session is not None:
            interrupt(self._session, tag)


def started(session: Session) -> LazySession:
    """Return a session that runs already."""
    local = bool(local_slots(setting(session, "spark.master")))
    return LazySession(slots(session), local=local, start=lambda: session)
