"""A backlog of binlog applied, beside `mariadb-binlog FILE | mariadb`: bulk, oltp, hot, tied (three unique keys)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench import data, peers
from bench.stage import BIG, Memory, Run, end_of, engine, subtask
from unshard.testing.servers import MariadbServer

_SCHEMA = "bench"
_SHAPES: dict[str, Callable[..., data.Written]] = {
    "bulk": data.bulk,
    "oltp": data.oltp,
    "hot": data.hot,
    "tied": data.tied,
}


def run() -> dict[str, Any]:
    """`{"bulk": {"rows_per_s", "x_native"}, "oltp": …, "hot": …, "tied": …}`.

    Our time is that of the whole path: the relay fetches the binlog from the source meanwhile. Theirs reads the file.
    """
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name:
        folder = Path(name)
        with engine(folder) as spark:
            return {shape: measure(spark, folder / shape, shape) for shape in _SHAPES}


def measure(spark: SparkSession, folder: Path, shape: str) -> dict[str, Any]:
    """One shape, on servers of its own."""
    with MariadbServer(BIG) as source:
        written = _SHAPES[shape](source, _SCHEMA)
        table = source.query(f"SHOW CREATE TABLE {_SCHEMA}.{shape}")[0][1]
        with MariadbServer(BIG) as target:
            target.run(f"CREATE DATABASE {_SCHEMA}", f"USE {_SCHEMA}", table)
            work = Run(subtask(spark, source, target, folder, mode="incremental", start=written.file.name))
            with Memory() as memory:
                begun = time.perf_counter()
                work.start()
                work.until(end_of(source))
                ours = time.perf_counter() - begun
            status = work.subtask.sync.meter.read(time.monotonic(), None)  # type: ignore[union-attr]
            work.stop()
            _compare(source, target, shape)
        with MariadbServer(BIG) as target:
            target.run(f"CREATE DATABASE {_SCHEMA}", f"USE {_SCHEMA}", table)
            theirs = peers.replay([written.file], target)
            _compare(source, target, shape)
    return {
        "rows_per_s": round(written.rows / ours),
        "transactions_per_s": round(written.transactions / ours),
        "native_rows_per_s": round(written.rows / theirs),
        "x_native": round(theirs / ours, 2),
        "batches": status.batches,
        "peak_rss_mb": memory.peak(),
        "step_s": {step: round(seconds, 2) for step, seconds in status.step_seconds.items()},
    }


def _compare(source: MariadbServer, target: MariadbServer, table: str) -> None:
    statement = f"CHECKSUM TABLE {_SCHEMA}.{table}"
    if source.query(statement)[0][1] != target.query(statement)[0][1]:
        raise AssertionError(f"the target's {table} differs from the source's")
