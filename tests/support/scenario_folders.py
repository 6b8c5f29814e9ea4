"""Scenarios of sharding DDL as folders of SQL; tests/scenarios/shard_ddl/README.md says what is in one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from support.merged_shards import MergedShards
from support.task_runs import TaskFiles, TaskRun, at_work
from support.waiting import wait_until
from unshard.api.verbs import ShardDdlLockUnlock
from unshard.config.files import load_task
from unshard.errors import UnshardError
from unshard.operate.locks import answer_unlock
from unshard.operate.subject import Subject
from unshard.shard.lock_keeper import LockKeeper
from unshard.target.meta import MetaTables
from unshard.target.sharding import load_keepers
from unshard.testing.shapes import SYSBENCH
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.workload import Workload, WorkPlan
from unshard.worker.status import SubtaskStatus

_WHEN = re.compile(r"(?:--|#) when (?:(all is read|in step)|(\w+) is in (\w+)|(\w+) has copied (\d+))\n")
_UNITS = ("starting", "relay", "dump", "load", "sync")


@dataclass(slots=True)
class Scenario:
    """One folder, played on servers that others use too. `name` stands for `shop` in all its files."""

    folder: Path
    name: str
    servers: Mapping[str, ThrowawayServer]
    target: ThrowawayServer
    work: Path
    spark: SparkSession
    keys: dict[str, Any] = field(init=False)
    sources: Mapping[str, ThrowawayServer] = field(init=False)
    files: TaskFiles = field(init=False)
    _run: TaskRun = field(init=False)
    _locking: dict[str, Any] = field(default_factory=dict)
    """By server, the connection that holds its LOCK TABLES."""
    _locked: dict[str, str] = field(default_factory=dict)
    """By server, the table that it has locked."""

    def __post_init__(self) -> None:
        path = self.folder / "scenario.yaml"
        self.keys = (yaml.safe_load(self._text(path)) if path.exists() else None) or {}
        self.sources = dict(list(self.servers.items())[: self.keys.get("sources", 2)])
        self.files = self._task_files({})

    def play(self) -> None:
        """Raises AssertionError where something is not as the folder says."""
        writers = self._writers()
        for who in ("all", *self.sources, "target"):
            path = self.folder / ("setup.sql" if who == "all" else f"setup.{who}.sql")
            if path.exists():
                self._sql(who, self._text(path))
        self._run = TaskRun(self.files, self.spark).start()
        try:
            with ExitStack() as stack:
                if writers:
                    stack.enter_context(at_work(*writers))
                for path in sorted(self.folder.glob("[0-9]*.*")):
                    self._step(path)
            if "stops" in self.keys:
                self._stopped(self._run.error())
                return
            self._in_step()
            self._run.stop()
        finally:
            self._run.crew.stop.set()
            for connection in self._locking.values():
                connection.close()
            wait_until(self._run.crew.ended.is_set, "ended")
        self._prove()

    def _step(self, path: Path) -> None:
        text = self._text(path)
        if when := _WHEN.match(text):
            self._wait(*when.groups())
        match path.name.split(".")[1]:
            case "task":
                self._run.stop()
                self.files = self._task_files(yaml.safe_load(text) or {})
                self._run = TaskRun(self.files, self.spark).start()
            case "see":
                self._see(text)
            case "unlock":
                self._unlock(text)
            case who:
                self._sql(who, text)

    def _wait(self, what: str | None, in_unit: str | None, unit: str, copying: str | None, tables: str) -> None:
        if what == "in step":
            self._in_step()
        elif what is not None:
            self._run.catch_up()
        else:
            (subtask,) = (one for one in self._run.crew.subtasks if one.source in (in_unit, copying))
            if in_unit:
                wait_until(lambda: self._well() and _UNITS.index(subtask.unit) >= _UNITS.index(unit), f"in {unit}")
            else:
                wait_until(lambda: self._well() and _copied(subtask.status()) >= int(tables), f"{tables} copied")

    def _well(self) -> bool:
        if self._run.crew.errors:
            raise self._run.crew.errors[0]
        return True

    def _in_step(self) -> None:
        held = f"SELECT 1 FROM `{self.files.meta}`.`{self.name}_syncer_sharding_meta` LIMIT 1"
        locks = f"SELECT 1 FROM `{self.files.meta}`.`{self.name}_shard_lock` WHERE locks > 0 LIMIT 1"
        self._run.reach("sync")
        self._run.catch_up()
        try:
            wait_until(lambda: self._well() and not self.target.query(held) + self.target.query(locks), "in step")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self._told()}") from None
        self._run.catch_up()

    def _sql(self, who: str, text: str) -> None:
        servers = self.sources if who == "all" else {who: self.target if who == "target" else self.sources[who]}
        text = re.sub(r"^-- .*\n", "", text, flags=re.MULTILINE)
        for statement in filter(None, map(str.strip, re.split(r";\s*(?:\n|$)", text))):
            for name, server in servers.items():
                if statement.startswith(("LOCK TABLES", "UNLOCK TABLES")):
                    self._locking.setdefault(name, server.connection()).query(statement)
                    self._locked[name] = statement.split()[2] if statement.startswith("LOCK") else ""
                elif name in self._locking and self._locked[name] and self._locked[name] in statement:
                    self._locking[name].query(statement)
                    self._locking[name].commit()
                else:
                    server.run(statement)

    def _see(self, text: str) -> None:
        wanted = [line for line in text.splitlines() if line and not line.startswith("-- ")]

        try:
            wait_until(lambda: self._well() and all(line in self._told() for line in wanted), "told")
        except AssertionError:
            told = self._told()
            raise AssertionError(f"{[line for line in wanted if line not in told]} is not in\n{told}") from None

    def _told(self) -> str:
        """What `query-status` tells of the DDL that waits, line by line."""
        units = [subtask.sync for subtask in self._run.crew.subtasks if subtask.sync is not None]
        groups = [group for unit in units for group in unit.meter.groups]
        values = [value for group in groups for value in group.model_dump(exclude={"overdue"}).values()]
        return "\n".join(one for value in values for one in ([value] if isinstance(value, str) else value))

    def _unlock(self, flags: str) -> None:
        subject = Subject.of_files(load_task(self.files.task_path), [])
        wait_until(lambda: self._well() and len(self._locks(subject)) == 1, "one lock waits")
        (keeper,) = self._locks(subject)
        words = shlex.split(re.sub(r"^-- .*\n", "", flags, flags=re.MULTILINE))
        owner = words[words.index("--owner") + 1] if "--owner" in words else ""
        request = ShardDdlLockUnlock(id=keeper.id, owner=owner, force_remove="--force-remove" in words)
        answer_unlock(subject, request, "dba")

    def _locks(self, subject: Subject) -> list[LockKeeper]:
        with closing(self.target.connection()) as connection:
            keepers = load_keepers(connection, MetaTables(subject.meta_schema, self.name))
        return [keeper for keeper in keepers if keeper.locks]

    def _stopped(self, error: BaseException) -> None:
        assert isinstance(error, UnshardError), error
        wanted = self.keys["stops"]
        assert error.code == wanted["code"], error
        for line in wanted.get("tells", ()):
            assert line in str(error), str(error)

    def _prove(self) -> None:
        for table in self._tables:
            merged = MergedShards(self.name, self.sources, self.target, frozenset(self._parts), table)
            merged.assert_equal_rows()
            merged.assert_nothing_twice()
        ordered, unordered = self.folder / "target.sql", self.folder / "target.any-order.sql"
        wanted = ordered if ordered.exists() else unordered
        merged.assert_statements(self._text(wanted) if wanted.exists() else "", ordered=wanted is ordered)

    @property
    def _parts(self) -> list[str]:
        return list(self.keys.get("mapping", ("source", "schema", "table")))

    @property
    def _tables(self) -> list[str]:
        return list(self.keys.get("tables", ("orders",)))

    def _task_files(self, more: Mapping[str, Any]) -> TaskFiles:
        routes: dict[str, Any] = {}
        mappings: dict[str, Any] = {}
        for table in self._tables:
            place = {"schema-pattern": f"{self.name}_*", "table-pattern": f"{table}_*"}
            routes[table] = {**place, "target-schema": f"{self.name}_all", "target-table": table}
            ids = {**place, "expression": "partition id", "source-column": "id", "target-column": "id"}
            prefixes = [self.name if "schema" in self._parts else "", table if "table" in self._parts else "", "_"]
            for number, source in enumerate(self.sources, 1):
                mappings[f"{source}-{table}"] = {**ids, "arguments": [str(number), *prefixes]}
        task = {"shard-mode": "pessimistic", **self.keys.get("task", {}), **more}
        routes |= task.pop("routes", {})
        return TaskFiles(
            self.work,
            self.name,
            self.sources,
            self.target,
            tuple(f"{self.name}_{number}" for number in range(1, 9)),
            keys={**task, "routes": routes, "column-mappings": mappings},
            instance={"route-rules": list(routes)},
            instances={
                source: {"column-mapping-rules": [f"{source}-{table}" for table in self._tables]}
                for source in self.sources
            },
            syncer={"compact": False},
        ).write()

    def _writers(self) -> list[Workload]:
        if "writers" not in self.keys:
            return []
        plan = WorkPlan(
            self.name,
            shape=SYSBENCH,
            table="orders",
            threads=1,
            large_rows=100,
            disjoint_ids=False,
            **self.keys["writers"],
        )
        works = [Workload(server, plan) for server in self.sources.values()]
        for work in works:
            work.create()
            work.fill(20)
        return works

    def _text(self, path: Path) -> str:
        return path.read_text().replace("shop", self.name)


def _copied(status: SubtaskStatus) -> int:
    """How many tables a dump has done."""
    return status.progress.tables_done if status.progress is not None else 0
