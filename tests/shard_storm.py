"""A sharded task in threads that die, each on its own, at random durable writes, while random shards live upstream."""

from __future__ import annotations

import random
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from random_shards import RandomShards, Step
from task_runs import TaskFiles, newest, wait_until
from unshard.config.files import load_source, load_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.model.position import Location
from unshard.model.table import TableName
from unshard.mysql.endpoint import to_endpoint
from unshard.relay.unit import RelayUnit
from unshard.sync import groups, journal, statement
from unshard.sync import unit as sync_unit
from unshard.testing.binlog_count import RowEvent, exactly_once, row_events
from unshard.testing.throwaway import ThrowawayServer
from unshard.worker.build import build_subtask
from unshard.worker.subtask import Subtask

STEPS = 60
DRIVERS = (groups, journal, statement, sync_unit)


class Died(BaseException):
    """In the place of a SIGKILL: nothing of the driver handles it."""


@dataclass
class Host:
    """One source's subtask, begun anew whenever it has died. `fuse` counts the crash points to the next death."""

    config: SubtaskConfig
    spark: SparkSession
    chosen: random.Random
    stop: threading.Event = field(default_factory=threading.Event)
    fuse: int = 0
    deaths: list[str] = field(default_factory=list)
    error: BaseException | None = None
    subtask: Subtask | None = None

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._live, name=f"host {self.config.source_id}")

    def reach(self, place: str) -> None:
        if self.fuse and self.subtask is not None and self.subtask.unit == "sync":
            self.fuse -= 1
            if not self.fuse:
                self.deaths.append(place)
                raise Died

    def is_at(self, server: ThrowawayServer) -> bool:
        if self.error is not None:
            raise self.error
        sync = self.subtask.sync if self.subtask is not None else None
        at = sync.meter.location if sync is not None else None
        return at is not None and at.position >= newest(server)

    def _relay(self, start: Location | None, upstream: str) -> RelayUnit:
        source = self.config.source
        folder = Path(source.relay_dir) / source.source_id
        return RelayUnit(source, to_endpoint(source.database), folder, start, upstream=upstream)

    def _live(self) -> None:
        while not self.stop.is_set() and self.error is None:
            try:
                self.subtask = build_subtask(self.config, self.spark, self._relay)
                assert self.subtask.sync is not None
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
class Storm:
    """One seed's task on these servers."""

    seed: int
    name: str
    sources: Mapping[str, ThrowawayServer]
    target: ThrowawayServer
    folder: Path
    steps: int = STEPS

    def __post_init__(self) -> None:
        self.chosen = random.Random(self.seed)
        for server in self.sources.values():
            server.run(f"CREATE DATABASE {self.name}", f"CREATE DATABASE {self.name}_kept")
        self.life = RandomShards(self.chosen, tuple(self.sources), self.name, f"{self.name}_kept")
        for step in self.life.begin():
            self._do(step)

    def files(self) -> TaskFiles:
        routes = {
            name: {
                "schema-pattern": self.name,
                "table-pattern": f"{name}_*",
                "target-schema": f"{self.name}_all",
                "target-table": name,
            }
            for name in "tu"
        }
        keys = {"shard-mode": "pessimistic", "routes": routes}
        syncer = {"compact": False, "batch": 3}
        args = (self.folder, self.name, self.sources, self.target, (self.name,), keys, {"route-rules": ["t", "u"]})
        return TaskFiles(*args, syncer=syncer).write()

    def run(self, spark: SparkSession) -> list[str]:
        """All of it; gives where it died. Raises AssertionError where the target is not what it must be."""
        files = self.files()
        configs = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
        self.hosts = {
            config.source_id: Host(config, spark, random.Random(f"{self.seed} {config.source_id}"))
            for config in configs
        }
        threads = {host.thread.name: host for host in self.hosts.values()}
        before = {module: module.reach for module in DRIVERS}  # type: ignore[attr-defined]

        def reach(place: str) -> None:
            host = threads.get(threading.current_thread().name)
            if host is not None:
                host.reach(place)

        try:
            for module in DRIVERS:
                module.reach = reach  # type: ignore[attr-defined]
            for host in self.hosts.values():
                host.thread.start()
            wait_until(self._in_sync, "in sync")
            for step in self.life.steps(self.steps):
                self._do(step)
                if self.chosen.random() < 0.3:
                    time.sleep(self.chosen.random() * 0.4)
                if self.chosen.random() < 0.12:
                    self.chosen.choice(list(self.hosts.values())).fuse = self.chosen.randint(1, 12)
                self._check()
            wait_until(self._in_step, "in step", 120)
        finally:
            for host in self.hosts.values():
                host.fuse = 0
                host.stop.set()
            for host in self.hosts.values():
                host.thread.join()
            for module, own in before.items():
                module.reach = own  # type: ignore[attr-defined]
        self._check()
        self._proof()
        return [place for host in self.hosts.values() for place in host.deaths]

    def _do(self, step: Step) -> None:
        connection = self.sources[step.source].connection()
        with connection.cursor() as cursor:
            for text in step.statements:
                try:
                    cursor.execute(text)
                except Exception as error:
                    error.add_note(text)
                    raise
        connection.close()

    def _check(self) -> None:
        for host in self.hosts.values():
            if host.error is not None:
                raise host.error

    def _in_sync(self) -> bool:
        self._check()
        return all(host.subtask is not None and host.subtask.unit == "sync" for host in self.hosts.values())

    def _in_step(self) -> bool:
        there = all(self.hosts[name].is_at(server) for name, server in self.sources.items())
        return there and not self._held() and not self._locks()

    def _held(self) -> int:
        ((count,),) = self.target.query(f"SELECT COUNT(*) FROM `meta_{self.name}`.`{self.name}_syncer_sharding_meta`")
        return int(count)

    def _locks(self) -> int:
        ((count,),) = self.target.query(f"SELECT SUM(locks) FROM `meta_{self.name}`.`{self.name}_shard_lock`")
        return int(count)

    def _proof(self) -> None:
        changes: Counter[RowEvent] = Counter()
        for target, versions in self.life.versions.items():
            merged = self._merged(target)
            self._same_rows(target, merged)
            found = self._statements(merged)
            lacks = [version.change for version in versions[1:]]
            assert len(found) == len(lacks), "\n".join([str(merged), *lacks, "but the target has", *found])
            for server in self.sources.values():
                names = [TableName(self.name, name) for name in self.life.names[target]]
                for event, times in row_events(server, names).items():
                    if event.kind == "INSERT" and int(event.after[0]) in self.life.never:
                        continue
                    changes[replace(event, table=merged)] += times
        there = row_events(self.target, [self._merged(target) for target in self.life.versions])
        against = exactly_once(_split(changes), _split(there))
        assert not against, "\n".join(against)
        self._balance()

    def _merged(self, target: str) -> TableName:
        if target[0] != "o":
            return TableName(f"{self.name}_all", target)
        return TableName(self.name, *self.life.names[target])

    def _same_rows(self, target: str, merged: TableName) -> None:
        columns = [
            row[0]
            for row in self.target.query(
                "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
                " ORDER BY ORDINAL_POSITION",
                (merged.schema, merged.table),
            )
        ]
        last = self.life.versions[target][-1]
        assert columns == ["id", "v", *(column.name for column in last.columns)]
        listed = ", ".join(columns)
        wanted = [
            row
            for shard in (*self.life.shards, *self.life.graves)
            if shard.target == target
            for row in self.sources[shard.source].query(f"SELECT {listed} FROM {shard.name}")
        ]
        there = self.target.query(f"SELECT {listed} FROM {merged.quoted}")
        lost, made = Counter(wanted) - Counter(there), Counter(there) - Counter(wanted)
        assert not lost and not made, f"{merged}: lost {lost}\nmade up {made}"

    def _statements(self, merged: TableName) -> list[str]:
        files = sorted(
            p for p in self.target.data.glob(f"{self.target.options['log_bin']}.*") if p.suffix[1:].isdigit()
        )
        command = [*self.target.binlog_program(), "--no-defaults", "--base64-output=decode-rows", *map(str, files)]
        text = subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")
        start = re.compile(r"(/\*.*?\*/|\s)*(ALTER|(CREATE|DROP)\s.*INDEX)", re.IGNORECASE)
        name = re.compile(rf"[ ]{merged.schema}\.{merged.table}\b")
        return [line for line in text.splitlines() if start.match(line) and name.search(line.replace("`", ""))]

    def _balance(self) -> None:
        for row in self.target.query(
            "SELECT target, decoded, filtered, compacted, inserted, updated, deleted"
            f" FROM `meta_{self.name}`.`{self.name}_apply_ledger`"
        ):
            _, decoded, filtered, compacted, *applied = row
            assert decoded == filtered + compacted + sum(applied), row


def _split(events: Iterable[RowEvent] | Counter[RowEvent]) -> Counter[RowEvent]:
    """Changes of a key as the DELETE and the INSERT that they are written as."""
    found: Counter[RowEvent] = Counter()
    for event, times in Counter(events).items():
        if event.kind == "UPDATE" and event.before[0] != event.after[0]:
            found[RowEvent(event.table, "DELETE", event.before, ())] += times
            found[RowEvent(event.table, "INSERT", (), event.after)] += times
        else:
            found[event] += times
    return found
