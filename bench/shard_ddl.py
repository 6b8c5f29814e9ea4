"""From the last shard's DDL to every shard back in step: eight tables of one source merge, seven have the DDL already.

Without a backlog, and with one: rows that were written behind the DDL and wait to be read again.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.stage import BIG, Run, end_of, engine, subtask
from unshard.testing.servers import MariadbServer

_TABLES = 8
_ROUNDS = 3
_BACKLOG_ROWS = 100_000
_TABLE = "(id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(40) NOT NULL)"


def run(backlog_rows: int = _BACKLOG_ROWS) -> dict[str, Any]:
    """`{"seconds": [by round], "backlog_seconds", "backlog_rows"}`; of rounds without a backlog each is a DDL."""
    with (
        tempfile.TemporaryDirectory(prefix="unshard-bench-") as name,
        engine(Path(name)) as spark,
        MariadbServer(BIG) as source,
        MariadbServer(BIG) as target,
    ):
        source.run("CREATE DATABASE bench", *(f"CREATE TABLE bench.shard_{n} {_TABLE}" for n in range(_TABLES)))
        source.run(*(f"INSERT INTO bench.shard_{n} VALUES ({n}, 'first')" for n in range(_TABLES)))
        keys = "shard-mode: pessimistic"
        work = Run(subtask(spark, source, target, Path(name), mode="all", into="merged", keys=keys))
        work.start()
        work.until(end_of(source))
        seconds = [_round(source, target, work, f"c_{number}") for number in range(_ROUNDS)]
        backlog = _round(source, target, work, "last", backlog_rows)
        work.stop()
    return {"seconds": seconds, "backlog_seconds": backlog, "backlog_rows": backlog_rows}


def _round(source: MariadbServer, target: MariadbServer, work: Run, column: str, rows: int = 0) -> float:
    *early, last = (f"ALTER TABLE bench.shard_{n} ADD COLUMN {column} INT" for n in range(_TABLES))
    source.run(*early)
    for first in range(0, rows, 1000):
        values = ", ".join(f"({100 + number}, 'held')" for number in range(first, min(first + 1000, rows)))
        source.run(f"INSERT INTO bench.shard_0 (id, note) VALUES {values}")
    work.until(end_of(source))
    begun = time.monotonic()
    source.run(last)
    work.until(end_of(source))
    held = "SELECT COUNT(*) FROM dm_meta.bench_syncer_sharding_meta"
    work.wait(lambda: target.query(held) == [(0,)])
    taken = time.monotonic() - begun
    ((found,),) = target.query("SELECT COUNT(*) FROM bench.merged")
    if found != _TABLES + rows:
        raise AssertionError(f"{found} rows are merged, not {_TABLES + rows}")
    return round(taken, 2)
