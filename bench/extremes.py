"""Tables at the limits of a server: a thousand columns, and rows of 60 MB. Each is copied, then updated."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.stage import BIG, Memory, Run, end_of, engine, subtask
from unshard.testing.mariadb_server import MariadbServer

_OPTIONS = {**BIG, "max_allowed_packet": "1G", "innodb_log_file_size": "1G", "max_binlog_cache_size": "4G"}
_COLUMNS = 1_000
_MB = 1_000_000


def run(wide_rows: int = 20_000, large_rows: int = 20, row_mb: int = 60) -> dict[str, Any]:
    """Return `{"wide": {…}, "large_rows": {…}}`, each with `rows`, `copy_s`, `sync_s`, `rows_per_s` of the sync, and
    `peak_rss_mb`.
    """
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name, engine(Path(name)) as spark:
        folder = Path(name)
        return {
            "wide": _measure(spark, folder / "wide", *_wide(wide_rows)),
            "large_rows": _measure(spark, folder / "large", *_large(large_rows, row_mb)),
        }


def _wide(rows: int) -> tuple[int, str, list[str], list[str]]:
    names = [f"c{number}" for number in range(_COLUMNS - 1)]
    columns = ", ".join(f"{name} INT NOT NULL" for name in names)
    values = ", ".join(f"seq + {number}" for number in range(len(names)))
    table = f"CREATE TABLE bench.t (id INT NOT NULL PRIMARY KEY, {columns})"
    inserts = [
        f"INSERT INTO bench.t SELECT seq, {values} FROM bench.seq_{first}_to_{min(first + 999, rows)}"
        for first in range(1, rows + 1, 1000)
    ]
    return rows, table, inserts, ["UPDATE bench.t SET c0 = c0 + 1, c500 = -c500"]


def _large(rows: int, row_mb: int) -> tuple[int, str, list[str], list[str]]:
    table = "CREATE TABLE bench.t (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, v LONGBLOB NOT NULL)"
    inserts = [f"INSERT INTO bench.t VALUES ({number}, 0, REPEAT('x', {row_mb * _MB}))" for number in range(rows)]
    updates = [f"UPDATE bench.t SET v = REPEAT('y', {row_mb * _MB}) WHERE id = {number}" for number in range(rows)]
    return rows, table, inserts, updates


def _measure(
    spark: SparkSession, folder: Path, rows: int, table: str, inserts: list[str], updates: list[str]
) -> dict[str, Any]:
    with MariadbServer(_OPTIONS) as source, MariadbServer(_OPTIONS) as target:
        source.run("CREATE DATABASE bench", table, *inserts)
        work = Run(subtask(spark, source, target, folder, mode="all"))
        with Memory() as memory:
            begun = time.perf_counter()
            work.start()
            work.until(end_of(source))
            copied = time.perf_counter() - begun
            begun = time.perf_counter()
            source.run(*updates)
            work.until(end_of(source))
            seconds = time.perf_counter() - begun
        work.stop()
        checksum = "CHECKSUM TABLE bench.t"
        if source.query(checksum) != target.query(checksum):
            raise AssertionError("the target has other rows")
    return {
        "rows": rows,
        "copy_s": round(copied, 2),
        "sync_s": round(seconds, 2),
        "rows_per_s": round(rows / seconds, 1),
        "peak_rss_mb": memory.peak(),
    }
