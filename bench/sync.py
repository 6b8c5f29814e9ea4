"""Applies a backlog of binlog, by shape: bulk, oltp, hot, tied (three unique keys).

Into MariaDB it is compared with `mariadb-binlog FILE | mariadb` and with a MariaDB replica of 1, 4 and 8 threads, into
TiDB with plain INSERTs of the same rows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench import data, limit, peers
from bench.ends import MARIADB, Reached, Target, contents
from bench.stage import BIG, Memory, Run, end_of, engine, subtask
from unshard.testing.mariadb_server import MariadbServer

_SCHEMA = "bench"
SHAPES: dict[str, Callable[..., data.Written]] = {
    "bulk": data.bulk,
    "oltp": data.oltp,
    "hot": data.hot,
    "tied": data.tied,
}
_FOR_TIDB: dict[str, Callable[..., data.Written]] = {
    "bulk": partial(data.bulk, rows=200_000, at_once=200),
    "bulk_600k": partial(data.bulk, rows=600_000, at_once=200),
    "oltp": partial(data.oltp, transactions=13_900),
    "hot": data.hot,
    "tied": data.tied,
}
_REPLICA_THREADS = (1, 4, 8)
_LIMITED = {"bulk": 200_000, "bulk_600k": 600_000}


def run(target: Target = MARIADB) -> dict[str, Any]:
    """Return `{"bulk": {"rows_per_s", "x_native", "x_replica"}, "oltp": …, "hot": …, "tied": …}`; with TiDB `x_limit`
    for bulk.

    Our time covers the whole path, in which the relay fetches the binlog from the source. So does a replica's, of which
    the best number of threads counts. The time of `mariadb-binlog FILE | mariadb` only covers reading the file.
    """
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name:
        folder = Path(name)
        with engine(folder) as spark:
            shapes = _FOR_TIDB if target.is_tidb else SHAPES
            return {shape: measure(spark, folder / shape, shape, target) for shape in shapes}


def measure(spark: SparkSession, folder: Path, shape: str, target: Target, **counts: int) -> dict[str, Any]:
    """Measure one shape, on servers of its own. `counts` is passed to its function of `data`."""
    with MariadbServer(BIG) as source:
        write = (_FOR_TIDB if target.is_tidb else SHAPES)[shape]
        written = write(source, _SCHEMA, **counts)
        table = f"{_SCHEMA}.{shape.partition('_')[0]}"
        create = source.query(f"SHOW CREATE TABLE {table}")[0][1]
        with target.server(BIG) as reached:
            reached.server.run(f"CREATE DATABASE {_SCHEMA}", f"USE {_SCHEMA}", create)
            work = Run(subtask(spark, source, reached, folder, mode="incremental", start=written.file.name))
            with Memory() as memory:
                begun = time.perf_counter()
                work.start()
                work.until(end_of(source))
                ours = time.perf_counter() - begun
            status = work.subtask.sync.meter.read(time.monotonic(), None)  # type: ignore[union-attr]
            work.stop()
            _compare(source, reached, table)
        figures = {
            "rows_per_s": round(written.rows / ours),
            "transactions_per_s": round(written.transactions / ours),
            "seconds": round(ours, 2),
        }
        if not target.is_tidb:
            with target.server(BIG) as reached:
                reached.server.run(f"CREATE DATABASE {_SCHEMA}", f"USE {_SCHEMA}", create)
                theirs = peers.replay([written.file], reached.server)
                _compare(source, reached, table)
            figures |= {"native_rows_per_s": round(written.rows / theirs), "x_native": round(theirs / ours, 2)}
            figures |= _beside_replicas(source, target, create, written, table, ours)
        elif shape in _LIMITED:
            figures |= limit.beside(target, create, _LIMITED[shape], ours)
    return figures | {
        "batches": status.batches,
        "peak_rss_mb": memory.peak(),
        "step_s": {step: round(seconds, 2) for step, seconds in status.step_seconds.items()},
    }


def _beside_replicas(
    source: MariadbServer, target: Target, create: str, written: data.Written, table: str, ours: float
) -> dict[str, Any]:
    """Return `{"replica_s", "replica_threads", "x_replica"}`: the best time of a replica, and its ratio to `ours`."""
    found = []
    for threads in _REPLICA_THREADS:
        with target.server({**BIG, **peers.REPLICA}) as reached:
            reached.server.run(f"CREATE DATABASE {_SCHEMA}", f"USE {_SCHEMA}", create)
            found.append((peers.replicate(source, written.file, reached.server, threads=threads), threads))
            _compare(source, reached, table)
    seconds, threads = min(found)
    return {"replica_s": round(seconds, 2), "replica_threads": threads, "x_replica": round(seconds / ours, 2)}


def _compare(source: MariadbServer, reached: Reached, table: str) -> None:
    columns = tuple(name for (name, *_) in source.query(f"SHOW COLUMNS FROM {table}"))
    if contents(source, table, columns) != contents(reached.server, table, columns):
        raise AssertionError(f"the target's {table} differs from the source's")
