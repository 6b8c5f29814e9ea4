"""`unshard run`: one process that is a whole migration: Spark, a thread a source, the display, clean ends."""

from __future__ import annotations

import shlex
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread

from rich.console import Console

from unshard.checks.run import check_task, require, told
from unshard.cli.display import show
from unshard.config.files import load_source, load_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.config.task import TaskConfig
from unshard.errors import UnshardError
from unshard.log import LogSettings, configure, logger
from unshard.spark.session import spark_session
from unshard.worker.build import build_subtasks
from unshard.worker.status import SubtaskStatus
from unshard.worker.subtask import Subtask

WAIT_ON_STOP_SECONDS = 10.0
"""DM's `wait-time-on-stop`: how long a batch in hand may take to its end before it is broken off."""


def run_task(
    task_path: Path,
    source_paths: Sequence[Path],
    log_file: Path,
    console: Console,
    wait_on_stop: float = WAIT_ON_STOP_SECONDS,
) -> None:
    """Run the task until it is finished, stopped by SIGINT or SIGTERM, or failed. `wait_on_stop` is in seconds.

    Raises the UnshardError of the source that failed first, after the others have finished the batch in hand.
    """
    task = load_task(task_path)
    sources = [load_source(path) for path in source_paths]
    for notice in (*task.notices, *(notice for source in sources for notice in source.notices)):
        console.print(f"note: {notice}", markup=False, highlight=False, soft_wrap=True)
    configs = plan_subtasks(task, sources)
    configure(LogSettings(log_file))
    _check(task, configs, console)
    where, spark_log = task.spark, log_file.with_suffix(".spark.log")
    with spark_session(where.url, where.conf, spark_log, python=where.python, archives=where.archives) as spark:
        crew = Crew(build_subtasks(configs, spark), wait_on_stop)
        with _signals(crew.stop, console):
            crew.start()
            show(console, crew.readings, crew.ended)
        try:
            crew.join()
        except UnshardError as error:
            error.values.setdefault("task_file", shlex.quote(str(task_path)))
            raise
    for subtask in crew.subtasks:
        if subtask.broken_off:
            console.print(
                f"{subtask.source}: the batch in hand took over {wait_on_stop:g} s; the next start finishes it"
            )
    console.print("finished" if not crew.stop.is_set() else "stopped; the same command goes on from here")


def _check(task: TaskConfig, configs: Sequence[SubtaskConfig], console: Console) -> None:
    """The checks of `ctl check-task`: warnings are told, a failure raises CheckError."""
    report = check_task(task, configs)
    shown = [told(result, one) for result, one in report.cut().findings("warn")]
    for line in shown:
        console.print(f"warning: {line}", markup=False, highlight=False, soft_wrap=True)
    more = sum(1 for _ in report.findings("warn")) - len(shown)
    if more:
        console.print(f"warning: and {more} more; `unshard ctl check-task --warn {more + len(shown)}` shows them")
    require(report)


@dataclass(slots=True)
class Crew:
    """The threads of a run. The first failure stops the others; each has `wait_on_stop` seconds to end its batch."""

    subtasks: tuple[Subtask, ...]
    wait_on_stop: float = WAIT_ON_STOP_SECONDS
    stop: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)
    errors: list[BaseException] = field(default_factory=list)
    _threads: list[Thread] = field(default_factory=list)
    _left: int = 0
    _count: Lock = field(default_factory=Lock)

    def start(self) -> None:
        self._left = len(self.subtasks)
        for subtask in self.subtasks:
            thread = Thread(target=self._run, args=(subtask,), name=f"subtask {subtask.source}")
            self._threads.append(thread)
            thread.start()
        Thread(target=self._cancel, name="canceller", daemon=True).start()

    def join(self) -> None:
        """Wait for all threads. Raises the first failure; those of other sources are in the log."""
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def readings(self) -> list[SubtaskStatus]:
        return [subtask.status() for subtask in self.subtasks]

    def _cancel(self) -> None:
        """From a stop on, end dumps and loads, and batches when their time is over.

        Again and again, for one may just be about to begin.
        """
        self.stop.wait()
        deadline = time.monotonic() + self.wait_on_stop
        while not self.ended.wait(0.5):
            for subtask in self.subtasks:
                subtask.cancel_copy()
                if time.monotonic() >= deadline:
                    subtask.cancel_sync()

    def _run(self, subtask: Subtask) -> None:
        log = logger("run", source=subtask.source)
        try:
            subtask.run(self.stop)
            log.info("ended", unit=subtask.unit)
        except UnshardError as error:
            log.error("failed", **error.to_dict())
            self.errors.append(error)
            self.stop.set()
        except BaseException as error:
            log.exception("failed by a bug")
            self.errors.append(error)
            self.stop.set()
            raise
        finally:
            with self._count:
                self._left -= 1
                if not self._left:
                    self.ended.set()


@contextmanager
def _signals(stop: Event, console: Console) -> Iterator[None]:
    """SIGINT and SIGTERM set `stop`; a second one takes the usual effect, and loses nothing either."""

    def ask(number: int, frame: object) -> None:
        del frame
        stop.set()
        console.print("stopping: finishing the batch in hand")
        signal.signal(number, signal.default_int_handler)

    kept = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
