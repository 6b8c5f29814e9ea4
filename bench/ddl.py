"""A log with much DDL on small tables: each is created, filled, altered, filled again and dropped, one after
another.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.ends import MARIADB, Target
from bench.stage import BIG, Run, end_of, engine, subtask
from unshard.testing.mariadb_server import MariadbServer

_TABLES = 100
_ROUND = (
    "CREATE TABLE bench.t{n} (id INT NOT NULL PRIMARY KEY, note VARCHAR(40) NOT NULL)",
    "INSERT INTO bench.t{n} VALUES (1, 'first'), (2, 'second')",
    "ALTER TABLE bench.t{n} ADD COLUMN more INT NOT NULL DEFAULT 7",
    "UPDATE bench.t{n} SET more = id",
    "DROP TABLE bench.t{n}",
)
_STATEMENTS = 3


def run(target: Target = MARIADB, tables: int = _TABLES) -> dict[str, Any]:
    """Return `{"statements": DDL in the log, "source_seconds", "seconds", "statements_per_s"}`."""
    with (
        tempfile.TemporaryDirectory(prefix="unshard-bench-") as name,
        engine(Path(name)) as spark,
        MariadbServer(BIG) as source,
        target.server(BIG) as there,
    ):
        source.run("CREATE DATABASE bench", "CREATE TABLE bench.kept (id INT NOT NULL PRIMARY KEY)")
        work = Run(subtask(spark, source, there, Path(name), mode="all"))
        work.start()
        work.until(end_of(source))
        begun = time.monotonic()
        source.run(*(statement.format(n=number) for number in range(tables) for statement in _ROUND))
        logged = time.monotonic() - begun
        work.until(end_of(source))
        seconds = time.monotonic() - begun
        work.stop()
    statements = tables * _STATEMENTS
    return {
        "statements": statements,
        "source_seconds": round(logged, 2),
        "seconds": round(seconds, 2),
        "statements_per_s": round(statements / seconds, 1),
    }
