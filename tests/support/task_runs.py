"""Tasks as a user has them, files and all: run in threads on the shared Spark session, or as the real command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import yaml
from pyspark.sql import SparkSession

from support.subtask_threads import SubtaskThreads
from support.waiting import PATIENCE_SECONDS, ExpiredWait, wait_until
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.model.position import Position
from unshard.mysql.flavour import identify
from unshard.spark.lazy import LazySession, started
from unshard.sync.status import SyncReading
from unshard.sync.unit import SyncUnit
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.workload import Workload
from unshard.worker.build import build_subtask
from unshard.worker.subtask import Subtask

UNSHARD = str(Path(sys.executable).with_name("unshard"))


def newest(server: ThrowawayServer) -> Position:
    """The end of the server's binlog."""
    ((name, offset, *_),) = server.query(server.position_query)
    return Position(name, int(offset))


def executed_gtids(server: ThrowawayServer) -> str:
    """The GTIDs of all that the server has logged, without line breaks."""
    variable = "gtid_binlog_pos" if server.product == "MariaDB" else "gtid_executed"
    ((gtids,),) = server.query(f"SELECT @@global.{variable}")
    return "".join(str(gtids).split())


def processes_below(pid: int) -> list[psutil.Process]:
    """All that run below a process now, parents first. Each may have ended by the time that it is asked something."""
    return psutil.Process(pid).children(recursive=True)


def called(process: psutil.Process) -> str:
    """The name of a process, nothing where it has ended."""
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""


@contextmanager
def at_work(*works: Workload, share: float = 0.25) -> Iterator[None]:
    """The workloads go on in the background for that share of the time, so that others get the processor too."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(0.02):
            for work in works:
                work.pause()
            ended.wait(0.02 * (1 / share - 1))
            for work in works:
                work.resume()

    with ExitStack() as stack:
        for work in works:
            stack.callback(work.stop)
            work.start()
        beater = threading.Thread(target=beat, name="beat")
        beater.start()
        stack.callback(beater.join)
        stack.callback(ended.set)
        yield


def commit_more(*works: Workload, transactions: int) -> None:
    """Wait until workloads in the background have committed so many more, all together."""

    def committed() -> int:
        return sum(work.report.transactions for work in works)

    wanted = committed() + transactions
    wait_until(lambda: committed() >= wanted, f"{transactions} transactions")


@dataclass(slots=True)
class TaskFiles:
    """A task file and its source files in `folder`, and the servers that they name.

    `keys` are keys of the task file over the defaults, `instance` those of every mysql-instance, `source` those of
    every source file. Schemas that are not meant are left out by name: the servers are shared by all tests.
    """

    folder: Path
    name: str
    sources: Mapping[str, ThrowawayServer]
    target: ThrowawayServer
    schemas: tuple[str, ...]
    keys: Mapping[str, Any] = field(default_factory=dict)
    instance: Mapping[str, Any] = field(default_factory=dict)
    instances: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    syncer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def meta(self) -> str:
        return f"meta_{self.name}"

    @property
    def task_path(self) -> Path:
        return self.folder / "task.yaml"

    @property
    def source_paths(self) -> list[Path]:
        return [self.folder / f"{name}.yaml" for name in self.sources]

    def write(self) -> TaskFiles:
        """Write the files, over those that are there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        database = {"host": "127.0.0.1", "user": "root"}
        for name, server in self.sources.items():
            source_form = {
                "source-id": name,
                "relay-dir": str(self.folder / "relay"),
                "from": {**database, "port": server.port},
            }
            (self.folder / f"{name}.yaml").write_text(yaml.safe_dump({**source_form, **self.source}))
        own = {"block-allow-list": "own", "loader-config-name": "own", "syncer-config-name": "own"}
        form = {
            "name": self.name,
            "task-mode": "all",
            "meta-schema": self.meta,
            "target-database": {**database, "port": self.target.port},
            "mysql-instances": [
                {"source-id": name, **own, **self.instance, **self.instances.get(name, {})} for name in self.sources
            ],
            "block-allow-list": {"own": {"do-dbs": list(self.schemas)}},
            "loaders": {"own": {"dir": str(self.folder / "dump")}},
            "syncers": {"own": {"checkpoint-flush-interval": 1, **self.syncer}},
        }
        self.task_path.write_text(yaml.safe_dump({**form, **self.keys}))
        return self

    def applied(self, source: str) -> Position | None:
        """The checkpoint of a source in the target, or None before the first."""
        known = self.target.query(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (self.meta, f"{self.name}_syncer_checkpoint"),
        )
        if not known:
            return None
        found = self.target.query(
            f"SELECT binlog_name, binlog_pos FROM `{self.meta}`.`{self.name}_syncer_checkpoint`"
            " WHERE is_global AND id = %s",
            (source,),
        )
        return Position(found[0][0], int(found[0][1])) if found else None

    def caught_up(self) -> bool:
        """Whether every source is applied up to its newest byte."""
        places = {name: (self.applied(name), newest(server)) for name, server in self.sources.items()}
        there = all(applied is not None and applied >= end for applied, end in places.values())
        return there and all(self.follows(name) for name in self.sources)

    def follows(self, source: str) -> bool:
        """Whether the names on record are of the source's server: a place in another one's log says nothing of it."""
        sql = f"SELECT uuid FROM `{self.meta}`.`{self.name}_upstream` WHERE source = %s"
        with closing(self.sources[source].connection()) as connection:
            return bool(self.target.query(sql, (source,)) == [(identify(connection).uuid,)])


class TaskRun:
    """A task in threads of this process. As a context: stopped at the end, whatever happens."""

    def __init__(self, files: TaskFiles, spark: SparkSession | LazySession) -> None:
        self.files = files
        session = spark if isinstance(spark, LazySession) else started(spark)
        configs = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
        self.crew = SubtaskThreads(tuple(build_subtask(config, session) for config in configs))

    def sync_unit(self, **shape: Any) -> SyncUnit:
        """The sync unit of the only subtask; its batches are planned with other sizes (`sync.batch.Shape`)."""
        (subtask,) = self.crew.subtasks
        assert subtask.sync is not None
        planner = subtask.sync.planner
        subtask.sync.planner = replace(planner, shape=replace(planner.shape, **shape))
        return subtask.sync

    def start(self) -> TaskRun:
        self.crew.start()
        return self

    def catch_up(self) -> None:
        """Wait until the target has all that the sources have now. Raises what a subtask failed with."""
        ends = {name: newest(server) for name, server in self.files.sources.items()}

        def there() -> bool:
            if self.crew.errors:
                raise self.crew.errors[0]
            return all(self._is_at(subtask, ends[subtask.source]) for subtask in self.crew.subtasks)

        def moved() -> object:
            return [one.sync.meter.location for one in self.crew.subtasks if one.sync is not None]

        wait_until(there, "caught up", told=self._told, progress=moved)

    def _told(self) -> str:
        """How each subtask stands, for who reads that a wait took too long."""
        return "\n".join(map(str, self.crew.readings()))

    def _is_at(self, subtask: Subtask, end: Position) -> bool:
        sync = subtask.sync
        if sync is None or sync.meter.location is None or sync.meter.location.position < end:
            return False
        if not self.files.follows(subtask.source) or sync.meter.doing == "going over to another server":
            return False
        if self.files.applied(subtask.source) is None:  # the place is known before the first is written
            return False
        return sync.meter.location.position >= end  # it may have been of the other server's names until just now

    def reach(self, unit: str) -> None:
        """Wait until every subtask is in that unit, or behind it."""
        order = ("starting", "relay", "dump", "load", "sync", "finished", "stopped")

        def there() -> bool:
            if self.crew.errors:
                raise self.crew.errors[0]
            return all(order.index(subtask.unit) >= order.index(unit) for subtask in self.crew.subtasks)

        wait_until(there, f"in {unit}", told=self._told)

    @property
    def sync(self) -> SyncReading:
        """How far the sync of the only source is; it has begun."""
        (reading,) = self.crew.readings()
        assert reading.sync is not None
        return reading.sync

    def error(self) -> BaseException:
        """Wait until the run has failed; its first error."""
        wait_until(self.crew.ended.is_set, "failed", told=self._told)
        assert self.crew.errors, "the run ended well"
        return self.crew.errors[0]

    def stop(self) -> None:
        """End it in good order. Raises what a subtask failed with."""
        self.crew.stop.set()
        self.crew.join()

    def __enter__(self) -> TaskRun:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self._break_off()

    def _break_off(self) -> None:
        self.crew.stop.set()
        wait_until(self.crew.ended.is_set, "ended", told=self._told)

    @contextmanager
    def failing(self) -> Iterator[TaskRun]:
        """As a context whose end does not raise what a subtask failed with: the test has looked at that."""
        self.start()
        try:
            yield self
        finally:
            self._break_off()


class Command:
    """`unshard run` as a child, in a process group of its own. As a context: killed at the end with all of its group.

    Args:
        crash_at: the crash point at which the whole process dies, also when a Spark worker reaches it.
        limits: shell text that is run before, such as `ulimit -f 100`.
        flags: further words of the command.
    """

    def __init__(self, files: TaskFiles, crash_at: str = "", limits: str = ":", *flags: str) -> None:
        self.files = files
        self.output = files.folder / "output.txt"
        self.log = files.folder / "unshard.log"
        environment = {name: text for name, text in os.environ.items() if not name.startswith("UNSHARD_CRASH")}
        if crash_at:
            marker = files.folder / f"crashed-at-{time.monotonic_ns()}"
            environment |= {"UNSHARD_CRASH_AT": crash_at, "UNSHARD_CRASH_MARKER": str(marker)}
        sources = [word for path in files.source_paths for word in ("-s", str(path))]
        words = [UNSHARD, "run", str(files.task_path), *sources, "--log", str(self.log), *flags]
        self._sink = self.output.open("ab")
        self.start_of_output = self._sink.tell()
        self._child = subprocess.Popen(
            ["/bin/sh", "-c", f'export UNSHARD_CRASH_PID=$$; {limits}; exec "$0" "$@"', *words],
            env=environment,
            cwd=files.folder,
            stdin=subprocess.DEVNULL,
            stdout=self._sink,
            stderr=self._sink,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    @property
    def jvm(self) -> psutil.Process:
        """Spark's JVM, of which it has one; what else runs below it may come and go meanwhile."""
        return next(one for one in processes_below(self.pid) if called(one) == "java")

    @property
    def text(self) -> str:
        """What it printed, on either stream."""
        return self.output.read_bytes()[self.start_of_output :].decode(errors="replace")  # it may be in mid-letter

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Its exit code, minus the signal's number if one killed it; what is left of its group is killed."""
        try:
            code = self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ExpiredWait(f"not in {seconds:.0f} s: the command has ended\n{self.text}") from None
        self._sweep()
        return code

    def dies(self, place: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until it has died at that crash point."""
        wait_until(lambda: self._child.poll() is not None, f"died at {place}", seconds, lambda: self.text)
        assert self.wait() == -signal.SIGKILL, f"{place}\n{self.text}"

    def interrupt(self) -> None:
        """Ctrl-C on a terminal: SIGINT to the whole group."""
        os.killpg(self.pid, signal.SIGINT)

    def shows(self, words: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until it has printed the words."""
        wait_until(
            lambda: words in self.text or self._child.poll() is not None, f"printed {words}", seconds, lambda: self.text
        )
        assert words in self.text, self.text

    def catch_up(self) -> None:
        """Wait until the target has all that the sources have."""

        def there() -> bool:
            assert self._child.poll() is None, f"it ended:\n{self.text}"
            return self.files.caught_up()

        wait_until(there, "caught up", told=lambda: self.text)

    def kill(self) -> None:
        """SIGKILL to the whole group."""
        self._child.kill()
        self._child.wait()
        self._sweep()

    def _sweep(self) -> None:
        with suppress(ProcessLookupError):  # nothing was left
            os.killpg(self.pid, signal.SIGKILL)
        self._sink.close()

    def __enter__(self) -> Command:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child.poll() is None:
            self.kill()
