"""Dumps and loads a table: beside mydumper and myloader with two threads, or into TiDB beside plain INSERTs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench import data, limit, peers
from bench.ends import MARIADB, Reached, Target, contents
from bench.stage import BIG, engine, subtask
from unshard.testing.mariadb_server import MariadbServer

_SCHEMA = "bench"
_TABLE = f"{_SCHEMA}.bulk"
_COLUMNS = ("id", "k", "c", "pad")
_NO_BINLOG = {**BIG, "log_bin": ""}
"""Targets here write no binlog: myloader turns it off for its own rows, so both do the same work."""

_RUNS = 3


def run(target: Target = MARIADB, rows: int = 500_000, turns: int = _RUNS) -> dict[str, Any]:
    """Return `{"dump_rows_per_s", "load_rows_per_s", "x_native"}`: the median of `turns` whole runs each, in turn.

    With TiDB, return an object for each of two sizes, with `x_limit`.
    """
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as name:
        folder = Path(name)
        with engine(folder) as spark:
            if not target.is_tidb:
                return _measure(spark, folder, target, rows, turns)
            return {
                f"{size // 1000}k": _measure(spark, folder / str(size), target, size, turns)
                for size in (200_000, 600_000)
            }


def _measure(spark: SparkSession, folder: Path, target: Target, rows: int, turns: int) -> dict[str, Any]:
    with MariadbServer(BIG) as source:
        data.bulk(source, _SCHEMA, rows=rows)
        create = source.query(f"SHOW CREATE TABLE {_TABLE}")[0][1]
        ours, theirs = [], []
        for turn in range(turns):
            with target.server(_NO_BINLOG) as reached:
                work = subtask(spark, source, reached, folder / f"{turn}", mode="full")
                begun = time.perf_counter()
                work.dump.run()  # type: ignore[union-attr]
                middle = time.perf_counter()
                work.load.run()  # type: ignore[union-attr]
                ours.append((middle - begun, time.perf_counter() - middle))
                _compare(source, reached)
            if not target.is_tidb:
                with target.server(_NO_BINLOG) as reached:
                    peer = peers.dump_and_load(source, reached.server, _SCHEMA, threads=2)
                    theirs.append((peer.dump_seconds, peer.load_seconds))
                    _compare(source, reached)
    dump, load = _median(ours)
    figures = {
        "dump_rows_per_s": round(rows / dump),
        "load_rows_per_s": round(rows / load),
        "dump_s": round(dump, 2),
        "load_s": round(load, 2),
    }
    if target.is_tidb:
        return figures | limit.beside(target, create, rows, dump + load)
    peer_dump, peer_load = _median(theirs)
    return figures | {
        "native_dump_s": round(peer_dump, 2),
        "native_load_s": round(peer_load, 2),
        "x_native": round((peer_dump + peer_load) / (dump + load), 2),
    }


def _median(times: list[tuple[float, float]]) -> tuple[float, float]:
    return sorted(times, key=sum)[len(times) // 2]


def _compare(source: MariadbServer, reached: Reached) -> None:
    if contents(source, _TABLE, _COLUMNS) != contents(reached.server, _TABLE, _COLUMNS):
        raise AssertionError("the copy differs from the source")
