"""Fits the constants of the capacity model on this machine, and applies them to 10,000 shards."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from bench import simulation
from bench.capacity_model import Constants, Demand, line, needs
from bench.cluster import apply_backlog
from bench.stage import BIG, Run, end_of, engine, resident, subtask
from unshard.testing.binlog_count import row_events
from unshard.testing.mariadb_server import MariadbServer

_SINGLE_ROWS = 30
_DEMAND = Demand(shards=10_000, sources=250, rows_per_s=1_000_000)
_TABLE = "(id INT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL)"


def run(rows: int = 200_000, tables: int = 300, shards: int = 10_000) -> dict[str, Any]:
    """Return `{"constants", "needs", "simulation"}`: what was fitted, what 1,000,000 rows/s over 250 sources would
    need, and the simulated run with these constants, at 1 GB/s of binlog for 10,000 shards.

    `batch_s` is the median of single rows, one after the other; `row_s` the slope over backlogs of three sizes.
    """
    with (
        tempfile.TemporaryDirectory(prefix="unshard-bench-") as name,
        engine(Path(name)) as spark,
        MariadbServer({**BIG, "gtid_domain_id": "1"}) as source,
        MariadbServer(BIG) as target,
    ):
        before = {server.port: _connections(server) for server in (source, target)}
        source.run("CREATE DATABASE bench", f"CREATE TABLE bench.single {_TABLE}")
        work = Run(subtask(spark, source, target, Path(name), mode="all"))
        work.start()
        work.until(end_of(source))
        singles = [_applied(work, source, f"INSERT INTO bench.single VALUES ({n}, 'x')") for n in range(_SINGLE_ROWS)]
        batches, written = _batches(work), _metadata_rows(target)
        singles += [
            _applied(work, source, f"INSERT INTO bench.single VALUES ({n}, 'x')")
            for n in range(_SINGLE_ROWS, 2 * _SINGLE_ROWS)
        ]
        metadata = (_metadata_rows(target) - written) / max(1, _batches(work) - batches)
        connections = [_connections(server) - before[server.port] for server in (source, target)]
        driver = resident()["driver"]
        source.run(*(f"CREATE TABLE bench.many_{number} {_TABLE}" for number in range(tables)))
        work.until(end_of(source))
        first, again = (
            _applied(work, source, *(f"INSERT INTO bench.many_{n} VALUES ({row}, 'x')" for n in range(tables)))
            for row in (1, 2)
        )
        grown = max(0.0, resident()["driver"] - driver)
        work.stop()
        points, relay_bytes = [], 0.0
        for number, part in enumerate((4, 4, 2, 1)):
            size = max(2_000, rows // part)
            seconds, size_bytes = apply_backlog(spark, Path(name) / str(number), size)
            if number:  # the first one warms up
                points.append((float(size), seconds))
                relay_bytes = size_bytes / size
    constants = Constants(
        batch_s=round(median(singles), 4),
        row_s=round(max(1e-9, line(points)[1]), 9),
        table_s=round(max(0.0, first - again) / tables, 5),
        relay_bytes=round(relay_bytes, 1),
        metadata_rows=round(metadata, 1),
        source_connections=connections[0],
        target_connections=connections[1],
        driver_mb=round(driver, 1),
        table_kb=round(1024 * grown / tables, 1),
    )
    return {
        "constants": asdict(constants),
        "needs": {name: round(value, 3) for name, value in needs(constants, _DEMAND).items()},
        "simulation": simulation.run(shards, max(1, shards // 40), max(1, shards // 10), constants=constants),
    }


def _applied(work: Run, source: MariadbServer, *statements: str) -> float:
    begun = time.perf_counter()
    source.run(*statements)
    work.until(end_of(source))
    return time.perf_counter() - begun


def _connections(server: MariadbServer) -> int:
    return int(server.query("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'root'")[0][0])


def _metadata_rows(target: MariadbServer) -> int:
    return sum(count for event, count in row_events(target).items() if event.table.schema == "dm_meta")


def _batches(work: Run) -> int:
    sync = work.subtask.sync
    if sync is None:
        raise RuntimeError("the subtask does not sync")
    return sync.meter.read(time.monotonic(), None).batches
