"""Many sources merged into one table by one process: first each a server, then many sources to a server.

A server that stands for many sources has a schema for each of them. Each source has its own relay log, which holds
everything that its server writes, so a simulated source costs what a real one does, but for the server.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.stage import Memory, Run, end_of, engine
from unshard.config.files import parse_source, parse_task
from unshard.config.source import SourceConfig
from unshard.config.subtask import plan_subtasks
from unshard.spark.lazy import started
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.build import build_subtask

_SERVERS_OF_SIMULATED = 8
_ROWS = 2_000
"""Of each source, half of them copied, half of them by the binlog."""

_SMALL = {"innodb_buffer_pool_size": "16M", "innodb_log_file_size": "8M", "performance_schema": "OFF"}
_TABLE = "(id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(60) NOT NULL)"


def run(sources: int = 64, simulated: int = 512) -> dict[str, Any]:
    """Return `{"real": {…}, "simulated": {…}}`, each with `sources`, `copy_s`, `sync_s`, `rows_per_s` of the sync, and
    `peak_rss_mb`.
    """
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name, engine(Path(name)) as spark:
        return {
            "real": _measure(spark, Path(name) / "real", sources, sources),
            "simulated": _measure(spark, Path(name) / "simulated", simulated, min(simulated, _SERVERS_OF_SIMULATED)),
        }


def _measure(spark: SparkSession, folder: Path, count: int, servers: int) -> dict[str, Any]:
    with ExitStack() as stack, MariadbServer({"max_connections": "4000"}) as target:
        options = [
            {**_SMALL, "max_connections": "4000", "gtid_domain_id": str(number + 1)} for number in range(servers)
        ]
        with ThreadPoolExecutor(4) as threads:
            booted = list(threads.map(MariadbServer, options))
        for server in booted:
            stack.callback(server.close)
        served = [booted[number % servers] for number in range(count)]
        for number, server in enumerate(served):
            server.run(f"CREATE DATABASE part_{number}", f"CREATE TABLE part_{number}.t {_TABLE}")
            server.run(_insert(number, 0))
        upstreams = [_source(folder, number, server) for number, server in enumerate(served)]
        configs = plan_subtasks(parse_task(_task(folder, target, count)), upstreams)
        works = [Run(build_subtask(config, started(spark))) for config in configs]
        with Memory() as memory:
            begun = time.perf_counter()
            _each(works, served)
            copied = time.perf_counter() - begun
            for number, server in enumerate(served):
                server.run(_insert(number, _ROWS // 2))
            begun = time.perf_counter()
            for work, server in zip(works, served, strict=True):
                work.until(end_of(server))
            seconds = time.perf_counter() - begun
        for work in works:
            work.stop_asked.set()
        for work in works:
            work.stop()
        ((rows,),) = target.query("SELECT COUNT(*) FROM merged.t")
        if rows != count * _ROWS:
            raise AssertionError(f"{rows} rows arrived, {count * _ROWS} were written")
    return {
        "sources": count,
        "copy_s": round(copied, 2),
        "sync_s": round(seconds, 2),
        "rows_per_s": round(count * _ROWS / 2 / seconds),
        "peak_rss_mb": memory.peak(),
    }


def _each(works: Sequence[Run], served: Sequence[MariadbServer]) -> None:
    """Start all, and wait until each follows its source."""
    for work in works:
        work.start()
    for work, server in zip(works, served, strict=True):
        work.until(end_of(server))


def _insert(number: int, first: int) -> str:
    begin = number * _ROWS + first
    return (
        f"INSERT INTO part_{number}.t SELECT seq, CONCAT('row number ', seq)"
        f" FROM part_{number}.seq_{begin}_to_{begin + _ROWS // 2 - 1}"
    )


def _task(folder: Path, target: MariadbServer, count: int) -> str:
    return f"""
name: bench
task-mode: all
target-database: {{host: 127.0.0.1, port: {target.port}, user: root}}
routes: {{all: {{schema-pattern: 'part_*', table-pattern: t, target-schema: merged, target-table: t}}}}
block-allow-list: {{{", ".join(f"part_{number}: {{do-dbs: [part_{number}]}}" for number in range(count))}}}
loaders: {{own: {{dir: {folder}/dump}}}}
mysql-instances: [{", ".join(_instances(count))}]
"""


def _instances(count: int) -> Iterator[str]:
    for number in range(count):
        keys = f"route-rules: [all], block-allow-list: part_{number}, loader-config-name: own"
        yield f"{{source-id: s{number}, {keys}}}"


def _source(folder: Path, number: int, server: MariadbServer) -> SourceConfig:
    return parse_source(f"""
source-id: s{number}
relay-dir: {folder}/relay{number}
from: {{host: 127.0.0.1, port: {server.port}, user: root}}
""")
