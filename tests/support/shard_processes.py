"""Sources of a sharded task each in a process of its own, as workers have them: killed, frozen, woken, superseded.

As a program, `shard_processes.py TASK_FILE SOURCE_FILE NUMBER` is such a process, with the relay log of that number.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from support.task_runs import TaskFiles
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtask
from unshard.errors import UnshardError
from unshard.model.position import Location
from unshard.mysql.endpoint import to_endpoint
from unshard.relay.unit import RelayUnit
from unshard.spark.lazy import started
from unshard.spark.session import spark_session
from unshard.target.receipts import FENCED_OUT
from unshard.worker.build import build_subtask

PLACES = (
    "sync-claim-after",
    "sync-open-after",
    "sync-chunk-before",
    "sync-chunk-commit",
    "sync-chunk-after",
    "sync-close-before",
    "sync-close-after",
    "sync-move-before",
    "sync-move-after",
    "shard-report-before",
    "shard-report-after",
    "ddl-execute-before",
    "ddl-execute-after",
    "ddl-noted",
    "sync-prepare-before",
    "sync-prepare-after",
)
REFUSED = 3


@dataclass
class Process:
    """One life of a source's process, which owns the source once its epoch is higher than `since`."""

    files: TaskFiles
    source: str
    number: int
    since: int = 0
    crash_at: str = ""
    crash_by: str = ""

    def __post_init__(self) -> None:
        folder = self.files.folder
        self.output = folder / f"{self.source}-{time.monotonic_ns()}.txt"
        environment = {name: text for name, text in os.environ.items() if not name.startswith("UNSHARD_CRASH")}
        if self.crash_at:
            marker = str(self.output.with_suffix(".crashed"))
            environment |= {"UNSHARD_CRASH_AT": self.crash_at, "UNSHARD_CRASH_MARKER": marker}
            environment |= {"UNSHARD_CRASH_BY": self.crash_by}
        environment["PYTHONPATH"] = str(Path(__file__).parents[1])
        words = [sys.executable, "-m", "support.shard_processes"]
        words += [str(self.files.task_path), str(folder / f"{self.source}.yaml")]
        with self.output.open("wb") as sink:
            self.child = subprocess.Popen(
                ["/bin/sh", "-c", 'export UNSHARD_CRASH_PID=$$; exec "$0" "$@"', *words, str(self.number)],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.child.wait()
        self.send(signal.SIGKILL)

    @property
    def ended(self) -> int | None:
        return self.child.poll()

    def send_all(self, number: signal.Signals) -> None:
        """Also to the processes of Spark's tasks, which are a group of their own."""
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def wakes_to_its_end(self) -> bool:
        """Wake all of them; whether it has ended.

        Called again and again: a task that freezes its driver first may have been caught between the two, and then
        freezes itself behind the first call.
        """
        self.send_all(signal.SIGCONT)
        return self.ended is not None

    def is_frozen(self) -> bool:
        """Whether any process of its family is stopped."""
        return any(_is_stopped(one) for one in self._family())

    def _family(self) -> list[psutil.Process]:
        try:
            process = psutil.Process(self.child.pid)
            return [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")[-4000:]


MOST_CHECKS = 80
"""So many times at most is looked at all processes before one that is frozen wakes."""


@dataclass
class Processes:
    """All sources of the task. As a context: all of them are ended behind it."""

    files: TaskFiles
    seed: int
    told: list[str] = field(default_factory=list)
    asleep: list[tuple[Process, int]] = field(default_factory=list)
    superseded: list[tuple[Process, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chosen = random.Random(self.seed)
        self.running = {source: Process(self.files, source, 0) for source in self.files.sources}

    def _begin(self, source: str, number: int, crash_at: str = "") -> None:
        self.running[source] = Process(self.files, source, number, self._epoch(source), crash_at)

    def disturb(self) -> None:
        source = self.chosen.choice(list(self.running))
        process = self.running[source]
        if process.ended is not None or process.crash_at or process in [one for one, _ in self.asleep]:
            return
        if self._epoch(source) == process.since:
            return  # one that sleeps before it has begun would wake as the newer one
        way = self.chosen.choice(("kill", "crash", "freeze", "supersede"))
        self.told.append(f"{way} {source}")
        if way == "kill":
            process.kill()
            self._begin(source, process.number)
        elif way == "crash":
            process.kill()
            place = f"{self.chosen.choice(PLACES)}:{self.chosen.randint(1, 4)}"
            self.told.append(place)
            self._begin(source, process.number, place)
        else:
            process.send(signal.SIGSTOP)
            if way == "freeze":
                self.asleep.append((process, self.chosen.randint(1, MOST_CHECKS)))
            else:
                self.superseded.append((process, self._epoch(source)))
                self._begin(source, process.number + 1)

    def check(self) -> None:
        """Begin anew what has died, wake what slept. Raises AssertionError where a process ended otherwise."""
        for source, process in self.running.items():
            if process.ended is not None:
                assert process.crash_at, f"{process.ended}: {process.text}"
                assert process.ended == -signal.SIGKILL, f"{process.ended}: {process.text}"
                process.kill()
                self._begin(source, process.number)
        self.asleep = [(process, checks - 1) for process, checks in self.asleep]
        for process, checks in self.asleep:
            if not checks:
                process.send(signal.SIGCONT)
        self.asleep = [one for one in self.asleep if one[1]]
        for process, epoch in self.superseded:
            if self._epoch(process.source) > epoch:
                process.send(signal.SIGCONT)
            if process.ended is not None:
                assert process.ended == REFUSED, f"{process.ended}: {process.text}"
                assert FENCED_OUT in process.text, f"{process.ended}: {process.text}"

    def in_sync(self) -> bool:
        self.check()
        return all(self.files.applied(source) is not None for source in self.files.sources)

    def caught_up(self) -> bool:
        self.check()
        return self.files.caught_up()

    def _epoch(self, source: str) -> int:
        found = self.files.target.query(
            f"SELECT epoch FROM `{self.files.meta}`.`{self.files.name}_apply_batch` WHERE source = %s", (source,)
        )
        return int(found[0][0]) if found else 0

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self.check()  # who was superseded may have found nothing to write, and not know it
        finally:
            for process in (*self.running.values(), *(one for one, _ in self.superseded)):
                process.kill()


def main(task_file: str, source_file: str, number: str) -> int:
    """Until SIGTERM or an error. `REFUSED` for one of the catalogue."""
    config = plan_subtask(load_task(Path(task_file)), load_source(Path(source_file)))
    folder = Path(config.source.relay_dir) / f"{config.source_id}.{number}"
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def relay(start: Location | None, upstream: str) -> RelayUnit:
        return RelayUnit(config.source, to_endpoint(config.source.database), folder, start, upstream=upstream)

    log = Path(f"{config.source_id}.spark.log")
    with spark_session("local[2]", {"spark.driver.memory": "600m"}, log) as spark:
        try:
            build_subtask(config, started(spark), relay).run(stop)
        except UnshardError as error:
            print(error.code, error, flush=True)  # noqa: T201 — for the test that reads it
            return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))


def _is_stopped(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:  # it has ended since its family was listed
        return False
