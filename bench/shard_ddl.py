"""The time from the last shard's DDL until no shard waits: tables of one source merge, and all but one have the DDL
already.

It is measured without a backlog, and with one: rows that were written after the DDL. In pessimistic mode these rows
wait for the re-sync; in optimistic mode they have arrived by then. `seconds_to_backlog` is the time from the first of
these rows until all have arrived.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.stage import BIG, Run, end_of, engine, subtask
from unshard.testing.mariadb_server import MariadbServer

_ROUNDS = 3
_MANY = 64
_BACKLOG_ROWS = 100_000
_TABLE = "(id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(40) NOT NULL)"


def run(mode: str = "pessimistic", shards: int = 8, backlog_rows: int = _BACKLOG_ROWS) -> dict[str, Any]:
    """Return `{"mode", "shards", "seconds": [by round], "backlog_seconds", "seconds_to_backlog", "backlog_rows"}`.

    Each round without a backlog is one DDL.
    """
    with (
        tempfile.TemporaryDirectory(prefix="unshard-bench-") as name,
        engine(Path(name)) as spark,
        MariadbServer(BIG) as source,
        MariadbServer(BIG) as target,
    ):
        source.run("CREATE DATABASE bench", *(f"CREATE TABLE bench.shard_{n} {_TABLE}" for n in range(shards)))
        source.run(*(f"INSERT INTO bench.shard_{n} VALUES ({n}, 'first')" for n in range(shards)))
        keys = f"shard-mode: {mode}"
        work = Run(subtask(spark, source, target, Path(name), mode="all", into="merged", keys=keys))
        work.start()
        work.until(end_of(source))
        merged = _Merged(source, target, work, shards)
        seconds = [merged.round(f"c_{number}")[0] for number in range(_ROUNDS if shards <= _MANY else 1)]
        backlog, there = merged.round("last", backlog_rows)
        work.stop()
    return {
        "mode": mode,
        "shards": shards,
        "seconds": seconds,
        "backlog_seconds": backlog,
        "seconds_to_backlog": there,
        "backlog_rows": backlog_rows,
    }


@dataclass(frozen=True, slots=True)
class _Merged:
    source: MariadbServer
    target: MariadbServer
    work: Run
    shards: int

    def round(self, column: str, rows: int = 0) -> tuple[float, float]:
        """Return the seconds from the last ALTER until nothing waits, and from a backlog's first row until all have
        arrived.
        """
        *early, last = (f"ALTER TABLE bench.shard_{n} ADD COLUMN {column} INT" for n in range(self.shards))
        self.source.run(*early)
        first_row = time.monotonic()
        for first in range(0, rows, 1000):
            ids = range(1_000 + first, 1_000 + min(first + 1000, rows))
            values = ", ".join(f"({number}, 'held')" for number in ids)
            self.source.run(f"INSERT INTO bench.shard_0 (id, note) VALUES {values}")
        self.work.until(end_of(self.source))
        begun = time.monotonic()
        self.source.run(last)
        self.work.until(end_of(self.source))
        held = "SELECT COUNT(*) FROM dm_meta.bench_syncer_sharding_meta"
        self.work.wait(lambda: self.target.query(held) == [(0,)])
        wanted = [(self.shards + rows,)]
        self.work.wait(lambda: self.target.query("SELECT COUNT(*) FROM bench.merged") == wanted)
        ended = time.monotonic()
        return round(ended - begun, 2), round(ended - first_row, 2) if rows else 0.0
