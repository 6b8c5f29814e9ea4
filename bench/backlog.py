"""Memory over a long backlog: applies about 2 GB of binlog and reports each kind of process's memory by quarter."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench import data
from bench.stage import BIG, Memory, Run, end_of, engine, subtask
from unshard.testing.mariadb_server import MariadbServer

_SCHEMA = "bench"
_ROWS = 5_000_000
_FILE_BYTES = "256M"


def run(rows: int = _ROWS) -> dict[str, Any]:
    """Return `{"binlog_mb", "rows_per_s", "peak_rss_mb": {kind: [four quarters]}, "memory_mb": {kind: [samples]}}`.

    Memory is flat if the quarters agree.
    """
    options = {**BIG, "max_binlog_size": _FILE_BYTES}
    with (
        tempfile.TemporaryDirectory(prefix="unshard-bench-") as name,
        MariadbServer(options) as source,
        MariadbServer(options) as target,
        engine(Path(name)) as spark,
    ):
        first = end_of(source).number + 1
        data.bulk(source, _SCHEMA, rows=rows)
        files = [file for file in source.binlog_files() if int(file.suffix[1:]) >= first]
        table = source.query(f"SHOW CREATE TABLE {_SCHEMA}.bulk")[0][1]
        target.run(f"CREATE DATABASE {_SCHEMA}", f"USE {_SCHEMA}", table)
        work = Run(subtask(spark, source, target, Path(name), mode="incremental", start=files[0].name))
        with Memory() as memory:
            begun = time.perf_counter()
            work.start()
            work.until(end_of(source))
            seconds = time.perf_counter() - begun
        work.stop()
        if source.query(f"SELECT COUNT(*) FROM {_SCHEMA}.bulk") != target.query(f"SELECT COUNT(*) FROM {_SCHEMA}.bulk"):
            raise AssertionError("the target has not all rows")
        return {
            "binlog_mb": round(sum(file.stat().st_size for file in files) / 1e6),
            "rows_per_s": round(rows / seconds),
            "peak_rss_mb": memory.quarters(),
            "memory_mb": memory.series(),
        }
