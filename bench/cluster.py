"""The same backlog on a standalone Spark cluster of one, two and four workers, and the share that is not parallel."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench import data
from bench.stage import BIG, Run, end_of, subtask
from unshard.spark.jobs import run_tasks
from unshard.spark.session import archive_options, class_archive, spark_session
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.spark_cluster import SparkCluster

_WORKERS = (1, 2, 4)


def run(rows: int = 500_000) -> dict[str, Any]:
    """Return `{"seconds": {"1", "2", "4"}, "serial_share"}`. Each worker is a process with a folder and one slot.

    `cores` belongs to the result: more workers than cores that are free gain nothing.
    """
    seconds = {workers: _measure(workers, rows) for workers in _WORKERS}
    return {
        "seconds": {str(workers): round(found, 2) for workers, found in seconds.items()},
        "serial_share": round(serial_share(seconds), 2),
        "cores": os.cpu_count(),
    }


def serial_share(seconds: Mapping[int, float]) -> float:
    """Return the share s of the work that is not parallel, from 0 to 1, by Amdahl's law: T(n) = T(1) (s + (1 - s) / n).

    It is the least-squares fit over all n above 1.
    """
    alone = seconds[1]
    gained = [(1 - 1 / n, 1 - found / alone) for n, found in seconds.items() if n > 1]
    parallel = sum(possible * real for possible, real in gained) / sum(possible**2 for possible, _ in gained)
    return min(1.0, max(0.0, 1 - parallel))


def _measure(workers: int, rows: int) -> float:
    with (
        tempfile.TemporaryDirectory(prefix="unshard-bench-") as name,
        SparkCluster(workers, 1, archive_options(class_archive())) as cluster,
        spark_session(cluster.url, cluster.conf, Path(name) / "spark.log") as spark,
    ):
        run_tasks(spark, [b""] * workers, bytes.upper)
        return apply_backlog(spark, Path(name), rows)[0]


def apply_backlog(spark: SparkSession, folder: Path, rows: int) -> tuple[float, int]:
    """Apply a backlog of that many rows of `data.bulk`, on servers of its own.

    Returns the seconds from the start of the subtask until all are applied, and the bytes of the backlog.
    """
    with MariadbServer(BIG) as source, MariadbServer(BIG) as target:
        file = data.bulk(source, "bench", rows=rows).file
        ((_, create),) = source.query("SHOW CREATE TABLE bench.bulk")
        target.run("CREATE DATABASE bench", "USE bench", create)
        work = Run(subtask(spark, source, target, folder, mode="incremental", start=file.name))
        begun = time.perf_counter()
        work.start()
        work.until(end_of(source))
        seconds = time.perf_counter() - begun
        work.stop()
        ((found,),) = target.query("SELECT COUNT(*) FROM bench.bulk")
        if found != rows:
            raise AssertionError(f"{found} rows arrived, {rows} were written")
        return seconds, file.stat().st_size
