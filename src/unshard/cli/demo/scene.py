"""The demo's scene: three throwaway servers, eight shards under constant writes, the user's files."""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Literal

from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql80Server
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer
from unshard.testing.workload import Workload, WorkPlan

TASK = "demo"
META = "dm_meta"
MERGED = TableName("shop", "orders")
_PLAN = WorkPlan("shop", schemas=2, tables=2, table="orders", threads=1, large_rows=100, disjoint_ids=False)
SourceProduct = Literal["mariadb", "mysql"]
TargetProduct = Literal["mariadb", "tidb"]
_WRITE_SECONDS, _REST_SECONDS = 0.03, 0.17

_SOURCE = """source-id: source-{number}
relay-dir: relay
from:
  host: 127.0.0.1
  port: {port}
  user: root
"""
_TASK = """name: {task}
task-mode: all
target-database:
  host: 127.0.0.1
  port: {port}
  user: root
mysql-instances:
  - source-id: source-1
    route-rules: [orders]
    column-mapping-rules: [ids-of-1]
    syncer-config-name: small-chunks
  - source-id: source-2
    route-rules: [orders]
    column-mapping-rules: [ids-of-2]
    syncer-config-name: small-chunks
routes:
  orders:
    schema-pattern: "shop_*"
    table-pattern: "orders_*"
    target-schema: shop
    target-table: orders
column-mappings:
  ids-of-1:
    schema-pattern: "shop_*"
    table-pattern: "orders_*"
    expression: partition id
    source-column: id
    target-column: id
    arguments: ["1", "shop_", "orders_"]
  ids-of-2:
    schema-pattern: "shop_*"
    table-pattern: "orders_*"
    expression: partition id
    source-column: id
    target-column: id
    arguments: ["2", "shop_", "orders_"]
syncers:
  small-chunks:
    batch: 10
    checkpoint-flush-interval: 1
"""


@dataclass(frozen=True, slots=True)
class Shard:
    """One source table. `bits` is the number that the column mapping adds to its rows' ids.

    It occupies the bits above the lowest 44.
    """

    source: str
    server: ThrowawayServer
    name: TableName
    bits: int


class Scene:
    """The demo's servers, files and writers. A context manager: all of them are removed at its end.

    The folder stays if `keep` is set, so that the logs can be read.
    """

    def __init__(self, source: SourceProduct, target: TargetProduct) -> None:
        self._products = (source, target)
        self.folder = Path(tempfile.mkdtemp(prefix="unshard-demo-"))
        self.keep = False
        self.sources: tuple[ThrowawayServer, ...] = ()
        self.workloads: tuple[Workload, ...] = ()
        self._ending = Event()
        self._pacer: Thread | None = None
        self._stack = ExitStack()
        self._stack.callback(self._remove_folder)

    def __enter__(self) -> Scene:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            self.stop_writers()

    def boot(self) -> None:
        """Start the servers, all at once. Raises MissingProgramError."""
        self.sources = tuple(self._stack.enter_context(self._new_source(number)) for number in "12")
        self.target = self._stack.enter_context(self._new_target())
        servers = (*self.sources, self.target)
        with ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(ThrowawayServer.start, servers))
        self.workloads = tuple(
            Workload(server, replace(_PLAN, seed=seed)) for seed, server in enumerate(self.sources, 1)
        )

    def _new_source(self, number: str) -> ThrowawayServer:
        if self._products[0] == "mysql":
            return Mysql80Server(start=False)
        return MariadbServer({"gtid_domain_id": number}, start=False)

    def _new_target(self) -> ThrowawayServer:
        if self._products[1] == "tidb":
            return TidbServer(start=False)
        return MariadbServer({"gtid_domain_id": "9"}, start=False)

    def fill(self, rows: int) -> None:
        """Create the shards and put rows in."""
        for workload in self.workloads:
            workload.create()
        with ThreadPoolExecutor(len(self.workloads)) as pool:
            list(pool.map(lambda workload: workload.fill(rows), self.workloads))

    def write_files(self) -> tuple[str, ...]:
        """Write the task and source files as a user would; return the arguments after `unshard`."""
        (self.folder / "task.yaml").write_text(_TASK.format(task=TASK, port=self.target.port))
        for number, server in enumerate(self.sources, 1):
            (self.folder / f"source-{number}.yaml").write_text(_SOURCE.format(number=number, port=server.port))
        return ("run", "task.yaml", "--source", "source-1.yaml", "--source", "source-2.yaml")

    def start_writers(self) -> None:
        """Begin to write on both sources, in strokes, so that the machine is left to do something else too."""
        for workload in self.workloads:
            workload.start()
        self._pacer = Thread(target=self._pace, name="pacer", daemon=True)
        self._pacer.start()

    def stop_writers(self) -> int:
        """Let the open transactions end; the number of transactions committed or rolled back. Idempotent."""
        if self._pacer is not None:
            self._ending.set()
            self._pacer.join()
            self._pacer = None
            for workload in self.workloads:
                workload.stop()
        return sum(workload.report.transactions for workload in self.workloads)

    def shards(self) -> tuple[Shard, ...]:
        """Return the shard tables, each with the bits that a column mapping adds to its ids."""
        return tuple(
            Shard(
                f"source-{instance}",
                server,
                TableName(f"{_PLAN.schema}_{schema}", f"{_PLAN.table}_{table}"),
                (instance << 59) | (schema << 52) | (table << 44),
            )
            for instance, server in enumerate(self.sources, 1)
            for schema in range(1, _PLAN.schemas + 1)
            for table in range(1, _PLAN.tables + 1)
        )

    def ends(self) -> dict[str, Position]:
        """Return the end of each source's own binlog now."""
        found = {}
        for instance, server in enumerate(self.sources, 1):
            ((file, offset, *_),) = server.query(server.position_query)
            found[f"source-{instance}"] = Position(file, int(offset))
        return found

    def _pace(self) -> None:
        while not self._ending.wait(_WRITE_SECONDS):
            for workload in self.workloads:
                workload.pause()
            self._ending.wait(_REST_SECONDS)
            for workload in self.workloads:
                workload.resume()

    def _remove_folder(self) -> None:
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)
