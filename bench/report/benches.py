"""The benches of a report. Each is run several times, and each number keeps what every run gave."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import backlog, data, ddl, decode, latency, load, load_shapes, many_tables, sync
from bench.ends import MARIADB
from bench.report.figures import combine
from bench.report.size import Size
from bench.stage import engine

_DECODE_TURNS = 3
_BACKLOG_ROWS = 5_000_000


def run_decode(size: Size) -> dict[str, Any]:
    """Rows of binlog files to Arrow on one core, beside `mariadb-binlog -v` and mysql-replication."""
    return _several(size, lambda: decode.run(size.share, _DECODE_TURNS if size.runs > 1 else 1))


def run_sync(size: Size) -> dict[str, Any]:
    """A backlog of binlog, by shape, beside `mariadb-binlog | mariadb`."""
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name, engine(Path(name)) as spark:
        folders = (Path(name) / str(number) for number in range(1_000))

        def once() -> dict[str, Any]:
            folder = next(folders)
            return {
                shape: sync.measure(spark, folder / shape, shape, MARIADB, **data.part(shape, size.share))
                for shape in sync.SHAPES
            }

        return _several(size, once)


def run_load(size: Size) -> dict[str, Any]:
    """Dump and load of one table, beside mydumper and myloader."""
    return _several(size, lambda: load.run(MARIADB, size.of(500_000), 1))


def run_load_shapes(size: Size) -> dict[str, Any]:
    """Dump and load of narrow and wide rows, blobs, many small tables and a huge one, beside mydumper and myloader."""
    return _several(size, lambda: load_shapes.run(size.of(100, 1), 1))


def run_latency(size: Size) -> dict[str, Any]:
    """From the commit upstream until the row is visible in the target."""
    return _several(size, lambda: latency.run(MARIADB, seconds=size.latency_seconds))


def run_memory(size: Size) -> dict[str, Any]:
    """Resident memory while a backlog is applied. It is run once."""
    return backlog.run(size.of(_BACKLOG_ROWS))


def run_ddl(size: Size) -> dict[str, Any]:
    """Small tables created, altered and dropped all the time."""
    return _several(size, lambda: ddl.run(MARIADB, size.of(100, 2)))


def run_many_tables(size: Size) -> dict[str, Any]:
    """The copy of many small tables. It is run once."""
    combined: dict[str, Any] = combine([many_tables.run(MARIADB, size.of(1_000, 10))])
    return combined


def _several(size: Size, once: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    results = []
    for number in range(1, size.runs + 1):
        print(f"  run {number} of {size.runs}", file=sys.stderr, flush=True)
        results.append(once())
    combined: dict[str, Any] = combine(results)
    return combined
