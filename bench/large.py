"""One transaction of 1 GB and a backlog of several GB, beside a second source that writes a row now and then.

The large rows are 10 kB. The backlog updates the same rows again and again, so that it is long in the log and short on
disk. The bench reports memory by quarter, the longest time that reading the status took, and the longest time that a
row of the second source took to arrive meanwhile.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.stage import BIG, Memory, Run, end_of, engine
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import plan_subtasks
from unshard.spark.lazy import started
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.build import build_subtask

_ROW = 10_000
_MB = 1_000_000


def run(transaction_mb: int = 1_000, backlog_mb: int = 8_000) -> dict[str, Any]:
    """Return `{"transaction": {…}, "backlog": {…}}`, each with `binlog_mb`, `seconds`, `peak_rss_mb` by kind and
    quarter, and the longest `status_s` and `other_source_s`.
    """
    options = {**BIG, "max_binlog_size": "256M", "max_binlog_cache_size": "4G"}
    with (
        tempfile.TemporaryDirectory(prefix="unshard-bench-") as name,
        MariadbServer(options) as source,
        MariadbServer() as other,
        MariadbServer(options) as target,
        engine(Path(name)) as spark,
    ):
        for server, schema in ((source, "large"), (other, "small")):
            create = f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v LONGTEXT)"
            server.run(f"CREATE DATABASE {schema}", create)
            target.run(f"CREATE DATABASE {schema}", create)
        sources = [_source(Path(name), number, server) for number, server in enumerate((source, other))]
        subtasks = [
            build_subtask(config, started(spark)) for config in plan_subtasks(parse_task(_task(target)), sources)
        ]
        runs = [Run(subtask) for subtask in subtasks]
        for one in runs:
            one.start()
        for one, server in zip(runs, (source, other), strict=True):
            one.until(end_of(server))
        found = {}
        rows = transaction_mb * _MB // _ROW
        works = {
            "transaction": [_insert(rows)],
            "backlog": [_update(letter) for letter in "bcdefghijk"] * max(1, backlog_mb // 4_000),
        }
        for kind, statements in works.items():
            found[kind] = _measured(statements, source, other, target, runs)
        for one in runs:
            one.stop()
        return found


def _insert(rows: int) -> str:
    return f"INSERT INTO large.t SELECT seq, REPEAT(CHAR(97 + seq % 26), {_ROW}) FROM seq_1_to_{rows}"


def _update(letter: str) -> str:
    """Return a statement that writes about 400 MB of binlog."""
    return f"UPDATE large.t SET v = REPEAT('{letter}', {_ROW}) WHERE id <= 20000"


def _measured(
    statements: list[str], source: MariadbServer, other: MariadbServer, target: MariadbServer, runs: list[Run]
) -> dict[str, Any]:
    """Return the figures from the first statement until all of it was applied."""
    before = sum(file.stat().st_size for file in source.binlog_files())
    with Memory() as memory, _watched(other, target, runs) as watch:
        begun = time.perf_counter()
        source.run("USE large", *statements)
        runs[0].until(end_of(source))
        seconds = time.perf_counter() - begun
    if source.query("SELECT SUM(CRC32(v)) FROM large.t") != target.query("SELECT SUM(CRC32(v)) FROM large.t"):
        raise AssertionError("the target has other rows")
    return {
        "binlog_mb": round((sum(file.stat().st_size for file in source.binlog_files()) - before) / _MB),
        "seconds": round(seconds),
        "peak_rss_mb": memory.quarters(),
        "status_s": round(watch.status, 2),
        "other_source_s": round(watch.arrival, 2),
    }


@dataclass(slots=True)
class _Watch:
    """The longest times so far."""

    status: float = 0.0
    arrival: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def _watched(other: MariadbServer, target: MariadbServer, runs: list[Run]) -> Iterator[_Watch]:
    watch = _Watch()
    threads = [
        threading.Thread(target=_read_status, args=(runs, watch)),
        threading.Thread(target=_write_rows, args=(other, target, watch)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        watch.ended.set()
        for thread in threads:
            thread.join()


def _read_status(runs: list[Run], watch: _Watch) -> None:
    while not watch.ended.wait(0.5):
        begun = time.perf_counter()
        for one in runs:
            one.subtask.status()
        watch.status = max(watch.status, time.perf_counter() - begun)


def _write_rows(other: MariadbServer, target: MariadbServer, watch: _Watch) -> None:
    ((number,),) = other.query("SELECT COALESCE(MAX(id), 0) FROM small.t")
    while not watch.ended.wait(1.0):
        number += 1
        begun = time.perf_counter()
        other.run(f"INSERT INTO small.t VALUES ({number}, 'x')")
        while not watch.ended.is_set() and not target.query(f"SELECT 1 FROM small.t WHERE id = {number}"):
            time.sleep(0.05)
        watch.arrival = max(watch.arrival, time.perf_counter() - begun)


def _task(target: MariadbServer) -> str:
    return f"""
name: bench
task-mode: incremental
target-database: {{host: 127.0.0.1, port: {target.port}, user: root}}
mysql-instances: [{{source-id: s0}}, {{source-id: s1}}]
"""


def _source(folder: Path, number: int, server: MariadbServer) -> Any:
    return parse_source(f"""
source-id: s{number}
relay-dir: {folder}/relay{number}
from: {{host: 127.0.0.1, port: {server.port}, user: root}}
""")
