"""Many tables in many schemas: the first copy, the status, a DDL on one of them, a row in each, and a new start."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.stage import BIG, Memory, Run, end_of, engine, subtask
from unshard.testing.mariadb_server import MariadbServer

_TABLES, _SCHEMAS = 10_000, 100
_OPTIONS = {**BIG, "table_open_cache": "2000", "open_files_limit": "65535"}
_TABLE = "(id INT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL)"


def run(tables: int = _TABLES) -> dict[str, Any]:
    """Return seconds by step, and the highest memory of each kind of process.

    The tables are spread over a hundred schemas, or fewer if there are fewer tables, and have two rows each. `copy_s`
    lasts until the sync stands; `rows_s` and `rows_again_s` are a row in each table, the first time and the second;
    `resume_s` is from the start of a new run until it has applied the next row.
    """
    names = [f"many_{number % min(_SCHEMAS, tables)}.t{number:05}" for number in range(tables)]
    with (
        tempfile.TemporaryDirectory(prefix="unshard-bench-") as folder,
        engine(Path(folder)) as spark,
        MariadbServer(_OPTIONS) as source,
        MariadbServer(_OPTIONS) as target,
        Memory() as memory,
    ):
        source.run(*(f"CREATE DATABASE {schema}" for schema in sorted({name.partition(".")[0] for name in names})))
        source.run(*(f"CREATE TABLE {name} {_TABLE}" for name in names))
        source.run(*(f"INSERT INTO {name} VALUES (1, 'one'), (2, 'two')" for name in names))
        work = _run(spark, source, target, Path(folder))
        found = {"tables": tables, "copy_s": _timed(lambda: _started(work, source))}
        found["status_s"] = _timed(work.subtask.status)
        found["ddl_s"] = _timed(lambda: _applied(work, source, f"ALTER TABLE {names[0]} ADD COLUMN more INT"))
        for step, number in (("rows_s", 3), ("rows_again_s", 4)):
            statements = [f"INSERT INTO {name} (id, name) VALUES ({number}, 'x')" for name in names]
            found[step] = _timed(lambda statements=statements: _applied(work, source, *statements))  # type: ignore[misc]
        found["stop_s"] = _timed(work.stop)
        source.run(f"INSERT INTO {names[-1]} VALUES (5, 'later')")
        again = _run(spark, source, target, Path(folder))
        found["resume_s"] = _timed(lambda: _started(again, source))
        again.stop()
        rows = [
            sum(int(server.query(f"SELECT COUNT(*) FROM {name}")[0][0]) for name in names[-100:])
            for server in (source, target)
        ]
        if rows[0] != rows[1]:
            raise AssertionError(f"the last tables have {rows[1]} rows, not {rows[0]}")
    return {**found, "rows_per_s": round(tables / found["rows_again_s"]), "peak_rss_mb": memory.peak()}


def _run(spark: SparkSession, source: MariadbServer, target: MariadbServer, folder: Path) -> Run:
    return Run(subtask(spark, source, target, folder, mode="all"))


def _started(work: Run, source: MariadbServer) -> None:
    work.start()
    work.until(end_of(source))


def _applied(work: Run, source: MariadbServer, *statements: str) -> None:
    source.run(*statements)
    work.until(end_of(source))


def _timed(step: Callable[[], object]) -> float:
    begun = time.perf_counter()
    step()
    return round(time.perf_counter() - begun, 2)
