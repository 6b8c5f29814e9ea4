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

SCHEMA = "bench"
_TABLE = f"{SCHEMA}.bulk"
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
        data.bulk(source, SCHEMA, rows=rows)
        create = source.query(f"SHOW CREATE TABLE {_TABLE}")[0][1]
        figures = in_turn(spark, folder, source, target, turns)
    if target.is_tidb:
        figures |= limit.beside(target, create, rows, figures["dump_s"] + figures["load_s"])
    return figures


def in_turn(spark: SparkSession, folder: Path, source: MariadbServer, target: Target, turns: int) -> dict[str, Any]:
    """Copy the source's schema `SCHEMA` that many times, into MariaDB in turn with mydumper and myloader.

    Return the medians, and of several runs the shortest and the longest whole one.
    """
    ours, theirs, rows = [], [], 0
    for turn in range(turns):
        with target.server(_NO_BINLOG) as reached:
            work = subtask(spark, source, reached, folder / f"{turn}", mode="full")
            begun = time.perf_counter()
            work.dump.run()  # type: ignore[union-attr]
            middle = time.perf_counter()
            work.load.run()  # type: ignore[union-attr]
            ours.append((middle - begun, time.perf_counter() - middle))
            rows = _compare(source, reached)
        if not target.is_tidb:
            with target.server(_NO_BINLOG) as reached:
                peer = peers.dump_and_load(source, reached.server, SCHEMA, threads=2)
                theirs.append((peer.dump_seconds, peer.load_seconds))
                _compare(source, reached)
    dump, load = _median(ours)
    figures = {
        "dump_rows_per_s": round(rows / dump),
        "load_rows_per_s": round(rows / load),
        "dump_s": round(dump, 2),
        "load_s": round(load, 2),
        **_spread("", ours),
    }
    if target.is_tidb:
        return figures
    peer_dump, peer_load = _median(theirs)
    return figures | {
        "native_dump_s": round(peer_dump, 2),
        "native_load_s": round(peer_load, 2),
        **_spread("native_", theirs),
        "x_native": round((peer_dump + peer_load) / (dump + load), 2),
    }


def _median(times: list[tuple[float, float]]) -> tuple[float, float]:
    return sorted(times, key=sum)[len(times) // 2]


def _spread(whose: str, times: list[tuple[float, float]]) -> dict[str, float]:
    whole = [round(sum(one), 2) for one in times]
    return {f"{whose}shortest_s": min(whole), f"{whose}longest_s": max(whole)} if len(whole) > 1 else {}


def _compare(source: MariadbServer, reached: Reached) -> int:
    """Return the number of rows of all tables. Raises AssertionError where a copy differs."""
    rows = 0
    for table, columns in _tables(source):
        found = contents(source, table, columns)
        if found != contents(reached.server, table, columns):
            raise AssertionError(f"the copy of {table} differs from the source")
        rows += int(found[0])  # type: ignore[call-overload]
    return rows


def _tables(source: MariadbServer) -> list[tuple[str, tuple[str, ...]]]:
    found = source.query(
        "SELECT TABLE_NAME, GROUP_CONCAT(COLUMN_NAME) FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = '{SCHEMA}' GROUP BY TABLE_NAME"
    )
    return [(f"{SCHEMA}.{table}", tuple(columns.split(","))) for table, columns in found]
