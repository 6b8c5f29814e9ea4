"""Our side of a bench: the product's own wiring, run in this process between throwaway servers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.ends import Reached
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.model.position import Position
from unshard.spark.jobs import run_tasks
from unshard.spark.lazy import started
from unshard.spark.session import spark_session
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.worker.build import build_subtask
from unshard.worker.subtask import Subtask

BIG = {"innodb_buffer_pool_size": "1G", "innodb_log_file_size": "512M", "max_binlog_size": "1G"}
"""Options of the servers in a bench: large enough for the data, otherwise as in `unshard.testing`."""


@contextmanager
def engine(folder: Path) -> Iterator[SparkSession]:
    """Start a Spark session as `unshard run` does, and run a first job, so that no figure includes the JVM's start."""
    with spark_session("local[*]", {}, folder / "spark.log") as spark:
        slots = spark.sparkContext.defaultParallelism
        run_tasks(spark, [b""] * slots, bytes.upper)
        yield spark


def subtask(
    spark: SparkSession,
    source: MariadbServer,
    target: ThrowawayServer | Reached,
    folder: Path,
    *,
    mode: str,
    start: str = "",
    into: str = "",
    keys: str = "",
) -> Subtask:
    """The one subtask of a task, of `config`."""
    return build_subtask(config(source, target, folder, mode=mode, start=start, into=into, keys=keys), started(spark))


def config(
    source: MariadbServer,
    target: ThrowawayServer | Reached,
    folder: Path,
    *,
    mode: str,
    start: str = "",
    into: str = "",
    keys: str = "",
) -> SubtaskConfig:
    """Return the configuration of the only subtask of a task.

    `start` is a binlog file for mode `incremental`, `keys` are lines of the task file. The task has no rules, or with
    `into` one route: all tables `shard_…` of schema `bench` to that table.
    """
    route = f"shards: {{schema-pattern: bench, table-pattern: 'shard_*', target-schema: bench, target-table: {into}}}"
    meta = f"meta: {{binlog-name: {start}, binlog-pos: 4}}" if start else ""
    task = parse_task(f"""
name: bench
task-mode: {mode}
target-database: {{host: 127.0.0.1, port: {target.port}, user: root}}
routes: {{{route if into else ""}}}
mysql-instances: [{{source-id: s1, loader-config-name: l, route-rules: [{"shards" if into else ""}], {meta}}}]
loaders: {{l: {{dir: {folder}/dump}}}}
{keys}
""")
    upstream = parse_source(f"""
source-id: s1
relay-dir: {folder}/relay
from: {{host: 127.0.0.1, port: {source.port}, user: root}}
""")
    return plan_subtasks(task, [upstream])[0]


@dataclass(slots=True)
class Run:
    """A subtask that runs in a thread. `stop` ends it and raises its error."""

    subtask: Subtask
    stop_asked: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def until(self, end: Position) -> None:
        """Wait until everything before `end` is applied and checkpointed. Raises the error that stopped the subtask."""
        self.wait(lambda: self._location() is not None and self._location() >= end)

    def wait(self, done: Callable[[], bool]) -> None:
        while not done():
            if self.error is not None:
                raise self.error
            time.sleep(0.01)

    def stop(self) -> None:
        self.stop_asked.set()
        if self._thread is not None:
            self._thread.join()
        if self.error is not None:
            raise self.error

    def _location(self) -> Any:
        sync = self.subtask.sync
        location = sync.meter.location if sync is not None else None
        return location.position if location is not None else None

    def _work(self) -> None:
        try:
            self.subtask.run(self.stop_asked)
        except BaseException as error:
            self.error = error
            raise


def end_of(server: MariadbServer) -> Position:
    """Return the current end of the server's binlog."""
    ((file, offset, *_),) = server.query("SHOW MASTER STATUS")
    return Position(str(file), int(offset))


@dataclass(slots=True)
class Memory:
    """Samples the resident memory of this process and of its JVM and Python workers, in MiB."""

    interval_seconds: float = 0.25
    samples: list[dict[str, float]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Memory:
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def peak(self) -> dict[str, int]:
        """Return the highest value of each kind: `driver`, `workers` (all together), `jvm`."""
        return {kind: round(max(sample[kind] for sample in self.samples)) for kind in ("driver", "workers", "jvm")}

    def quarters(self) -> dict[str, list[int]]:
        """Return the highest value of each kind in each quarter of the time."""
        count = len(self.samples)
        parts = [self.samples[count * n // 4 : count * (n + 1) // 4] for n in range(4)]
        return {
            kind: [round(max((sample[kind] for sample in part), default=0)) for part in parts]
            for kind in ("driver", "workers", "jvm")
        }

    def series(self, most: int = 200) -> dict[str, list[float]]:
        """Return `seconds` and the MiB of each kind at that time: at most about `most` samples, evenly spread."""
        step = max(1, len(self.samples) // most)
        shown = self.samples[::step]
        seconds = [round(number * step * self.interval_seconds, 2) for number in range(len(shown))]
        kinds = ("driver", "workers", "jvm")
        return {"seconds": seconds, **{kind: [round(one[kind], 1) for one in shown] for kind in kinds}}

    def _sample(self) -> None:
        self.samples.append(resident())
        while not self._ended.wait(self.interval_seconds):
            self.samples.append(resident())
        self.samples.append(resident())


def resident() -> dict[str, float]:
    """Return the resident MiB now: this process, the Python workers of Spark, the JVM.

    Pages of mapped files (the relay log) are left out: they are the system's cache, which it can reclaim at any time.
    """
    import psutil

    found = {"driver": 0.0, "workers": 0.0, "jvm": 0.0}
    me = psutil.Process(os.getpid())
    found["driver"] = _own(me)
    for child in me.children(recursive=True):
        try:
            name, memory = child.name(), _own(child)
        except psutil.Error:
            continue  # it has ended meanwhile
        if name.startswith("java"):
            found["jvm"] += memory
        elif name.startswith("python"):
            found["workers"] += memory
    return found


def _own(process: Any) -> float:
    info = process.memory_info()
    return float(info.rss - info.shared) / 2**20
