"""A shop on three sources whose orders are merged into one table, in a cluster of real processes."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unshard.api.verbs import ListMember, QueryStatus
from unshard.errors import ClusterError
from unshard.model.table import TableName
from unshard.testing.binlog_count import exactly_once, moved, row_events
from unshard.testing.cluster import Cluster, Member
from unshard.testing.compare import assert_equal
from unshard.testing.servers import MariadbServer

TARGET = TableName("shop", "orders")
SHARDS = (TableName("shop", "orders_1"), TableName("shop", "orders_2"))
PATIENCE_SECONDS = 60.0
_IDS = 1_000_000


def until(done: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> float:
    """How long it took."""
    begun = time.monotonic()
    while not done():
        assert time.monotonic() < begun + seconds, f"not in {seconds:.0f} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - begun


@dataclass(slots=True)
class Shop:
    """The servers, the files that a user writes, and a number for each new row.

    `through`: ports in place of a source's own, "" that of the target.
    """

    cluster: Cluster
    sources: dict[str, MariadbServer]
    target: MariadbServer
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

    def moves(self, name: str, seconds: float = PATIENCE_SECONDS) -> float:
        """How long until a new row of the source is in the target."""
        return until(self.arrives(self.add(name)), f"a row of {name} arrives", seconds)

    def all_move(self) -> None:
        for name, last in [(name, self.add(name)) for name in self.sources]:
            until(self.arrives(last), f"a row of {name} arrives")

    def assert_exactly_once(self) -> None:
        """Equal rows, and each change of every source just once in the target's own binlog."""
        assert_equal([(server, shard) for server in self.sources.values() for shard in SHARDS], (self.target, TARGET))
        routes = dict.fromkeys(SHARDS, TARGET)
        upstream = sum((moved(row_events(one, SHARDS), routes) for one in self.sources.values()), start=Counter())
        against = exactly_once(upstream, row_events(self.target, [TARGET]))
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

    def stages(self) -> dict[str, str]:
        """Of each source's subtask, by query-status."""
        told = self.cluster.asked(QueryStatus(name="shop"))
        return {one["sourceStatus"]["source"]: one["subTaskStatus"][0]["stage"] for one in told["sources"]}

    def serves(self, name: str) -> str:
        """The worker of a source; empty for none."""
        return next((one["name"] for one in self.workers() if one["source"] == name and one["stage"] == "bound"), "")

    def worker_of(self, name: str) -> Member:
        """The worker of a source, once it has one."""
        until(lambda: bool(self.serves(name)), f"a worker serves {name}")
        return self.cluster.worker(self.serves(name))

    def workers(self) -> list[dict[str, str]]:
        """As list-member tells of them; none where no master leads."""
        try:
            told = self.cluster.asked(ListMember(worker=True))
        except ClusterError:
            return []
        return next((one["worker"]["workers"] for one in told["members"] if "worker" in one), [])

    def _write(self, name: str, form: Any) -> str:
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(form))
        return str(path)
