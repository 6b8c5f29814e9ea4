"""A shop on three sources whose orders are merged into one table, in a cluster of real processes."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support.waiting import wait_until
from unshard.api.verbs import ListMember, QueryStatus
from unshard.errors import ClusterError
from unshard.metrics.sample import free_share
from unshard.model.table import TableName
from unshard.testing.applied_once import not_once
from unshard.testing.binlog_count import RowEvent, exactly_once, moved, row_events, row_log
from unshard.testing.cluster import ClusterMember, ThrowawayCluster
from unshard.testing.compare import assert_equal, compare
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer
from unshard.web.page.figures import LITTLE_FREE

TARGET = TableName("shop", "orders")
PATIENT = {"worker-ttl": "60s"}
"""Of masters: a worker that a busy machine holds up is not lost. One that is to be lost is given up by the test."""
SHARDS = (TableName("shop", "orders_1"), TableName("shop", "orders_2"))
_IDS = 1_000_000
_ON_ITS_WAY = "CLUSTER-010"
"""What a verb says of a stage that is not there after ten seconds: look again."""


def until(done: Callable[[], bool], what: str, told: Callable[[], str] = str) -> None:
    """`wait_until`, where a question that no master answers is asked again."""
    unheard: list[str] = []

    def heard() -> bool:
        unheard.clear()
        try:
            return done()
        except ClusterError as error:
            unheard.append(f"{error}\n")
            return False

    wait_until(heard, what, told=lambda: "".join(unheard) + told())


@dataclass(slots=True)
class Shop:
    """The servers, the files that a user writes, and a number for each new row.

    `through`: ports in place of a source's own, "" that of the target.
    """

    cluster: ThrowawayCluster
    sources: Mapping[str, ThrowawayServer]
    target: ThrowawayServer
    through: dict[str, int] = field(default_factory=dict)
    _numbers: dict[str, itertools.count[int]] = field(default_factory=dict)

    def create(self, rows: int = 50) -> None:
        for place, (name, server) in enumerate(self.sources.items()):
            self._numbers[name] = itertools.count(1 + place * _IDS)
            server.query("CREATE DATABASE shop")
            for shard in SHARDS:
                server.query(f"CREATE TABLE {shard.quoted} (id BIGINT PRIMARY KEY, note VARCHAR(40) NOT NULL)")
            if rows:
                self.add(name, rows)

    def add(self, name: str, rows: int = 1) -> int:
        """New rows on a source, spread over its shards; the id of the last."""
        ids = [next(self._numbers[name]) for _ in range(rows)]
        for place, shard in enumerate(SHARDS):
            chosen = [(number, f"note {number}") for number in ids if number % len(SHARDS) == place]
            if chosen:
                values = ", ".join(f"({number}, '{note}')" for number, note in chosen)
                self.sources[name].query(f"INSERT INTO {shard.quoted} (id, note) VALUES {values}")
        return ids[-1]

    def work(self, name: str) -> None:
        """A little of everything."""
        last = self.add(name, 4)
        shard = SHARDS[last % len(SHARDS)].quoted
        self.sources[name].run(
            f"UPDATE {shard} SET note = 'changed' WHERE id = {last}", f"DELETE FROM {shard} WHERE id = {last - 2}"
        )

    def arrives(self, number: int) -> Callable[[], bool]:
        return lambda: (
            self.has_table() and bool(self.target.query(f"SELECT 1 FROM {TARGET.quoted} WHERE id = {number}"))
        )

    def has_table(self) -> bool:
        """Whether the target has the merged table yet."""
        sql = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        return bool(self.target.query(sql, (TARGET.schema, TARGET.table)))

    def fine(self) -> str:
        """What the page says of a cluster in which all is well: the disk of this machine may be nearly full."""
        free = free_share(self.cluster.folder)
        return "The disk of worker" if free is not None and free < LITTLE_FREE else "All is fine"

    def until(self, done: Callable[[], bool], what: str) -> None:
        """`until`, with what the cluster says of itself where it takes too long."""
        until(done, what, self.told)

    def moves(self, name: str) -> None:
        """Wait until a new row of the source is in the target."""
        self.until(self.arrives(self.add(name)), f"a row of {name} arrives")

    def all_move(self) -> None:
        for name, last in [(name, self.add(name)) for name in self.sources]:
            self.until(self.arrives(last), f"a row of {name} arrives")

    def saved(self, *tasks: str) -> None:
        """The tasks' checkpoints stand at the end of each source's log. Rows that have arrived don't tell that."""
        for task, (name, server) in itertools.product(tasks, self.sources.items()):
            ((file, offset, *_),) = server.query("SHOW MASTER STATUS")
            asked = f"SELECT binlog_name, binlog_pos FROM dm_meta.{task}_syncer_checkpoint WHERE is_global AND id = %s"
            self.until(
                lambda asked=asked, name=name, end=(file, int(offset)): self.target.query(asked, (name,)) >= [end],  # type: ignore[misc]
                f"{task} has saved its place in {name}",
            )

    def assert_exactly_once(self) -> None:
        """Equal rows, and each change of every source just once by what the target keeps."""
        places = [(server, shard) for server in self.sources.values() for shard in SHARDS]
        if isinstance(self.target, TidbServer):
            self.until(lambda: compare(places, (self.target, TARGET)).equal, "every row is in the target")
            log = [replace(event, table=TARGET) for one in self.sources.values() for event in row_log(one, SHARDS)]
            against = not_once(log, self.target, [TARGET])
            assert not against, "\n".join(against)
            return
        routes = dict.fromkeys(SHARDS, TARGET)
        upstream = sum((moved(row_events(one, SHARDS), routes) for one in self.sources.values()), start=Counter())
        self.assert_once(upstream, [TARGET])
        assert_equal(places, (self.target, TARGET))

    def assert_once(self, upstream: Counter[RowEvent], tables: Iterable[TableName]) -> None:
        """Each of these changes is just once in the target's binlog.

        A batch's chunks commit one after the other: what belongs to a row that has arrived may still be on its way.
        """

        def applied() -> Counter[RowEvent]:
            return row_events(self.target, tables)

        self.until(lambda: not upstream - applied(), "every change is in the target's binlog")
        against = exactly_once(upstream, applied())
        assert not against, "\n".join(against)

    @property
    def folder(self) -> Path:
        return self.cluster.folder

    def source_file(self, name: str, **keys: Any) -> str:
        """Written for `operate-source create`; each worker keeps its relay log in its own folder."""
        form = {
            "source-id": name,
            "relay-dir": "relay",
            "from": {"host": "127.0.0.1", "port": self.through.get(name, self.sources[name].port), "user": "root"},
            "checker": {"backoff-min": "500ms", "backoff-max": "2s"},
        }
        return self._write(name, {**form, **keys})

    def task_file(self, **keys: Any) -> str:
        own = {"block-allow-list": "own", "route-rules": ["merged"], "syncer-config-name": "own"}
        merged = {"schema-pattern": "shop", "table-pattern": "orders_*"}
        form = {
            "name": "shop",
            "task-mode": "all",
            "shard-mode": "pessimistic",
            "target-database": {"host": "127.0.0.1", "port": self.through.get("", self.target.port), "user": "root"},
            "mysql-instances": [{"source-id": name, **own} for name in self.sources],
            "block-allow-list": {"own": {"do-dbs": ["shop"]}},
            "routes": {"merged": {**merged, "target-schema": "shop", "target-table": "orders"}},
            "syncers": {"own": {"compact": False, "worker-count": 2, "checkpoint-flush-interval": 1}},
            "spark": {"master": "local[1]"},
        }
        return self._write("task", {**form, **keys})

    def do(self, verb: str, *words: str, **how: str) -> dict[str, Any]:
        """What ctl says of a verb that asks for another stage: done, or on its way for longer than a master waits."""
        done = self.cluster.told(verb, *words, **how)
        assert done.exit_code == 0 or _ON_ITS_WAY in done.stdout, f"{verb} {words}: {done}"
        return dict(json.loads(done.stdout))

    def pause(self, task: str = "shop") -> None:
        self.do("pause-task", task)
        self.are("Paused", task)

    def resume(self, task: str = "shop") -> None:
        self.do("resume-task", task)
        self.are("Running", task)

    def stop(self, task: str = "shop") -> None:
        """Its workers have let it go."""
        self.do("stop-task", task)
        gone = lambda: all(  # noqa: E731
            task not in [one["name"] for one in source["subTaskStatus"]] for source in self.statuses()
        )
        self.until(gone, f"{task} has ended")

    def stopped(self, name: str, code: str = "", task: str = "shop") -> dict[str, Any]:
        """The error that a source's subtask stands still by; "": of any code. By the next look it may go on again."""
        found: list[dict[str, Any]] = []

        def there() -> bool:
            (told,) = self.cluster.asked(QueryStatus(name=task, sources=(name,)))["sources"]
            results = [one["result"] or {} for one in told["subTaskStatus"]]
            found[:] = [error for one in results for error in one.get("errors", []) if code in ("", error["ErrCode"])]
            return bool(found)

        self.until(there, f"{task} tells {code or 'an error'} of {name}")
        return found[0]

    def are(self, stage: str, task: str = "shop") -> None:
        """All subtasks are in that stage."""
        self.until(lambda: set(self.stages(task).values()) == {stage}, f"{task} is {stage} everywhere")

    def follows(self, task: str = "shop") -> None:
        """All subtasks have their copy, and read the log."""

        def there() -> bool:
            told = self.cluster.asked(QueryStatus(name=task))["sources"]
            states = {(one["subTaskStatus"][0]["stage"], one["subTaskStatus"][0]["unit"]) for one in told}
            return states == {("Running", "Sync")}

        self.until(there, f"{task} follows everywhere")

    def stages(self, task: str = "shop") -> dict[str, str]:
        """Of each source's subtask, by query-status."""
        told = self.cluster.asked(QueryStatus(name=task))
        return {one["sourceStatus"]["source"]: one["subTaskStatus"][0]["stage"] for one in told["sources"]}

    def statuses(self) -> list[dict[str, Any]]:
        """Of all sources, with all of their tasks, by query-status."""
        return list(self.cluster.asked_once(QueryStatus(sources=tuple(self.sources)))["sources"])

    def told(self) -> str:
        """The cluster's state in a few lines, and the last ones of each process."""
        lines = [f"leader: {self.cluster.leads()}", *map(str, self.workers())]
        try:
            for one in self.statuses():
                lines += [str(one["sourceStatus"]), *(f"  {subtask}" for subtask in one["subTaskStatus"])]
        except ClusterError as error:
            lines.append(str(error))
        for member in (*self.cluster.masters, *self.cluster.workers):
            lines += [f"{member.name}: {line}" for line in member.text.splitlines()[-5:]]
        return "\n".join(lines)

    def serves(self, name: str) -> str:
        """The worker of a source; empty for none."""
        return next((one["name"] for one in self.workers() if one["source"] == name and one["stage"] == "bound"), "")

    def gives_up(self, worker: ClusterMember) -> None:
        """The leader takes a worker that is dead, frozen or cut off for lost, and does not wait for its ttl."""

        def is_lost() -> bool:
            stages = {one["name"]: one["stage"] for one in self.workers()}
            if stages.get(worker.name) == "offline":
                return True
            self.cluster.give_up(worker)  # once more: a beat of its own may have been on its way
            return False

        self.until(is_lost, f"{worker.name} is lost")

    def worker_of(self, name: str) -> ClusterMember:
        """The worker of a source, once it has one."""
        found: list[str] = []

        def served() -> bool:
            found[:] = [self.serves(name)]
            return bool(found[0])

        self.until(served, f"a worker serves {name}")
        return self.cluster.worker(found[0])

    def workers(self) -> list[dict[str, str]]:
        """As list-member tells of them; none where no master leads."""
        try:
            told = self.cluster.asked_once(ListMember(worker=True))
        except ClusterError:
            return []
        return next((one["worker"]["workers"] for one in told["members"] if "worker" in one), [])

    def _write(self, name: str, form: Any) -> str:
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(form))
        return str(path)
