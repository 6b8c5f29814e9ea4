"""Subtasks of a sharded task in threads that die, each on its own, at durable writes, or freeze and are taken over."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, newest
from unshard.config.files import load_source, load_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.errors import UnshardError
from unshard.model.position import Location
from unshard.mysql.endpoint import to_endpoint
from unshard.relay.unit import RelayUnit
from unshard.spark.lazy import started
from unshard.target.receipts import FENCED_OUT
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.worker.build import build_subtask
from unshard.worker.subtask import Subtask


def drivers() -> list[ModuleType]:
    """Modules of the sync that reach crash points in the process of the driver, all of them loaded by now."""
    found = [module for name, module in sorted(sys.modules.items()) if name.startswith("unshard.sync.")]
    own = [module for module in found if hasattr(module, "reach") and ".steps." not in module.__name__]
    assert len(own) > 1, "where crash points are reached is not known"
    return own


class Died(BaseException):
    """In the place of a SIGKILL: nothing of the driver handles it."""


@dataclass
class Host:
    """One source's subtask, begun anew whenever it has died. `fuse` counts the crash points to the next end.

    What ends it there is a death, or with `freezes` another host for the source, which it meets when it wakes.
    """

    config: SubtaskConfig
    spark: SparkSession
    chosen: random.Random
    number: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    fuse: int = 0
    freezes: bool = False
    frozen: threading.Event = field(default_factory=threading.Event)
    awake: threading.Event = field(default_factory=threading.Event)
    ends: list[str] = field(default_factory=list)
    error: BaseException | None = None
    subtask: Subtask | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._live, name=f"host {self.number} of {self.config.source_id}")

    def light(self, *, freezes: bool, fuse: int) -> None:
        """Let it end soon, unless it is about to already."""
        with self.lock:
            if not self.fuse and not self.frozen.is_set():
                self.freezes, self.fuse = freezes, fuse

    def reach(self, place: str) -> None:
        with self.lock:
            if not self.fuse or self.subtask is None or self.subtask.unit != "sync":
                return
            if self.freezes and not self.subtask.claimed:
                return  # one that sleeps before its claim would wake as the newer one
            self.fuse -= 1
            if self.fuse:
                return
            self.ends.append(place)
            if not self.freezes:
                raise Died
            self.frozen.set()
        self.awake.wait()

    def successor(self) -> Host:
        """Another host for the source of one that is frozen."""
        return Host(self.config, self.spark, self.chosen, self.number + 1, ends=self.ends)

    def is_at(self, server: ThrowawayServer) -> bool:
        if self.error is not None:
            raise self.error
        sync = self.subtask.sync if self.subtask is not None else None
        at = sync.meter.location if sync is not None else None
        return at is not None and at.position >= newest(server)

    def _relay(self, start: Location | None, upstream: str) -> RelayUnit:
        source = self.config.source
        folder = Path(source.relay_dir) / f"{source.source_id}.{self.number}"
        return RelayUnit(source, to_endpoint(source.database), folder, start, upstream=upstream)

    def _live(self) -> None:
        while not self.stop.is_set() and self.error is None:
            try:
                self.subtask = build_subtask(self.config, started(self.spark), self._relay)
                assert self.subtask.sync is not None
                if self.config.delivery == "exactly-once":
                    self.subtask.sync.run_batch = self._some_twice(self.subtask.sync.run_batch)
                self.subtask.run(self.stop)
            except Died:
                continue
            except BaseException as error:  # noqa: BLE001 — told by whoever waits
                self.error = error

    def _some_twice(self, run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """As Spark does where a task is tried again, or by two at once."""

        def run_batch(plan: Any) -> Any:
            if self.chosen.random() < 0.15:
                run(plan)
            return run(plan)

        return run_batch


@dataclass
class Hosts:
    """All sources of the task. As a context: the crash points count, and all of it is ended."""

    files: TaskFiles
    spark: SparkSession
    seed: int

    def __post_init__(self) -> None:
        sources = [load_source(path) for path in self.files.source_paths]
        configs = plan_subtasks(load_task(self.files.task_path), sources)
        self.chosen = random.Random(self.seed)
        self.hosts = {
            config.source_id: Host(config, self.spark, random.Random(f"{self.seed} {config.source_id}"))
            for config in configs
        }
        self.exact = configs[0].delivery == "exactly-once"
        self.asleep: list[Host] = []
        self.threads = {host.thread.name: host for host in self.hosts.values()}

    def disturb(self) -> None:
        """Let something end soon; who is frozen by an earlier call gets a successor, and who has one wakes."""
        source = self.chosen.choice(list(self.hosts))
        freezes = self.exact and self.chosen.random() < 0.3
        self.hosts[source].light(freezes=freezes, fuse=self.chosen.randint(1, 12))

    def check(self) -> None:
        """Take over what is frozen. Raises what a host that is in charge has failed with."""
        self._well()
        for source, host in self.hosts.items():
            if host.frozen.is_set():
                self.hosts[source] = later = host.successor()
                self.threads[later.thread.name] = later
                self.asleep.append(host)
                later.thread.start()
        for host in self.asleep:
            later = self.hosts[host.config.source_id]
            if later.subtask is not None and later.subtask.unit == "sync" and self.chosen.random() < 0.3:
                host.awake.set()

    def _well(self) -> None:
        for host in self.hosts.values():
            if host.error is not None:
                raise host.error

    def in_sync(self) -> bool:
        self.check()
        return all(host.subtask is not None and host.subtask.unit == "sync" for host in self.hosts.values())

    def caught_up(self) -> bool:
        self.check()
        return all(self.hosts[name].is_at(server) for name, server in self.files.sources.items())

    @property
    def told(self) -> list[str]:
        """Where something ended."""
        return [place for host in self.hosts.values() for place in host.ends]

    def __enter__(self) -> Hosts:
        self.before = {module: module.reach for module in drivers()}

        def reach(place: str) -> None:
            host = self.threads.get(threading.current_thread().name)
            if host is not None:
                host.reach(place)

        for module in self.before:
            module.reach = reach  # type: ignore[attr-defined]
        for host in self.hosts.values():
            host.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        for host in self.threads.values():
            host.fuse = 0
            host.stop.set()
            host.awake.set()
        for host in self.threads.values():
            host.thread.join()
        for module, own in self.before.items():
            module.reach = own  # type: ignore[attr-defined]
        if kind is None:
            self._well()
            for host in self.asleep:
                found = host.error
                assert found is None or (isinstance(found, UnshardError) and found.code == FENCED_OUT), found
