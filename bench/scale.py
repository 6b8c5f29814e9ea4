"""Shards merged into one table: as fast with 512 as with 8, and a backlog ten times as long takes ten times as long."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench import data
from bench.stage import BIG, Memory, Run, end_of, engine, subtask
from unshard.testing.mariadb_server import MariadbServer

_TABLES = (8, 64, 512)
_ROWS = 300_000
_LONGER = 10
_WARM_UP_ROWS = 30_000


def run(rows: int = _ROWS) -> dict[str, Any]:
    """Return `{"rows_per_s": {"8", "64", "512"}, "backlog_x10": rows/s relative to the short one, "peak_rss_mb": {…}}`.

    The result should be flat: rates within a fifth of each other, and Python (driver and workers) under 1 GiB in each.
    """
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name, engine(Path(name)) as spark:
        _measure(spark, Path(name), _TABLES[0], _WARM_UP_ROWS)  # Spark's first job, and the first use of the kernels
        short = {tables: _measure(spark, Path(name), tables, rows) for tables in _TABLES}
        long = _measure(spark, Path(name), _TABLES[0], rows * _LONGER)
    return {
        "rows_per_s": {str(tables): figures["rows_per_s"] for tables, figures in short.items()},
        "backlog_x10": round(long["rows_per_s"] / short[_TABLES[0]]["rows_per_s"], 2),
        "peak_rss_mb": {
            **{str(tables): figures["peak_rss_mb"] for tables, figures in short.items()},
            "x10": long["peak_rss_mb"],
        },
    }


def _measure(spark: SparkSession, folder: Path, tables: int, rows: int) -> dict[str, Any]:
    """Measure one backlog, on servers of its own. Fails if rows are missing."""
    place = folder / f"{tables}-{rows}"
    with MariadbServer(BIG) as source, MariadbServer(BIG) as target:
        start = data.shards(source, "bench", tables=tables, rows=rows).file.name
        target.run("CREATE DATABASE bench", "USE bench", data.SYSBENCH_TABLE.format(name="merged"))
        work = Run(subtask(spark, source, target, place, mode="incremental", start=start, into="merged"))
        with Memory() as memory:
            begun = time.perf_counter()
            work.start()
            work.until(end_of(source))
            seconds = time.perf_counter() - begun
        work.stop()
        ((found,),) = target.query("SELECT COUNT(*) FROM bench.merged")
    if found != rows:
        raise AssertionError(f"{found} rows arrived, {rows} were written")
    return {"rows_per_s": round(rows / seconds), "peak_rss_mb": memory.peak()}
